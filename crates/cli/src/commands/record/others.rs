//! The traces of processes that the recorded program started or forked.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use heapline_engine::shell_path;
use heapline_formats::{Options, Reader};
use heapline_model::Source;
use heapline_recorder::tail::{self, Outcome};
use heapline_text::units::{count, plural, program_name};

use super::said::warn_of_tail;
use crate::error::note;

/// Traces that are listed, those with the most blocks first.
const LISTED: usize = 12;

/// Traces that are named in a suggested command; a pattern stands for more.
const NAMED: usize = 4;

/// Characters of a command line that are shown.
const COMMAND: usize = 60;

/// The trace of another process.
pub(super) struct Other {
    trace: PathBuf,
    /// None if the process still runs.
    outcome: Option<Outcome>,
}

/// Completes the traces of other processes that have ended.
pub(super) fn finish(traces: &[PathBuf]) -> anyhow::Result<Vec<Other>> {
    let finish = |trace: &PathBuf| {
        let outcome = tail::finish_if_ended(trace)
            .with_context(|| format!("cannot complete {}", trace.display()))?;
        warn_of_tail(trace, outcome.as_ref());
        Ok(Other {
            trace: trace.clone(),
            outcome,
        })
    };
    let others: anyhow::Result<Vec<Other>> = traces.iter().map(finish).collect();
    others.map(|mut others| {
        others.sort_by_key(|other| std::cmp::Reverse(other.blocks()));
        others
    })
}

/// Lists them, and suggests the summary of all traces. The program itself may have one, too; the others
/// are named `PREFIX.PID.ctf`.
pub(super) fn say(others: &[Other], first: Option<&Path>, prefix: &Path) {
    let (empty, used): (Vec<&Other>, Vec<&Other>) =
        others.iter().partition(|other| other.blocks() == 0);
    for other in used.iter().take(LISTED) {
        note(&format!("also recorded: {}", other.describe()));
    }
    if let Some(more @ 1..) = used.len().checked_sub(LISTED) {
        note(&format!("and {}", plural(more as u64, "more trace")));
    }
    if !empty.is_empty() {
        let traces = plural(empty.len() as u64, "more trace");
        note(&format!("{traces} without sampled blocks"));
    }
    if !used.is_empty() {
        let is_short = used.len() <= NAMED;
        let named: Vec<&Path> = if is_short {
            let used = used.iter().map(|other| &*other.trace);
            first.into_iter().chain(used).collect()
        } else {
            let unnumbered = first.filter(|first| !is_numbered(first, prefix));
            unnumbered.into_iter().chain([prefix]).collect()
        };
        let mut command = "heapline summary".to_owned();
        for path in named {
            command.push(' ');
            command.push_str(&shell_path(&path.display().to_string()));
        }
        if !is_short {
            // Not quoted: the shell completes it.
            command.push_str(".*.ctf");
        }
        note(&format!("all together: {command}"));
    }
}

/// Returns true if a trace is named `PREFIX.*.ctf`.
fn is_numbered(trace: &Path, prefix: &Path) -> bool {
    let [trace, prefix] = [trace, prefix].map(|path| path.as_os_str().as_bytes());
    let rest = trace
        .strip_prefix(prefix)
        .and_then(|rest| rest.strip_prefix(b"."));
    rest.is_some_and(|rest| rest.ends_with(b".ctf"))
}

impl Other {
    /// Blocks that were sampled; of a process that still runs, more than of all others.
    fn blocks(&self) -> u64 {
        let outcome = self.outcome.as_ref();
        outcome.map_or(u64::MAX, |outcome| outcome.blocks)
    }

    fn describe(&self) -> String {
        let name = self.trace.display();
        let command = command(&self.trace).map_or(String::new(), |command| format!(": {command}"));
        match &self.outcome {
            Some(outcome) => format!("{name}{command} ({} blocks sampled)", count(outcome.blocks)),
            None => format!("{name}{command} (still running)"),
        }
    }
}

/// The command line of a process, or its program.
fn command(trace: &Path) -> Option<String> {
    let reader = Reader::open(trace, Options::default()).ok()?;
    let header = reader.header();
    let program = program_name(&header.program).to_owned();
    let mut command = header.context.clone().unwrap_or(program);
    if let Some((end, _)) = command.char_indices().nth(COMMAND) {
        command.truncate(end);
        command.push('…');
    }
    Some(command)
}
