//! Parca: pprof profiles, by `ProfileStoreService/WriteRaw`.
//!
//! The call is sent as gRPC-Web, which Parca's server takes on the same port as gRPC: the same message, framed
//! for HTTP/1.1. See <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md>.

use std::str;

use hyper::HeaderMap;
use prost::Message as _;

use crate::heap_profile::{ALLOCATED, HeapProfile};
use crate::identity::Identity;
use crate::message::{Failure, Message, Rejection, shortened};
use crate::pprof;

const PATH: &str = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw";

/// The bytes before a message or before trailers: flags and the length.
const FRAME: usize = 5;

/// The flag of a frame with trailers.
const TRAILERS: u8 = 0x80;

/// Codes of gRPC for errors that may pass: `DEADLINE_EXCEEDED`, `RESOURCE_EXHAUSTED`, `ABORTED`, `UNAVAILABLE`.
const TEMPORARY: [u32; 4] = [4, 8, 10, 14];

/// The messages of `parca/profilestore/v1alpha1/profilestore.proto`, as far as they are used here.
mod proto {
    /// A request to store profiles.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct WriteRawRequest {
        #[prost(message, repeated, tag = "2")]
        pub(super) series: Vec<RawProfileSeries>,
    }

    /// Profiles with labels.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct RawProfileSeries {
        #[prost(message, optional, tag = "1")]
        pub(super) labels: Option<LabelSet>,
        #[prost(message, repeated, tag = "2")]
        pub(super) samples: Vec<RawSample>,
    }

    /// Labels.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct LabelSet {
        #[prost(message, repeated, tag = "1")]
        pub(super) labels: Vec<Label>,
    }

    /// A label.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Label {
        #[prost(string, tag = "1")]
        pub(super) name: String,
        #[prost(string, tag = "2")]
        pub(super) value: String,
    }

    /// A profile.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct RawSample {
        #[prost(bytes = "vec", tag = "1")]
        pub(super) raw_profile: Vec<u8>,
    }
}

pub(crate) fn message(profile: &HeapProfile, identity: &Identity) -> Message {
    let mut labels = identity.plain_labels(profile);
    if !labels.iter().any(|(name, _)| name == "service_name") {
        labels.push((
            "service_name".to_owned(),
            identity.service(profile).to_owned(),
        ));
    }
    labels.push(("__name__".to_owned(), "memory".to_owned()));
    labels.sort();
    let labels = labels.into_iter();
    let labels = labels.map(|(name, value)| proto::Label { name, value });

    let (allocated, in_use): (Vec<usize>, Vec<usize>) = profile
        .columns
        .iter()
        .partition(|&&column| column < ALLOCATED);
    // What was allocated is a change, and what is live is not: they are profiles of their own.
    let raw = [
        pprof::compressed(profile, &allocated, false),
        pprof::compressed(profile, &in_use, true),
    ];
    let request = proto::WriteRawRequest {
        series: vec![proto::RawProfileSeries {
            labels: Some(proto::LabelSet {
                labels: labels.collect(),
            }),
            samples: raw
                .map(|raw_profile| proto::RawSample { raw_profile })
                .into(),
        }],
    };
    Message {
        path: PATH.to_owned(),
        content_type: "application/grpc-web+proto",
        is_compressed: false,
        body: framed(&request.encode_to_vec()).into(),
        profiles: 1,
    }
}

/// A message in a frame.
fn framed(message: &[u8]) -> Vec<u8> {
    let len = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(FRAME + message.len());
    bytes.push(0);
    bytes.extend(len.to_be_bytes());
    bytes.extend(message);
    bytes
}

/// Checks the status of a call, which is in the last frame, or in the headers if there is no message.
pub(crate) fn check(headers: &HeaderMap, body: &[u8]) -> Result<Option<Rejection>, Failure> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let trailers = trailers(body).unwrap_or_default();
    let field = |name: &str| header(name).or_else(|| trailer(trailers, name));
    let Some(status) = field("grpc-status") else {
        return Err(Failure::Permanent {
            reason: "the answer is not one of gRPC-Web; is this the address of a Parca server?"
                .to_owned(),
        });
    };
    let code = status.parse().unwrap_or(u32::MAX);
    if code == 0 {
        return Ok(None);
    }
    let text = field("grpc-message").unwrap_or_default();
    let reason = format!("gRPC status {status}: {}", shortened(text));
    Err(if TEMPORARY.contains(&code) {
        Failure::temporary(reason)
    } else {
        Failure::Permanent { reason }
    })
}

/// The last frame, if it is one of trailers.
fn trailers(mut body: &[u8]) -> Option<&str> {
    loop {
        let (frame, rest) = body.split_at_checked(FRAME)?;
        let len = u32::from_be_bytes(frame[1..].try_into().ok()?);
        let (content, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
        if frame[0] & TRAILERS != 0 {
            return str::from_utf8(content).ok();
        }
        body = rest;
    }
}

fn trailer<'a>(trailers: &'a str, name: &str) -> Option<&'a str> {
    trailers.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(trailers: &str) -> Vec<u8> {
        let mut body = framed(b"");
        let mut last = framed(trailers.as_bytes());
        last[0] = TRAILERS;
        body.extend(last);
        body
    }

    #[test]
    fn the_status_of_a_call_is_in_the_trailers_or_in_the_headers() {
        let none = HeaderMap::new();
        assert_eq!(check(&none, &answered("grpc-status: 0\r\n")), Ok(None));
        assert_eq!(
            check(&none, &answered("Grpc-Status:0\r\nx: y\r\n")),
            Ok(None)
        );
        let refused = check(
            &none,
            &answered("grpc-status: 3\r\ngrpc-message: invalid\r\n"),
        );
        let reason = "gRPC status 3: invalid".to_owned();
        assert_eq!(refused, Err(Failure::Permanent { reason }));
        let busy = check(&none, &answered("grpc-status: 14\r\n"));
        assert!(matches!(busy, Err(Failure::Temporary { .. })));
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", "8".parse().unwrap());
        assert!(matches!(
            check(&headers, b""),
            Err(Failure::Temporary { .. })
        ));
    }

    #[test]
    fn other_answers_are_not_taken_for_success() {
        let none = HeaderMap::new();
        for body in [
            &b""[..],
            b"<html>",
            b"\x80\0\0\0\x05grpc",
            &[0xff; 20],
            &[0; 5],
        ] {
            let failure = check(&none, body);
            assert!(
                matches!(failure, Err(Failure::Permanent { .. })),
                "{body:?}"
            );
        }
    }
}
