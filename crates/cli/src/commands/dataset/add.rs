//! `heapline dataset add`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use heapline_dataset::text::line;
use heapline_dataset::{Added, Dataset, Labels};
use indicatif::{ProgressBar, ProgressStyle};

use super::Address;
use crate::error;
use crate::output::to_stdout;
use crate::snapshot_file::refuse_other_than_trace;

/// Add traces to a dataset, which is created if it does not exist
///
/// A trace that the dataset already has is skipped. A trace that cannot be read does not stop the others; the exit code is
/// then 2. Damaged traces are added as far as they are intact, and marked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline dataset add profiles trace.ctf --label version=1.4.2
  heapline dataset add profiles *.ctf --label service=shop --label region=eu
  heapline dataset add s3://bucket/profiles trace.ctf")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) address: Address,

    /// Traces to add: .ctf files, plain or compressed (.gz, .zst)
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// Label the runs (repeatable); the labels service and version are columns
    ///
    /// The service is the name of the program by default.
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<String>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let labels = Labels::parse(&self.label)?;
        let dataset = Dataset::create(self.address.dataset)?;
        let results = for_each(&self.traces, |trace| add(&dataset, trace, &labels));
        let mut text = String::new();
        let mut failed = 0;
        for (trace, result) in self.traces.iter().zip(results) {
            let name = trace.display();
            match result {
                Ok(Added::New(info)) => {
                    let damaged = if info.damaged { ", damaged" } else { "" };
                    text += &line(&format!("{name}: added {}{damaged}", info.folder()));
                }
                Ok(Added::Known(folder)) => {
                    text += &line(&format!("{name}: already there as {folder}"));
                }
                Err(error) => {
                    failed += 1;
                    error::print(&error.context(format!("cannot add {name}")));
                }
            }
        }
        to_stdout(text.as_bytes())?;
        Ok(ExitCode::from(if failed > 0 { 2 } else { 0 }))
    }
}

fn add(dataset: &Dataset, trace: &Path, labels: &Labels) -> anyhow::Result<Added> {
    refuse_other_than_trace(trace)?;
    Ok(dataset.add(trace, labels)?)
}

/// Adds all traces, each on one of as many threads as there are cores.
///
/// Not by rayon: a thread of its pool that waits for a part of a trace would begin another one, so that any number of
/// traces could be in memory.
fn for_each<T: Send>(traces: &[PathBuf], add: impl Fn(&Path) -> T + Sync) -> Vec<T> {
    let bar = ProgressBar::new(traces.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("adding {bar:30} {pos}/{len}  {eta} left") {
        bar.set_style(style);
    }
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(traces.len()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(trace) = traces.get(number) else {
                break;
            };
            let result = add(trace);
            bar.inc(1);
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            results.push((number, result));
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 1..cores.min(traces.len()) {
            scope.spawn(work);
        }
        work();
    });
    bar.finish_and_clear();
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}
