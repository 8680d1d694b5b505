//! `heapline index`: keeps loaded traces in files, to be opened at once.

use std::path::PathBuf;

use anyhow::Context as _;
use heapline_engine::Filter;
use heapline_formats::{Options, Reader};
use heapline_index::TraceFile;
use heapline_profile::reports::{self, Summary, SummaryOptions};
use heapline_profile::{Index, IndexedAnswer, Profile, StoreOptions};
use heapline_text::units::bytes;
use serde::{Deserialize, Serialize};

use crate::input::{Input, Reading};
use crate::question::StackFlaws;

/// Keep an index beside a trace, so that it is opened at once
///
/// The index of trace.ctf is trace.ctf.idx. All commands use it if it is of the trace as it is now; otherwise, with --no-index,
/// and with `HEAPLINE_INDEX=off` it is ignored. It can be deleted at any time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline index trace.ctf
  heapline index *.ctf --memory 1GiB")]
pub(crate) struct Args {
    /// Traces to index: .ctf files, plain or compressed (.gz, .zst)
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,

    #[command(flatten)]
    reading: Reading,

    /// Write indexes again that are up to date
    #[arg(long)]
    force: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut lines = String::new();
        for trace in &self.traces {
            lines.push_str(&self.index(&self.reading.input(trace))?);
            lines.push('\n');
        }
        crate::output::to_stdout(lines.as_bytes())
    }

    /// Indexes a trace. Returns the line to print.
    fn index(&self, input: &Input) -> anyhow::Result<String> {
        let file = input
            .trace_file()
            .with_context(|| format!("{} is not a file, and has no index", input.name()))?;
        let name = file.index_path().display().to_string();
        if !file.uses_index() {
            anyhow::bail!(
                "{name} is not written: indexes are off, or {} is still being recorded",
                input.name()
            );
        }
        if !self.force && file.open_index().is_some() {
            return Ok(format!("{name} is up to date"));
        }
        let options = input.formats_options(Options::default())?;
        let profile = Reader::new(input.bytes()?, options)
            .and_then(|mut reader| file.load(&mut reader, StoreOptions::default()))
            .with_context(|| input.name())?;
        input.warn_of(profile.damage());
        input.warn_of_moved(profile.moved_events());
        let size = write(&file, &profile).with_context(|| format!("cannot write {name}"))?;
        Ok(format!("{name}: {}", bytes(size as f64)))
    }
}

fn write(file: &TraceFile, profile: &Profile) -> anyhow::Result<u64> {
    let scope = Filter::default().scope(profile);
    let summary = IndexedSummary {
        summary: reports::summary(&scope, &SummaryOptions::default()),
        stacks: StackFlaws::of(profile),
        moved_events: profile.moved_events(),
    };
    if let Some(failure) = profile.failure() {
        anyhow::bail!("{failure}");
    }
    let answer: IndexedAnswer = (SUMMARY.to_owned(), serde_json::to_vec(&summary)?);
    Ok(file.keep_index(profile, &[answer])?)
}

/// The name of the summary in an index.
const SUMMARY: &str = "summary";

/// The summary of a whole trace, and what to warn of.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct IndexedSummary {
    pub(crate) summary: Summary,
    pub(crate) stacks: StackFlaws,
    pub(crate) moved_events: u64,
}

impl IndexedSummary {
    /// The summary that was kept, if there is one.
    pub(crate) fn of(index: &Index) -> Option<Self> {
        let bytes = index.answer(SUMMARY).ok()??;
        serde_json::from_slice(&bytes).ok()
    }
}
