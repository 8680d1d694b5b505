//! Servers that are busy, down, silent, or refuse.

use crate::common;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::{accepted, heap_profile, identity};
use heapline_push::{Delivered, Endpoint, Failure, Message, Protocol, Pusher, Tally, deliver};
use heapline_testkit::collector::{Collector, Reply, dead_url};
use opentelemetry_proto::tonic::collector::profiles::v1development as otlp;
use prost::Message as _;

const PATIENCE: Duration = Duration::from_secs(30);

fn encoded(url: &str, protocol: Protocol) -> (Endpoint, Message) {
    let endpoint = Endpoint::new(protocol, url).unwrap();
    let message = endpoint.encode(&heap_profile(), &identity());
    (endpoint, message)
}

fn busy_for(seconds: u32) -> Reply {
    let retry = format!("Retry-After: {seconds}");
    Reply::Answer(503, vec![retry], b"compacting".to_vec())
}

#[test]
fn a_busy_server_is_asked_again_when_it_wants_to() {
    let server = Collector::start(|_, number| match number {
        0 | 1 => busy_for(1),
        _ => Reply::status(200),
    });
    let (endpoint, message) = encoded(&server.url(), Protocol::Pyroscope);
    let start = Instant::now();
    let mut reasons = Vec::new();
    let delivered = deliver(&endpoint, &message, |reason, wait| {
        assert!(wait >= Duration::from_secs(1));
        reasons.push(reason.to_owned());
    });
    assert_eq!(delivered, Ok(Delivered::default()));
    assert!(start.elapsed() >= Duration::from_secs(2));
    assert_eq!(reasons, ["503 Service Unavailable: compacting"; 2]);
    let received = server.wait_for(3);
    assert!(received.windows(2).all(|two| two[0].body == two[1].body));
}

#[test]
fn a_refusal_is_final() {
    for (protocol, reply, expected) in [
        (
            Protocol::Pyroscope,
            Reply::Answer(400, Vec::new(), b"invalid name".to_vec()),
            "400 Bad Request: invalid name",
        ),
        (
            Protocol::Otlp,
            // google.rpc.Status: code 3, message "no".
            Reply::Answer(
                400,
                vec!["Content-Type: application/x-protobuf".to_owned()],
                b"\x08\x03\x12\x02no".to_vec(),
            ),
            "400 Bad Request: no",
        ),
        (
            Protocol::Otlp,
            Reply::Answer(301, vec!["Location: /elsewhere".to_owned()], Vec::new()),
            "301 Moved Permanently; give this URL: /elsewhere",
        ),
        (
            Protocol::Parca,
            Reply::status(200),
            "the answer is not one of gRPC-Web; is this the address of a Parca server?",
        ),
        (
            Protocol::Otlp,
            Reply::Answer(200, Vec::new(), b"<html>welcome</html>".to_vec()),
            "the answer is not one of OTLP; is this the address of a collector?",
        ),
    ] {
        let server = Collector::start(move |_, _| reply.clone());
        let (endpoint, message) = encoded(&server.url(), protocol);
        let refused = deliver(&endpoint, &message, |reason, _| panic!("{reason}"));
        let reason = expected.to_owned();
        assert_eq!(refused, Err(Failure::Permanent { reason }));
        assert_eq!(server.received().len(), 1);
    }
}

#[test]
fn partial_success_is_told() {
    let partial = otlp::ExportProfilesServiceResponse {
        partial_success: Some(otlp::ExportProfilesPartialSuccess {
            rejected_profiles: 2,
            error_message: "no heap profiles here".to_owned(),
        }),
    };
    let server =
        Collector::start(move |_, _| Reply::Answer(200, Vec::new(), partial.encode_to_vec()));
    let (endpoint, message) = encoded(&server.url(), Protocol::Otlp);
    assert_eq!(message.profiles(), 4);
    let delivered = deliver(&endpoint, &message, |reason, _| panic!("{reason}"));
    let remark = Some("no heap profiles here".to_owned());
    assert_eq!(
        delivered,
        Ok(Delivered {
            rejected: 2,
            remark
        })
    );
}

#[test]
fn credentials_are_sent_in_headers() {
    let server = common::willing(Protocol::Parca);
    let (mut endpoint, message) = encoded(&server.url(), Protocol::Parca);
    endpoint.headers = "Authorization: Bearer secret".parse().unwrap();
    deliver(&endpoint, &message, |reason, _| panic!("{reason}")).unwrap();
    let received = server.wait_for(1).remove(0);
    assert_eq!(received.header("authorization"), Some("Bearer secret"));
    assert!(!format!("{endpoint:?} {endpoint}").contains("secret"));
}

#[test]
fn nobody_waits_for_a_server_that_is_down() {
    let (endpoint, message) = encoded(&dead_url(), Protocol::Otlp);
    let (sender, told) = mpsc::channel();
    let pusher = Pusher::start(endpoint, move |failure| {
        sender.send(failure.reason().to_owned()).unwrap();
    });
    let pusher = pusher.unwrap();
    pusher.push(message.clone());
    let reason = told.recv_timeout(PATIENCE).unwrap();
    assert!(reason.contains("refused"), "{reason}");
    // More than fit: the oldest ones are dropped.
    for _ in 0..20 {
        pusher.push(message.clone());
    }
    let start = Instant::now();
    let tally = pusher.finish(PATIENCE);
    assert!(start.elapsed() < PATIENCE / 2);
    assert_eq!((tally.delivered, tally.refused), (0, 0));
    assert_eq!((tally.dropped, tally.unsent), (5, 16));
    assert_eq!(tally.lost(), 21);
    assert!(tally.problem.unwrap().contains("refused"));
}

#[test]
fn nobody_waits_for_a_silent_server_longer_than_asked() {
    let server = Collector::start(|_, _| Reply::Silence);
    let (endpoint, message) = encoded(&server.url(), Protocol::Parca);
    let pusher = Pusher::start(endpoint, |_| {}).unwrap();
    pusher.push(message.clone());
    let _ = server.wait_for(1);
    pusher.push(message);
    let tally = pusher.finish(Duration::from_secs(1));
    assert_eq!((tally.delivered, tally.unsent), (0, 2));
    assert_eq!(tally.problem.as_deref(), Some("no answer within 1 s"));
}

#[test]
fn messages_wait_for_a_server_that_is_busy_and_are_sent_in_order() {
    let server = Collector::start(|request, number| match number {
        0 => busy_for(0),
        1 => Reply::status(400),
        _ => {
            assert!(request.path.starts_with("/ingest?"));
            accepted(Protocol::Pyroscope)
        }
    });
    let (endpoint, message) = encoded(&server.url(), Protocol::Pyroscope);
    let pusher = Pusher::start(endpoint, |_| {}).unwrap();
    for _ in 0..3 {
        pusher.push(message.clone());
    }
    let _ = server.wait_for(4);
    let tally = pusher.finish(PATIENCE);
    assert_eq!(
        tally,
        Tally {
            delivered: 2,
            refused: 1,
            ..Tally::default()
        }
    );
}
