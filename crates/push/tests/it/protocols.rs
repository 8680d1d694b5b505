//! The bytes that servers get, read with the published definitions of their protocols.

use crate::common;

use common::{gunzip, heap_profile, pprof, request, sums};
use heapline_push::{Protocol, SAMPLE_TYPES};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::profiles::v1development as otlp;
use prost::Message;

/// Each amount is rounded for each stack.
fn assert_close(sum: i64, total: f64, stacks: usize, name: &str) {
    assert!(total > 0.0, "{name} says something");
    let difference = (sum as f64 - total).abs();
    assert!(difference <= stacks as f64 / 2.0, "{name}: {sum} {total}");
}

/// Every index of a table is of one of its entries.
fn check_indices(dictionary: &otlp::ProfilesDictionary, profiles: &[otlp::Profile]) {
    let is_in = |index: i32, len: usize| (0..len).contains(&usize::try_from(index).unwrap());
    let strings = dictionary.string_table.len();
    for function in &dictionary.function_table {
        for index in [
            function.name_strindex,
            function.system_name_strindex,
            function.filename_strindex,
        ] {
            assert!(is_in(index, strings));
        }
    }
    for location in &dictionary.location_table[1..] {
        assert!(location.mapping_index == 1);
        for line in &location.lines {
            let function = line.function_index;
            assert!(function > 0 && is_in(function, dictionary.function_table.len()));
        }
    }
    for stack in &dictionary.stack_table[1..] {
        assert!(!stack.location_indices.is_empty());
        for &index in &stack.location_indices {
            assert!(index > 0 && is_in(index, dictionary.location_table.len()));
        }
    }
    for profile in profiles {
        for sample in &profile.samples {
            assert!(sample.stack_index > 0);
            assert!(is_in(sample.stack_index, dictionary.stack_table.len()));
        }
    }
}

#[test]
fn a_collector_gets_otlp_profiles_with_all_numbers() {
    let profile = heap_profile();
    let request = request(Protocol::Otlp, &profile);
    assert_eq!(request.path, "/v1development/profiles");
    assert_eq!(
        request.header("content-type"),
        Some("application/x-protobuf")
    );
    assert_eq!(request.header("content-encoding"), Some("gzip"));
    let message = ExportProfilesServiceRequest::decode(&gunzip(&request.body)[..]).unwrap();

    let dictionary = message.dictionary.unwrap();
    assert_eq!(dictionary.mapping_table[0], otlp::Mapping::default());
    assert_eq!(dictionary.location_table[0], otlp::Location::default());
    assert_eq!(dictionary.function_table[0], otlp::Function::default());
    assert_eq!(dictionary.stack_table[0], otlp::Stack::default());
    assert_eq!(
        dictionary.attribute_table[0],
        otlp::KeyValueAndUnit::default()
    );
    assert_eq!(dictionary.link_table[0].trace_id, [0; 16]);
    assert_eq!(dictionary.string_table[0], "");
    let string = |index: i32| &*dictionary.string_table[usize::try_from(index).unwrap()];

    let [resource] = &message.resource_profiles[..] else {
        panic!("one resource")
    };
    let attributes = &resource.resource.as_ref().unwrap().attributes;
    let attribute = |key: &str| {
        let found = attributes.iter().find(|attribute| attribute.key == key);
        found.unwrap().value.clone().unwrap().value.unwrap()
    };
    let text = |text: &str| Value::StringValue(text.to_owned());
    assert_eq!(attribute("service.name"), text("my service"));
    assert_eq!(attribute("deployment.env"), text("prod"));
    assert!(matches!(attribute("process.pid"), Value::IntValue(pid) if pid > 0));

    let profiles = &resource.scope_profiles[0].profiles;
    check_indices(&dictionary, profiles);
    let mut names = Vec::new();
    for sent in profiles {
        let kind = sent.sample_type.unwrap();
        let (name, unit) = (string(kind.type_strindex), string(kind.unit_strindex));
        let column = SAMPLE_TYPES.iter().position(|&known| known == (name, unit));
        let total = profile.total(column.unwrap());
        let sum = sent.samples.iter().flat_map(|sample| &sample.values).sum();
        assert_close(sum, total.value, sent.samples.len(), name);
        names.push(name.to_owned());
        assert_eq!(sent.profile_id.len(), 16);
        assert_eq!(sent.duration_nano > 0, name.starts_with("alloc"));
        assert!(sent.period > 1 && string(sent.period_type.unwrap().type_strindex) == "space");
        // The error of the total.
        let attributes = sent.attribute_indices.iter().map(|&index| {
            let attribute = &dictionary.attribute_table[usize::try_from(index).unwrap()];
            let value = attribute.value.clone().unwrap().value.unwrap();
            (string(attribute.key_strindex), value)
        });
        let expected = [
            ("heapline.total", Value::DoubleValue(total.value)),
            ("heapline.error95", Value::DoubleValue(total.error)),
        ];
        assert!(attributes.eq(expected), "{name}");
    }
    assert_eq!(
        names,
        [
            "inuse_space",
            "inuse_objects",
            "alloc_space",
            "alloc_objects"
        ]
    );
    let ends = |sent: &otlp::Profile| sent.time_unix_nano + sent.duration_nano;
    assert!(profiles.iter().all(|sent| ends(sent) == ends(&profiles[0])));
}

