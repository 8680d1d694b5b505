//! The messages of OpenTelemetry's `profiles.proto` (version 1.10, v1development), as far as they are used
//! here. The crate `opentelemetry-proto` has them all, and needs OpenTelemetry's SDK for that; the tests read with
//! it what is written here.
//!
//! Fields named `_index` and `_strindex` are places in the tables of the dictionary, whose first entries are
//! empty.
#![expect(clippy::struct_field_names, reason = "the format has these names")]

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ExportProfilesServiceRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) resource_profiles: Vec<ResourceProfiles>,
    #[prost(message, optional, tag = "2")]
    pub(super) dictionary: Option<ProfilesDictionary>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ExportProfilesServiceResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) partial_success: Option<ExportProfilesPartialSuccess>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ExportProfilesPartialSuccess {
    #[prost(int64, tag = "1")]
    pub(super) rejected_profiles: i64,
    #[prost(string, tag = "2")]
    pub(super) error_message: String,
}

/// The body of answers that are errors: `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Status {
    #[prost(string, tag = "2")]
    pub(super) message: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ProfilesDictionary {
    #[prost(message, repeated, tag = "1")]
    pub(super) mapping_table: Vec<Mapping>,
    #[prost(message, repeated, tag = "2")]
    pub(super) location_table: Vec<Location>,
    #[prost(message, repeated, tag = "3")]
    pub(super) function_table: Vec<Function>,
    #[prost(message, repeated, tag = "4")]
    pub(super) link_table: Vec<Link>,
    #[prost(string, repeated, tag = "5")]
    pub(super) string_table: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    pub(super) attribute_table: Vec<KeyValueAndUnit>,
    #[prost(message, repeated, tag = "7")]
    pub(super) stack_table: Vec<Stack>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ResourceProfiles {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_profiles: Vec<ScopeProfiles>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3, 4")]
    pub(super) value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Value {
    #[prost(string, tag = "1")]
    String(String),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(double, tag = "4")]
    Double(f64),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ScopeProfiles {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) profiles: Vec<Profile>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct InstrumentationScope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Profile {
    #[prost(message, optional, tag = "1")]
    pub(super) sample_type: Option<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(super) samples: Vec<Sample>,
    #[prost(fixed64, tag = "3")]
    pub(super) time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    pub(super) duration_nano: u64,
    #[prost(message, optional, tag = "5")]
    pub(super) period_type: Option<ValueType>,
    #[prost(int64, tag = "6")]
    pub(super) period: i64,
    #[prost(bytes = "vec", tag = "7")]
    pub(super) profile_id: Vec<u8>,
    #[prost(int32, repeated, tag = "11")]
    pub(super) attribute_indices: Vec<i32>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct ValueType {
    #[prost(int32, tag = "1")]
    pub(super) type_strindex: i32,
    #[prost(int32, tag = "2")]
    pub(super) unit_strindex: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Sample {
    #[prost(int32, tag = "1")]
    pub(super) stack_index: i32,
    #[prost(int64, repeated, tag = "4")]
    pub(super) values: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Mapping {
    #[prost(int32, tag = "4")]
    pub(super) filename_strindex: i32,
}

/// Innermost first.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Stack {
    #[prost(int32, repeated, tag = "1")]
    pub(super) location_indices: Vec<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Location {
    #[prost(int32, tag = "1")]
    pub(super) mapping_index: i32,
    #[prost(message, repeated, tag = "3")]
    pub(super) lines: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Line {
    #[prost(int32, tag = "1")]
    pub(super) function_index: i32,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
    #[prost(int64, tag = "3")]
    pub(super) column: i64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Function {
    #[prost(int32, tag = "1")]
    pub(super) name_strindex: i32,
    #[prost(int32, tag = "2")]
    pub(super) system_name_strindex: i32,
    #[prost(int32, tag = "3")]
    pub(super) filename_strindex: i32,
}

/// Never used but for the empty one at the start of its table.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Link {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) span_id: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct KeyValueAndUnit {
    #[prost(int32, tag = "1")]
    pub(super) key_strindex: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
    #[prost(int32, tag = "3")]
    pub(super) unit_strindex: i32,
}
