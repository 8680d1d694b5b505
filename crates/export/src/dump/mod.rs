//! The events of a trace as text.
//!
//! All formats are written without formatting machinery: on a real trace a line is some
//! kilobytes long, nearly all of which is the same as in the line before. What a stack shares
//! with the previous one of its domain is therefore copied as one piece of text.

mod alloc_stats;
mod csv;
mod json_lines;
mod memtrace;
mod stack_text;

use std::io::{self, Read, Write};

use heapline_trace::{Error, Event, Locations, Reader, TraceInfo};

use crate::text::Out;

/// The format of dumped events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The format of memtrace's `dump_trace`.
    Memtrace,
    /// The format of ocaml-alloc-stats: no stacks.
    AllocStats,
    /// Comma-separated values with a header line.
    Csv,
    /// One JSON object a line: the trace, locations before their first use, and events.
    JsonLines,
}

impl Format {
    /// Returns true if the trace has to be read with its stacks.
    #[must_use]
    pub fn needs_stacks(self) -> bool {
        self != Self::AllocStats
    }
}

/// The error of a dump.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The trace could not be read.
    #[error(transparent)]
    Read(#[from] Error),
    /// The text could not be written.
    #[error("cannot write the dump")]
    Write(#[source] io::Error),
}

/// Writes the rest of a trace as text.
pub fn dump<R: Read>(
    reader: &mut Reader<R>,
    format: Format,
    out: &mut impl Write,
) -> Result<(), DumpError> {
    match format {
        Format::Memtrace => run(reader, memtrace::Lines::default(), out),
        Format::AllocStats => run(reader, alloc_stats::Lines, out),
        Format::Csv => run(reader, csv::Lines::default(), out),
        Format::JsonLines => run(reader, json_lines::Lines::default(), out),
    }
}

/// One format.
trait Lines {
    /// Writes the header, before the first event.
    fn begin(&mut self, _info: &TraceInfo, _version: u16, _out: &mut Out<'_>) {}
    /// One event.
    fn event(&mut self, event: &Event<'_>, locations: &Locations, out: &mut Out<'_>);
}

fn run<R: Read>(
    reader: &mut Reader<R>,
    mut lines: impl Lines,
    out: &mut impl Write,
) -> Result<(), DumpError> {
    let mut out = Out::new(out);
    lines.begin(reader.info(), reader.version(), &mut out);
    while reader
        .next_packet(|event, locations| lines.event(&event, locations, &mut out))?
        .is_some()
    {
        out.check().map_err(DumpError::Write)?;
    }
    out.finish().map_err(DumpError::Write)
}