#[test]
fn pyroscope_gets_pprof_with_labels_in_the_name() {
    let profile = heap_profile();
    let request = request(Protocol::Pyroscope, &profile);
    let (path, query) = request.path.split_once('?').unwrap();
    assert_eq!(path, "/ingest");
    let query: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    let value = |name: &str| &*query.iter().find(|(other, _)| other == name).unwrap().1;
    let name = value("name");
    assert!(name.starts_with("my_service{host="), "{name}");
    assert!(name.ends_with(",deployment_env=prod}"), "{name}");
    assert_eq!(value("format"), "pprof");
    let sent = pprof(&request.body);
    let second = 1_000_000_000;
    let (from, until): (i64, i64) = (
        value("from").parse().unwrap(),
        value("until").parse().unwrap(),
    );
    assert_eq!(from, sent.time_nanos / second);
    let end = sent.time_nanos + sent.duration_nanos;
    assert!(until * second >= end && (until - 1) * second < end);
    for (column, (name, sum)) in sums(&sent).into_iter().enumerate() {
        assert_eq!(name, SAMPLE_TYPES[column].0);
        assert_close(sum, profile.total(column).value, sent.sample.len(), &name);
    }
    assert!(sent.duration_nanos > 0 && sent.sample_type.len() == 4);
    let comment = &sent.string_table[usize::try_from(sent.comment[0]).unwrap()];
    let error = format!("± {:.0} bytes", profile.total(3).error);
    assert!(comment.contains(&error), "{comment}");
}

/// `parca/profilestore/v1alpha1/profilestore.proto`, by its published field numbers.
mod parca {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct WriteRawRequest {
        #[prost(string, tag = "1")]
        pub(crate) tenant: String,
        #[prost(message, repeated, tag = "2")]
        pub(crate) series: Vec<RawProfileSeries>,
        #[prost(bool, tag = "3")]
        pub(crate) normalized: bool,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct RawProfileSeries {
        #[prost(message, optional, tag = "1")]
        pub(crate) labels: Option<LabelSet>,
        #[prost(message, repeated, tag = "2")]
        pub(crate) samples: Vec<RawSample>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct LabelSet {
        #[prost(message, repeated, tag = "1")]
        pub(crate) labels: Vec<Label>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Label {
        #[prost(string, tag = "1")]
        pub(crate) name: String,
        #[prost(string, tag = "2")]
        pub(crate) value: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct RawSample {
        #[prost(bytes = "vec", tag = "1")]
        pub(crate) raw_profile: Vec<u8>,
    }
}

#[test]
fn parca_gets_changes_and_live_memory_apart() {
    let profile = heap_profile();
    let request = request(Protocol::Parca, &profile);
    let service = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw";
    assert_eq!(request.path, service);
    assert_eq!(
        request.header("content-type"),
        Some("application/grpc-web+proto")
    );
    let (frame, message) = request.body.split_at(5);
    assert_eq!(frame[0], 0);
    let len = u32::from_be_bytes(frame[1..].try_into().unwrap());
    assert_eq!(len as usize, message.len());
    let message = parca::WriteRawRequest::decode(message).unwrap();
    assert!(message.tenant.is_empty() && !message.normalized);
    let [series] = &message.series[..] else {
        panic!("one series")
    };
    let labels = series.labels.clone().unwrap().labels;
    let label = |name: &str| &*labels.iter().find(|l| l.name == name).unwrap().value;
    assert_eq!(label("__name__"), "memory");
    assert_eq!(label("service_name"), "my service");
    assert_eq!(label("deployment_env"), "prod");
    assert!(!label("host").is_empty());

    let profiles: Vec<_> = series
        .samples
        .iter()
        .map(|s| pprof(&s.raw_profile))
        .collect();
    let [allocated, in_use] = &profiles[..] else {
        panic!("two profiles")
    };
    assert!(allocated.duration_nanos > 0, "a change");
    assert_eq!(in_use.duration_nanos, 0, "no change");
    assert_eq!(
        in_use.time_nanos,
        allocated.time_nanos + allocated.duration_nanos
    );
    let numbers = sums(allocated).into_iter().chain(sums(in_use));
    for (column, (name, sum)) in numbers.enumerate() {
        assert_eq!(name, SAMPLE_TYPES[column].0);
        assert_close(sum, profile.total(column).value, profile.len(), &name);
    }
    assert_eq!(
        (allocated.sample_type.len(), in_use.sample_type.len()),
        (2, 2)
    );
}
