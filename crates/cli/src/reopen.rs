//! Traces for the viewer and the report file.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use anyhow::Context;
use heapline_server::Trace;
use heapline_trace::Snapshot;

use crate::input::Input;

/// Opens a trace, and the earlier one if there is one.
pub(crate) fn traces(
    input: &Input,
    against: Option<PathBuf>,
) -> anyhow::Result<(Trace, Option<Trace>)> {
    let against = against.map(|trace| Input {
        trace,
        strict: input.strict,
    });
    Ok((trace(input)?, against.as_ref().map(trace).transpose()?))
}

fn trace(input: &Input) -> anyhow::Result<Trace> {
    let size = input.file_size();
    let snapshot = match size {
        Some(_) => input.snapshot()?,
        None => Snapshot::of_file(copy(input)?).context("cannot read a temporary file")?,
    };
    Ok(Trace {
        path: input.trace.display().to_string(),
        size,
        strict: input.strict,
        open: Box::new(move || Ok(Box::new(snapshot.reader()))),
    })
}

/// Copies a pipe to an unnamed temporary file.
fn copy(input: &Input) -> anyhow::Result<File> {
    let mut source = input.bytes()?;
    let mut file = tempfile::tempfile().context("cannot create a temporary file")?;
    io::copy(&mut source, &mut file)
        .with_context(|| format!("cannot copy {} to a temporary file", input.name()))?;
    Ok(file)
}
