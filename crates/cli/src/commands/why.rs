//! `heapline why`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use heapline_engine::{Cancel, LoadedRecording, Request, SnapshotSession};
use heapline_formats::{Options, Reader};
use heapline_heap::Heap;
use heapline_heap::reports::{AllocationNumbers, HeapError, WhyOptions};
use heapline_text::Screen;

use crate::error::warn;
use crate::input::Reading;
use crate::question::{Json, load, warn_of_unmatched};
use crate::snapshot_file::{SnapshotFile, recording_of};

/// Show why memory is still alive: the paths that hold it
///
/// Paths lead from a toplevel definition, a stack frame or another root to the selected blocks, by
/// the shortest way. Paths with the same names are one row. With a recording of the same run, rows
/// also have the places that allocated the memory.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline why server.heap
  heapline why server.heap --kind string
  heapline why server.heap --site 'Parser.*' --trace server.ctf
  heapline why server.heap --where 'age > 1min' --trace server.ctf
  heapline why server.heap --through Global.env
  heapline why server.heap --held-by Cache.table --trace server.ctf")]
pub(crate) struct Args {
    #[command(flatten)]
    file: SnapshotFile,

    #[command(flatten)]
    options: WhyOptions,

    /// Read allocation sites from this recording [default: the one that the snapshot names]
    #[arg(long, value_name = "TRACE")]
    trace: Option<PathBuf>,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let snapshot = self.file.loaded()?;
        let recording = self.recording(&snapshot.heap)?;
        let session = SnapshotSession::new(snapshot, None, recording);
        match session.recording() {
            Ok(recording) => warn_of_unmatched(&self.options.recorded(), &recording.profile),
            Err(reason) if self.trace.is_some() => anyhow::bail!("{reason}"),
            Err(_) => {}
        }
        let answer = session.answer(&Request::Why(self.options), &Cancel::default())?;
        self.file.print(self.json, screen, &answer.report)
    }

    /// The recording of the run, or the reason why there is none. One that the snapshot names may be gone.
    fn recording(&self, heap: &Heap) -> anyhow::Result<Result<LoadedRecording, String>> {
        let named = recording_of(&self.file.path, heap.graph().property("trace"));
        let Some(path) = self.trace.clone().or(named) else {
            return Ok(Err(HeapError::NoRecording.to_string()));
        };
        match read(&path, heap) {
            Err(error) if self.trace.is_none() && !self.options.is_by_recording() => {
                warn(&format!("allocation sites are not known: {error:#}"));
                Ok(Err(format!("{error:#}")))
            }
            recording => Ok(Ok(recording?)),
        }
    }
}

fn read(path: &Path, heap: &Heap) -> anyhow::Result<LoadedRecording> {
    let reading = Reading {
        strict: false,
        executable: None,
        memory: None,
        no_index: false,
    };
    let input = reading.input(path);
    let options = Options {
        stacks: false,
        ..Options::default()
    };
    let numbers = Reader::new(input.bytes()?, options)
        .and_then(|mut reader| AllocationNumbers::read(heap, &mut reader))
        .with_context(|| input.name())?;
    Ok(LoadedRecording {
        path: path.display().to_string(),
        profile: load(&input, false)?,
        numbers,
    })
}
