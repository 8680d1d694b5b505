//! Traces that are read several times, even from a pipe.

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
    let against = against.map(|trace| input.reading.input(&trace));
    Ok((trace(input)?, against.as_ref().map(trace).transpose()?))
}

/// Opens a trace so that it can be read several times: a pipe is copied to a temporary file.
pub(crate) fn snapshot(input: &Input) -> anyhow::Result<Snapshot> {
    match input.file_size() {
        Some(_) => input.snapshot(),
        None => Snapshot::of_file(copy(input)?).context("cannot read a temporary file"),
    }
}

fn trace(input: &Input) -> anyhow::Result<Trace> {
    let snapshot = snapshot(input)?;
    Ok(Trace {
        path: input.trace.display().to_string(),
        size: input.file_size(),
        strict: input.reading.strict,
        executable: input.reading.executable()?,
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
