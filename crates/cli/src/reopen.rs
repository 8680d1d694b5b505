//! Files that are read several times, even from a pipe.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context;
use heapline_heap::read_property;
use heapline_heap::reports::HeapError;
use heapline_server::{FindRecording, SiteSource, SnapshotFolder, Subjects, Trace};
use heapline_trace::Snapshot;

use crate::input::Input;
use crate::snapshot_file::{is_snapshot_file, recording_of};

/// Opens a trace, and the earlier one if there is one.
pub(crate) fn traces(
    input: &Input,
    against: Option<PathBuf>,
) -> anyhow::Result<(Trace, Option<Trace>)> {
    let against = against.map(|trace| input.reading.input(&trace));
    Ok((trace(input)?, against.as_ref().map(trace).transpose()?))
}

/// Opens heap snapshots for the viewer, with the recording that the user gave or the one that the snapshot names. Names
/// in messages and commands are made by `name`.
pub(crate) fn snapshots(
    snapshot: &Input,
    against: Option<&Path>,
    recording: Option<&Path>,
    name: fn(Trace) -> Trace,
) -> anyhow::Result<Subjects> {
    let reading = snapshot.reading.clone();
    let open_recording = move |path: &Path| trace(&reading.input(path)).map(name);
    let given = recording.map(&open_recording).transpose()?;
    let path = snapshot.trace.clone();
    let find: FindRecording = Box::new(move |named| match recording_of(&path, named) {
        Some(path) => open_recording(&path).map_err(|error| format!("{error:#}")),
        None => Err(HeapError::NoRecording.to_string()),
    });
    let open = |path: &Path| snapshot_file(path).map(name);
    Ok(Subjects::of_snapshots(
        open(&snapshot.trace)?,
        against.map(open).transpose()?,
        SiteSource { given, find },
    ))
}

/// The heap snapshots that were taken while a trace was recorded, and are in the same directory.
#[derive(Debug)]
pub(crate) struct SnapshotsBeside(pub(crate) Input);

/// Files of a directory that are looked at.
const MOST_FILES: usize = 1000;

impl SnapshotFolder for SnapshotsBeside {
    fn names(&self) -> Vec<String> {
        let trace = &self.0.trace;
        let is_of_trace = |path: &Path| {
            let named = File::open(path)
                .ok()
                .and_then(|file| read_property(file, "trace").ok().flatten());
            named.is_some_and(|named| Path::new(&named).file_name() == trace.file_name())
        };
        let Ok(entries) = directory(trace).read_dir() else {
            return Vec::new();
        };
        let paths = entries.flatten().map(|entry| entry.path());
        let files = paths.filter(|path| path.extension().is_some_and(|end| end == "heap"));
        let files = files.take(MOST_FILES).filter(|path| is_snapshot_file(path));
        let mut found: Vec<(Option<SystemTime>, String)> = files
            .filter(|path| is_of_trace(path))
            .filter_map(|path| {
                let time = path.metadata().and_then(|metadata| metadata.modified());
                let name = path.file_name()?.to_str()?.to_owned();
                Some((time.ok(), name))
            })
            .collect();
        found.sort();
        found.into_iter().map(|(_, name)| name).collect()
    }

    fn open(&self, name: &str) -> Result<Subjects, String> {
        let input = self.0.reading.input(&self.0.trace.with_file_name(name));
        snapshots(&input, None, None, |file| file).map_err(|error| format!("{error:#}"))
    }
}

/// The directory of a file.
fn directory(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn snapshot_file(path: &Path) -> anyhow::Result<Trace> {
    let shown = path.display().to_string();
    anyhow::ensure!(
        is_snapshot_file(path),
        "{shown} is not a heap snapshot; two snapshots or two traces can be compared"
    );
    let path = path.to_owned();
    Ok(Trace {
        size: path.metadata().ok().map(|metadata| metadata.len()),
        path: shown,
        strict: false,
        executable: None,
        file: None,
        open: Box::new(move || Ok(Box::new(File::open(&path)?))),
    })
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
        file: input.trace_file().map(Arc::new),
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
