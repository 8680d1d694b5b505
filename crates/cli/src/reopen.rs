//! Files that are read several times, even from a pipe.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::Context;
use heapline_heap::read_properties;
use heapline_heap::reports::HeapError;
use heapline_server::{FindRecording, ListedSnapshot, SiteSource, SnapshotFolder, Subjects, Trace};
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
pub(crate) struct SnapshotsBeside {
    input: Input,
    /// Files that were looked at, and what they are if they are of the trace. They are read again when they have changed.
    known: Mutex<HashMap<PathBuf, (FileState, Option<ListedSnapshot>)>>,
}

/// The size of a file, and when it was written.
type FileState = (u64, Option<SystemTime>);

/// Files of a directory that are looked at.
const MOST_FILES: usize = 1000;

impl SnapshotsBeside {
    pub(crate) fn new(input: Input) -> Self {
        Self {
            input,
            known: Mutex::default(),
        }
    }

    /// The entry of a file, if it is a heap snapshot that was taken while the trace was recorded.
    fn read(&self, path: &Path, (file_bytes, _): FileState) -> Option<ListedSnapshot> {
        let file = File::open(path).ok().filter(|_| is_snapshot_file(path))?;
        let [trace, time_ns] = read_properties(BufReader::new(file), ["trace", "time_ns"]).ok()?;
        let is_of_trace = Path::new(&trace?).file_name() == self.input.trace.file_name();
        is_of_trace.then_some(ListedSnapshot {
            name: path.file_name()?.to_str()?.to_owned(),
            time_us: time_ns.and_then(|time| Some(time.parse::<u64>().ok()? / 1000)),
            file_bytes,
        })
    }
}

impl SnapshotFolder for SnapshotsBeside {
    fn list(&self) -> Vec<ListedSnapshot> {
        let Ok(entries) = directory(&self.input.trace).read_dir() else {
            return Vec::new();
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let paths = entries.flatten().map(|entry| entry.path());
        let files = paths.filter(|path| path.extension().is_some_and(|end| end == "heap"));
        let mut found: Vec<(Option<SystemTime>, ListedSnapshot)> = files
            .take(MOST_FILES)
            .filter_map(|path| {
                let metadata = path.metadata().ok()?;
                let state = (metadata.len(), metadata.modified().ok());
                let entry = match known.get(&path) {
                    Some((then, entry)) if *then == state => entry.clone(),
                    _ => self.read(&path, state),
                };
                known.insert(path, (state, entry.clone()));
                Some((state.1, entry?))
            })
            .collect();
        found.sort_by(|(written, a), (other, b)| {
            let taken = a.time_us.cmp(&b.time_us).then(written.cmp(other));
            taken.then_with(|| a.name.cmp(&b.name))
        });
        found.into_iter().map(|(_, entry)| entry).collect()
    }

    fn open(&self, name: &str) -> Result<Subjects, String> {
        let trace = self.input.trace.with_file_name(name);
        let input = self.input.reading.input(&trace);
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
