//! The messages at the end of a recording.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use heapline_engine::{Filter, shell_path};
use heapline_formats::Options;
use heapline_index::TraceFile;
use heapline_profile::reports::SummaryOptions;
use heapline_profile::{StoreOptions, reports};
use heapline_recorder::tail::{self, Note, Outcome, State};
use heapline_text::units::{bytes, count, estimated_bytes, seconds};
use heapline_text::{self as text, Screen};

use super::keep::Keeping;
use super::others;
use super::program::Kind;
use crate::commands::rate::Rate;
use crate::error::{note, warn};
use crate::question::command_line;

/// A recording that has ended.
pub(in crate::commands) struct Recorded {
    /// The trace of the program itself.
    pub(in crate::commands) trace: PathBuf,
    /// The traces of other processes.
    pub(in crate::commands) others: Vec<PathBuf>,
    /// Their names are `PREFIX.PID.ctf`.
    pub(in crate::commands) prefix: PathBuf,
    pub(in crate::commands) kind: Kind,
    pub(in crate::commands) rate: Rate,
    /// The CPU time that the program used while it was recorded, if that is known.
    pub(in crate::commands) cpu_time: Option<Duration>,
    /// The program that it ran in its place, if that is not recorded.
    pub(in crate::commands) became: Option<String>,
}

impl Recorded {
    pub(in crate::commands) fn say(
        &self,
        quiet: bool,
        summary: Option<Screen>,
    ) -> anyhow::Result<()> {
        let outcome = finish(&self.trace)?;
        self.say_outcome(outcome, quiet, summary)
    }

