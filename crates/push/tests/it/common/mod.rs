//! Shared parts of the tests of pushing: a profile, servers, and readers of the requests they get.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::Read;

use flate2::read::GzDecoder;
use heapline_export::pprof::proto;
use heapline_formats::{Options, Reader};
use heapline_profile::{Estimator, Profile, Query, Scope, StoreOptions};
use heapline_push::{Endpoint, HeapProfile, Identity, Protocol, Windows, deliver};
use heapline_testkit::collector::{Collector, Received, Reply};
use prost::Message;

pub(crate) const TRACE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../fixtures/mix-ocaml53/trace.ctf"
);

pub(crate) fn load() -> Profile {
    let mut reader = Reader::open(TRACE, Options::default()).unwrap();
    Profile::load(&mut reader, StoreOptions::default()).unwrap()
}

pub(crate) fn all(profile: &Profile) -> Scope<'_> {
    Scope::new(profile, &Query::default(), Estimator::default())
}

/// A profile of the whole trace, with the memory live at its peak: at the end there is little.
pub(crate) fn heap_profile() -> HeapProfile {
    let profile = load();
    let peak = profile.peak(Estimator::default()).moment;
    Windows::default().next(&all(&profile), peak, None)
}

pub(crate) fn identity() -> Identity {
    Identity {
        service: Some("my service".to_owned()),
        labels: vec!["deployment.env=prod".parse().unwrap()],
    }
}

/// A server that takes everything.
pub(crate) fn willing(protocol: Protocol) -> Collector {
    Collector::start(move |_, _| accepted(protocol))
}

/// The answer of a server that has taken a message.
pub(crate) fn accepted(protocol: Protocol) -> Reply {
    match protocol {
        Protocol::Otlp | Protocol::Pyroscope => Reply::status(200),
        Protocol::Parca => {
            let mut body = vec![0, 0, 0, 0, 0, 0x80, 0, 0, 0, 15];
            body.extend(b"grpc-status:0\r\n");
            Reply::Answer(200, Vec::new(), body)
        }
    }
}

/// The request by which a profile is sent.
pub(crate) fn request(protocol: Protocol, profile: &HeapProfile) -> Received {
    let server = willing(protocol);
    let endpoint = Endpoint::new(protocol, &server.url()).unwrap();
    let message = endpoint.encode(profile, &identity());
    let delivered = deliver(&endpoint, &message, |reason, _| panic!("{reason}")).unwrap();
    assert_eq!(delivered, heapline_push::Delivered::default());
    server.wait_for(1).remove(0)
}

pub(crate) fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    plain
}

/// Reads a profile of pprof, and checks what Parca and Pyroscope check.
pub(crate) fn pprof(bytes: &[u8]) -> proto::Profile {
    let profile = proto::Profile::decode(&gunzip(bytes)[..]).unwrap();
    assert_eq!(profile.string_table[0], "");
    let is_string = |n: i64| usize::try_from(n).unwrap() < profile.string_table.len();
    for (id, function) in (1..).zip(&profile.function) {
        assert_eq!(function.id, id, "ids are sequential");
        for name in [function.name, function.system_name, function.filename] {
            assert!(is_string(name));
        }
    }
    for (id, location) in (1..).zip(&profile.location) {
        assert_eq!((location.id, location.mapping_id), (id, 1));
        for line in &location.line {
            assert!((1..=profile.function.len() as u64).contains(&line.function_id));
        }
    }
    assert_eq!(profile.mapping.len(), 1);
    for sample in &profile.sample {
        assert_eq!(sample.value.len(), profile.sample_type.len());
        assert!(!sample.location_id.is_empty());
        for id in &sample.location_id {
            assert!((1..=profile.location.len() as u64).contains(id));
        }
    }
    profile
}

/// The names of the columns, and their sums.
pub(crate) fn sums(profile: &proto::Profile) -> Vec<(String, i64)> {
    let string = |n: i64| profile.string_table[usize::try_from(n).unwrap()].clone();
    let columns = profile.sample_type.iter().enumerate();
    columns
        .map(|(column, kind)| {
            let values = profile.sample.iter().map(|sample| sample.value[column]);
            (string(kind.r#type), values.sum())
        })
        .collect()
}
