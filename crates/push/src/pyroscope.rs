//! Pyroscope: pprof profiles, by `POST /ingest`.

use form_urlencoded::Serializer;

use crate::heap_profile::HeapProfile;
use crate::identity::Identity;
use crate::message::Message;
use crate::pprof;

const NANOS: u64 = 1_000_000_000;

pub(crate) fn message(profile: &HeapProfile, identity: &Identity) -> Message {
    let mut query = Serializer::new(String::new());
    query
        .append_pair("name", &name(profile, identity))
        .append_pair("from", &(profile.from / NANOS).to_string())
        .append_pair("until", &profile.until.div_ceil(NANOS).to_string())
        .append_pair("format", "pprof")
        .append_pair("spyName", "heapline");
    Message {
        path: format!("/ingest?{}", query.finish()),
        content_type: "application/octet-stream",
        // The body is a compressed file; the request itself is not compressed.
        is_compressed: false,
        body: pprof::compressed(profile, &profile.columns, false).into(),
        profiles: 1,
    }
}

/// The name of the application with its labels: `server{host=a,env=production}`.
fn name(profile: &HeapProfile, identity: &Identity) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '/' | '_');
    let service = identity.service(profile);
    let service = service.replace(|c| !is_allowed(c), "_");
    let labels = identity.plain_labels(profile).into_iter();
    let labels: Vec<String> = labels
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!("{service}{{{}}}", labels.join(","))
}