    /// The same for a recording that is kept within a size: the program has written to another file.
    pub(super) fn say_kept(
        &self,
        keeping: &mut Keeping,
        quiet: bool,
        summary: Option<Screen>,
    ) -> anyhow::Result<()> {
        let kept = keeping.finish().with_context(|| {
            let raw = keeping.raw.display();
            format!("{raw} has the latest events, which could not be kept")
        })?;
        let mut outcome = finish(&keeping.raw)?;
        if let Some(outcome) = &mut outcome {
            outcome.early_end = kept.early_end.or(outcome.early_end);
            // What could not be appended was read from where it is.
            outcome.left = None;
        }
        for path in [&keeping.raw, &tail::path(&keeping.raw)] {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    warn(&format!("cannot remove {}: {error}", path.display()));
                }
                _ => {}
            }
        }
        if !kept.gaps.is_empty() {
            let micros: u64 = kept.gaps.iter().map(|(start, end)| end - start).sum();
            warn(&format!(
                "{} has gaps: new blocks were not recorded for {} in all, because the program was too fast; use \
                 a lower --rate or a larger --keep",
                self.trace.display(),
                seconds(micros as f64 / 1e6)
            ));
        }
        self.say_outcome(outcome, quiet, summary)
    }

    fn say_outcome(
        &self,
        outcome: Option<Outcome>,
        quiet: bool,
        summary: Option<Screen>,
    ) -> anyhow::Result<()> {
        // A program that was killed before the recording began has none.
        let outcome = outcome.filter(|outcome| outcome.state != State::Prepared);
        let others = others::finish(&self.others)?;
        let Some(outcome) = outcome else {
            self.warn_of_nothing();
            if !quiet {
                others::say(&others, None, &self.prefix);
            }
            return Ok(());
        };
        warn_of_tail(&self.trace, Some(&outcome));
        self.warn_of(&outcome);
        if !quiet {
            self.describe(&outcome, summary)?;
            others::say(&others, Some(&self.trace), &self.prefix);
        }
        Ok(())
    }

    /// Says why there is no trace, or none that can be completed.
    fn warn_of_nothing(&self) {
        let tail = tail::path(&self.trace);
        let trace = self.trace.display();
        match (self.trace.exists(), tail.exists()) {
            (true, true) => warn(&format!("{trace} was replaced while the program ran")),
            (true, false) => warn(&format!(
                "{} was removed while the program ran; {trace} lacks the last events",
                tail.display()
            )),
            (false, true) => warn(&format!(
                "{trace} was removed while the program ran; only {} is left",
                tail.display()
            )),
            (false, false) if self.others.is_empty() => warn(match self.kind {
                Kind::Ocaml => {
                    "nothing was recorded: the program ended before its OCaml code started, or the \
                     library could not be preloaded"
                }
                Kind::Rust => {
                    "nothing was recorded: the program did not call heapline::trace_if_requested, or \
                     could not start its sampler"
                }
            }),
            (false, false) => {}
        }
    }

    fn describe(&self, outcome: &Outcome, summary: Option<Screen>) -> anyhow::Result<()> {
        let name = self.trace.display().to_string();
        let memory = heapline_index::default_memory();
        let profile = heapline_index::load(
            Some(&TraceFile::new(&self.trace, memory)),
            memory,
            Options::default(),
            StoreOptions::default(),
            || File::open(&self.trace).with_context(|| format!("cannot open {name}")),
            |error| anyhow::Error::new(error).context(format!("cannot read {name}")),
        )?;
        let scope = Filter::default().scope(&profile);
        let report = reports::summary(&scope, &SummaryOptions::default());
        let cost = Duration::from_nanos(outcome.nanos + outcome.sampler_nanos).as_secs_f64();
        let spent = match outcome.sampler_nanos {
            0 => "in the recorder",
            _ => "on recording",
        };
        let share = self.share_of_cpu(cost);
        let external = reports::info(&profile).bytes.external;
        let external = if external.value > 0.0 {
            format!(" ({} outside of the OCaml heap)", estimated_bytes(external))
        } else {
            String::new()
        };
        note(&format!(
            "{name}: {} blocks sampled, one per {}; {} allocated{external}, {} live at peak; \
             {} {spent}{share}",
            count(profile.len() as u64),
            bytes(self.rate.bytes_per_sample()),
            estimated_bytes(report.allocated.bytes),
            estimated_bytes(report.live_at_peak.bytes),
            seconds(cost),
        ));
        if let Some(screen) = summary {
            let suggest =
                |report: &str, arguments: &[&str]| command_line(report, &self.trace, "", arguments);
            let context = text::Context {
                screen,
                suggest: Some(&suggest),
            };
            return crate::output::to_stdout_styled(&text::summary(&report, &context));
        }
        note(&format!("next: heapline summary {}", shell_path(&name)));
        Ok(())
    }

    /// The share of the program's CPU time that recording took, for the end of a sentence: nothing if that time is too
    /// short to be known well.
    fn share_of_cpu(&self, cost: f64) -> String {
        /// Ten times the resolution of the clock.
        const SHORT: Duration = Duration::from_millis(100);
        match self.cpu_time {
            Some(time) if time >= SHORT => format!(
                ", {:.1} % of its {} of CPU time",
                100.0 * cost / time.as_secs_f64(),
                seconds(time.as_secs_f64()),
            ),
            _ => String::new(),
        }
    }

    /// Warns if the recording is incomplete.
    fn warn_of(&self, outcome: &Outcome) {
        let name = self.trace.display();
        if let Some(end) = outcome.early_end {
            warn(&format!("{name} is incomplete: {end}"));
        }
        if let Some(other) = self
            .became
            .as_ref()
            .filter(|_| outcome.state == State::Recording)
        {
            warn(&format!(
                "the program ran another one in its place ({other}), which was not recorded; with --follow-exec \
                 it is"
            ));
        }
        if outcome.has(Note::OwnSampler) {
            warn(
                "the program started its own sampler (Gc.Memprof), whose callbacks were not called; \
                 with --memprof theirs they are, and the recording ends at that point",
            );
        }
        if outcome.has(Note::DomainNotRecorded) {
            warn(
                "a domain of the program has a sampler of its own (Gc.Memprof), and was not recorded",
            );
        }
        if outcome.has(Note::AlikeDomains) {
            warn(&format!(
                "the program started {} domains, and this OCaml uses the same random numbers for \
                 domains that reuse a slot: allocations of short-lived domains may be missing or \
                 counted too often; use a higher --rate",
                count(outcome.domains)
            ));
        }
        if outcome.has(Note::Forked) {
            warn(
                "the program forked other processes, which were not recorded; with --follow-fork \
                 they are",
            );
        }
        if outcome.shortened > 0 {
            warn(&format!(
                "{} stacks were too deep for the format; frames in the middle are missing",
                count(outcome.shortened)
            ));
        }
    }
}

/// Warns if the tail could not be appended to the trace.
pub(super) fn warn_of_tail(trace: &Path, outcome: Option<&Outcome>) {
    if let Some(error) = outcome.and_then(|outcome| outcome.left.as_ref()) {
        warn(&format!(
            "cannot append the last events to {}: {error}; keep {} in the same directory",
            trace.display(),
            tail::path(trace).display()
        ));
    }
}

fn finish(trace: &Path) -> anyhow::Result<Option<Outcome>> {
    tail::finish(trace).with_context(|| format!("cannot complete {}", trace.display()))
}
