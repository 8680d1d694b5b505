//! Profiles in pprof's format.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use heapline_export::pprof::{Strings, proto};
use prost::Message;

use crate::heap_profile::{HeapProfile, SAMPLE_TYPES};

/// The id of the program.
const PROGRAM: u64 = 1;

/// A profile with some of the [`SAMPLE_TYPES`], compressed with gzip. One about a moment has no duration: Parca
/// takes profiles with a duration for changes.
pub(crate) fn compressed(profile: &HeapProfile, columns: &[usize], is_of_moment: bool) -> Vec<u8> {
    let (time, duration) = if is_of_moment {
        (profile.until, 0)
    } else {
        (profile.from, profile.duration())
    };
    let mut strings = Strings::default();
    let message = proto::Profile {
        time_nanos: signed(time),
        duration_nanos: signed(duration),
        ..encode(profile, columns, &mut strings)
    };
    let message = proto::Profile {
        string_table: strings.into_list(),
        ..message
    };
    gzip(&message.encode_to_vec())
}

fn encode(profile: &HeapProfile, columns: &[usize], strings: &mut Strings) -> proto::Profile {
    let mut value_type = |(name, unit): (&str, &str)| proto::ValueType {
        r#type: strings.number(name),
        unit: strings.number(unit),
    };
    let sample_type = columns.iter().map(|&c| value_type(SAMPLE_TYPES[c]));
    let sample_type = sample_type.collect();
    let period_type = Some(value_type(("space", "bytes")));
    let samples = profile.samples.iter();
    let tables = &profile.tables;
    proto::Profile {
        sample_type,
        period_type,
        period: profile.period,
        default_sample_type: columns
            .last()
            .map_or(0, |&column| strings.number(SAMPLE_TYPES[column].0)),
        comment: vec![strings.number(&profile.note(columns))],
        mapping: vec![proto::Mapping {
            id: PROGRAM,
            filename: strings.number(&profile.program),
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
        }],
        sample: samples
            .map(|sample| proto::Sample {
                location_id: sample.stack.iter().map(|&place| id(place)).collect(),
                value: columns.iter().map(|&c| sample.values[c]).collect(),
                label: Vec::new(),
            })
            .filter(|sample| sample.value.iter().any(|&value| value != 0))
            .collect(),
        location: (0..)
            .zip(&tables.locations)
            .map(|(place, location)| proto::Location {
                id: id(place),
                mapping_id: PROGRAM,
                line: vec![proto::Line {
                    function_id: id(location.function),
                    line: location.line.into(),
                    column: location.column.into(),
                }],
            })
            .collect(),
        function: (0..)
            .zip(&tables.functions)
            .map(|(place, function)| proto::Function {
                id: id(place),
                name: strings.number(&function.name),
                system_name: strings.number(&function.system_name),
                filename: strings.number(&function.file),
            })
            .collect(),
        ..proto::Profile::default()
    }
}

/// The id of a place in a table: they begin with 1.
fn id(place: u32) -> u64 {
    u64::from(place) + 1
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Compresses bytes.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_else(|error| unreachable!("nothing fails in memory: {error}"))
}
