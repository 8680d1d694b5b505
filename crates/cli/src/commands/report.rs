//! `heapline report`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use heapline_engine::{Session, SnapshotSession};
use heapline_server::{
    Progress, ReportError, ReportOptions, Subjects, Trace, load, load_snapshots, write_report,
    write_snapshot_report,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::view::OtherFiles;
use crate::input::Input;
use crate::output::{Force, write_file};
use crate::reopen::{self, SnapshotsBeside};

/// Write the viewer as a single HTML file
///
/// The file has the page of `heapline view` with precomputed answers, and opens in any browser without
/// a server, a network or Heapline. Custom queries still need the trace or the heap snapshot.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline report trace.ctf -o report.html
  heapline report after.ctf --against before.ctf -o report.html --force
  heapline report server.heap -o report.html")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Write to this file, or - for standard output
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    others: OtherFiles,

    /// Divide the run into N time slices that can be selected
    ///
    /// Any consecutive slices can be selected together. Each window makes the file larger: eight slices have 36.
    #[arg(long, value_name = "N", default_value_t = ReportOptions::SLICES, value_parser = clap::value_parser!(u8).range(1..=32))]
    slices: u8,

    /// Open the page in this state: the part of the viewer's address after #
    #[arg(long, value_name = "STATE")]
    state: Option<String>,

    #[command(flatten)]
    force: Force,
}

/// The file that the report is about, loaded.
enum Answers {
    Trace(Subjects, Arc<Session>),
    Snapshot(Subjects, Arc<SnapshotSession>),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        // The report is shared with others: do not reveal the directory of the trace.
        let without_folder = |trace: Trace| Trace {
            path: trace.name().to_owned(),
            ..trace
        };
        let answers = match self.others.with_snapshot(&self.input, without_folder)? {
            Some(subjects) => {
                let session = load_snapshots(&subjects, &Progress::default());
                let session = Arc::new(session.map_err(anyhow::Error::msg)?);
                Answers::Snapshot(subjects, session)
            }
            None => {
                let (trace, against) = reopen::traces(&self.input, self.others.against)?;
                let mut subjects =
                    Subjects::new(without_folder(trace), against.map(without_folder));
                if self.input.file_size().is_some() {
                    subjects = subjects.with_snapshots(SnapshotsBeside::new(self.input));
                }
                let session = load(&subjects, &Progress::default());
                let session = Arc::new(session.map_err(anyhow::Error::msg)?);
                Answers::Trace(subjects, session)
            }
        };
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(
            ProgressStyle::with_template("answering {bar:30} {pos} of {len}")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        let progress = |done: usize, all: usize| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        };
        let written = write_file(&self.output, &self.force, |out| {
            let written = match &answers {
                Answers::Trace(subjects, session) => {
                    let options = ReportOptions {
                        slices: self.slices,
                        state: self.state.clone(),
                    };
                    write_report(subjects, session, &options, &progress, out)
                }
                Answers::Snapshot(subjects, session) => {
                    write_snapshot_report(subjects, session, &progress, out)
                }
            };
            written.map_err(|error| match error {
                ReportError::Io(error) => error,
                other => io::Error::other(other),
            })
        });
        bar.finish_and_clear();
        written.context("cannot write the report")
    }
}
