//! Retaining paths of a heap snapshot.

use std::io::{self, BufWriter, Write};

use heapline_heap::{Class, Heap};

use super::PROGRAM;
use super::pieces::{Sink, Strings};
use super::proto;
use crate::names::{or_unknown, saturated};

/// The columns.
const COLUMNS: [(&str, &str); 2] = [("inuse_objects", "count"), ("inuse_space", "bytes")];

/// Writes the shortest paths from roots to all blocks for pprof, aggregated by name: names take the place of functions.
/// The output is compressed with gzip.
pub fn paths(heap: &Heap, out: &mut impl Write) -> io::Result<()> {
    let mut sink = Sink::new(BufWriter::new(out));
    let mut strings = Strings::default();
    let mut value_type = |(name, unit)| proto::ValueType {
        r#type: strings.number(name),
        unit: strings.number(unit),
    };
    let sample_type: Vec<_> = COLUMNS.iter().map(|&column| value_type(column)).collect();
    let program = heap.graph().property("program").unwrap_or_default();
    sink.put(&proto::Profile {
        sample_type,
        default_sample_type: strings.number("inuse_space"),
        comment: vec![
            strings.number("Retaining paths of a heap snapshot, by heapline: exact amounts"),
        ],
        mapping: vec![proto::Mapping {
            id: PROGRAM,
            filename: strings.number(program),
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
        }],
        ..Default::default()
    })?;
    let tree = heap.path_tree();
    let mut classes: Vec<u32> = Vec::new();
    for id in tree.ids() {
        classes.push(tree.class(id));
        let own = tree.own(id);
        if own.blocks == 0 && own.bytes == 0 {
            continue;
        }
        let path = tree.path(heap, id);
        let mut sample = proto::Sample {
            // Innermost first.
            location_id: path
                .iter()
                .rev()
                .map(|&id| u64::from(tree.class(id)) + 1)
                .collect(),
            value: vec![saturated(own.blocks), saturated(own.bytes)],
            label: Vec::new(),
        };
        sink.sample(&mut sample)?;
    }
    classes.sort_unstable();
    classes.dedup();
    for class in classes {
        let Class { name, place, .. } = heap.class_by_id(class);
        let (file, line) = place.as_deref().map_or(("", 0), split);
        let function_id = u64::from(class) + 1;
        let place = proto::Line {
            function_id,
            line,
            column: 0,
        };
        sink.location(class as usize, place)?;
        sink.function(proto::Function {
            id: function_id,
            name: strings.number(or_unknown(name)),
            system_name: 0,
            filename: strings.number(file),
        })?;
    }
    sink.finish(strings)
}

/// The file and line of a place.
fn split(place: &str) -> (&str, i64) {
    match place.rsplit_once(':') {
        Some((file, line)) => (file, line.parse().unwrap_or(0)),
        None => (place, 0),
    }
}
