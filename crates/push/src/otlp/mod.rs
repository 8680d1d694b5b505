//! OpenTelemetry: OTLP profiles, by `POST /v1development/profiles`.

mod proto;

use heapline_export::pprof::Strings;
use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;
use prost::Message as _;

use crate::heap_profile::{ALLOCATED, HeapProfile, SAMPLE_TYPES};
use crate::identity::Identity;
use crate::message::{Failure, Message, Rejection, shortened};
use crate::pprof::gzip;
use proto::{AnyValue, KeyValue, Value};

const PATH: &str = "/v1development/profiles";

const PROTOBUF: &str = "application/x-protobuf";

/// The order of profiles: servers show the first one by default. Places in [`SAMPLE_TYPES`].
const ORDER: [usize; 4] = [3, 2, 1, 0];

pub(crate) fn message(profile: &HeapProfile, identity: &Identity) -> Message {
    let mut dictionary = Dictionary::new(profile);
    let columns = ORDER
        .iter()
        .filter(|column| profile.columns.contains(column));
    let profiles: Vec<_> = columns.map(|&column| dictionary.profile(column)).collect();
    let count = profiles.len() as u64;
    let request = proto::ExportProfilesServiceRequest {
        resource_profiles: vec![proto::ResourceProfiles {
            resource: Some(proto::Resource {
                attributes: attributes(profile, identity),
            }),
            scope_profiles: vec![proto::ScopeProfiles {
                scope: Some(proto::InstrumentationScope {
                    name: "heapline".to_owned(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                }),
                profiles,
            }],
        }],
        dictionary: Some(dictionary.finish()),
    };
    Message {
        path: PATH.to_owned(),
        content_type: PROTOBUF,
        is_compressed: true,
        body: gzip(&request.encode_to_vec()).into(),
        profiles: count,
    }
}

/// The attributes of the process, by OpenTelemetry's semantic conventions. Those of the user go first.
fn attributes(profile: &HeapProfile, identity: &Identity) -> Vec<KeyValue> {
    let attribute = |key: &str, value: Value| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
    };
    let text = |key: &str, value: &str| attribute(key, Value::String(value.to_owned()));
    let pid = Value::Int(profile.pid.try_into().unwrap_or(i64::MAX));
    let mut attributes = vec![
        text("service.name", identity.service(profile)),
        text("host.name", &profile.host),
        attribute("process.pid", pid),
        text("process.executable.name", profile.program_name()),
    ];
    for label in &identity.labels {
        attributes.retain(|other| other.key != label.name);
        attributes.push(text(&label.name, &label.value));
    }
    attributes
}

/// The tables that profiles share.
struct Dictionary<'a> {
    heap: &'a HeapProfile,
    strings: Strings,
    attributes: Vec<proto::KeyValueAndUnit>,
}

impl<'a> Dictionary<'a> {
    fn new(heap: &'a HeapProfile) -> Self {
        Self {
            heap,
            strings: Strings::default(),
            attributes: vec![proto::KeyValueAndUnit::default()],
        }
    }

    /// The profile of one type of samples: OTLP has a profile for each.
    fn profile(&mut self, column: usize) -> proto::Profile {
        let heap = self.heap;
        let (name, unit) = SAMPLE_TYPES[column];
        let (time_unix_nano, duration_nano) = if column < ALLOCATED {
            (heap.from, heap.duration())
        } else {
            (heap.until, 0)
        };
        let samples = (1..).zip(&heap.samples);
        proto::Profile {
            sample_type: Some(self.value_type(name, unit)),
            samples: samples
                .filter(|(_, sample)| sample.values[column] != 0)
                .map(|(stack_index, sample)| proto::Sample {
                    stack_index,
                    values: vec![sample.values[column]],
                })
                .collect(),
            time_unix_nano,
            duration_nano,
            period_type: Some(self.value_type("space", "bytes")),
            period: heap.period,
            profile_id: random_id(),
            attribute_indices: vec![
                self.attribute("heapline.total", heap.totals[column].value, unit),
                self.attribute("heapline.error95", heap.totals[column].error, unit),
            ],
        }
    }

    fn attribute(&mut self, key: &str, value: f64, unit: &str) -> i32 {
        let attribute = proto::KeyValueAndUnit {
            key_strindex: self.string(key),
            value: Some(AnyValue {
                value: Some(Value::Double(value)),
            }),
            unit_strindex: self.string(unit),
        };
        self.attributes.push(attribute);
        index(self.attributes.len() - 1)
    }

    fn value_type(&mut self, name: &str, unit: &str) -> proto::ValueType {
        proto::ValueType {
            type_strindex: self.string(name),
            unit_strindex: self.string(unit),
        }
    }

    fn string(&mut self, string: &str) -> i32 {
        index(self.strings.place(string))
    }

    fn finish(mut self) -> proto::ProfilesDictionary {
        let tables = &self.heap.tables;
        let program = proto::Mapping {
            filename_strindex: self.string(&self.heap.program),
        };
        let mut functions = vec![proto::Function::default()];
        for function in &tables.functions {
            functions.push(proto::Function {
                name_strindex: self.string(&function.name),
                system_name_strindex: self.string(&function.system_name),
                filename_strindex: self.string(&function.file),
            });
        }
        let mut locations = vec![proto::Location::default()];
        locations.extend(tables.locations.iter().map(|location| proto::Location {
            mapping_index: 1,
            lines: vec![proto::Line {
                function_index: after_empty(location.function),
                line: location.line.into(),
                column: location.column.into(),
            }],
        }));
        let mut stacks = vec![proto::Stack::default()];
        stacks.extend(self.heap.samples.iter().map(|sample| {
            proto::Stack {
                location_indices: sample
                    .stack
                    .iter()
                    .map(|&place| after_empty(place))
                    .collect(),
            }
        }));
        proto::ProfilesDictionary {
            mapping_table: vec![proto::Mapping::default(), program],
            location_table: locations,
            function_table: functions,
            link_table: vec![proto::Link {
                trace_id: vec![0; 16],
                span_id: vec![0; 8],
            }],
            string_table: self.strings.into_list(),
            attribute_table: self.attributes,
            stack_table: stacks,
        }
    }
}

fn index(place: usize) -> i32 {
    i32::try_from(place).unwrap_or(i32::MAX)
}

/// The place in a table whose first entry is empty.
fn after_empty(place: u32) -> i32 {
    index(place as usize + 1)
}

/// An id by which a server can tell that a profile was sent twice.
fn random_id() -> Vec<u8> {
    let mut id = vec![0; 16];
    // Without random numbers it is not set.
    match getrandom::fill(&mut id) {
        Ok(()) => id,
        Err(_) => Vec::new(),
    }
}

/// Reads a successful answer: the server may have rejected a part.
pub(crate) fn check(body: &[u8]) -> Result<Option<Rejection>, Failure> {
    let Ok(response) = proto::ExportProfilesServiceResponse::decode(body) else {
        return Err(Failure::Permanent {
            reason: "the answer is not one of OTLP; is this the address of a collector?".to_owned(),
        });
    };
    let rejection = response.partial_success.map(|partial| Rejection {
        profiles: partial.rejected_profiles.try_into().unwrap_or(0),
        reason: shortened(&partial.error_message),
    });
    Ok(rejection.filter(|rejection| *rejection != Rejection::default()))
}

/// The message of an error, if it is encoded as the protocol wants it.
pub(crate) fn error_text(headers: &HeaderMap, body: &[u8]) -> Option<String> {
    let content_type = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let status = content_type
        .starts_with(PROTOBUF)
        .then(|| proto::Status::decode(body));
    Some(status?.ok()?.message)
}
