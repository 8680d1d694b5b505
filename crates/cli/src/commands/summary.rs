//! `heapline summary`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use heapline_engine::{Filter, check_read, check_summary};
use heapline_profile::reports::{Combiner, Summary, SummaryOptions};
use heapline_text::{self as text, Context, Screen};

use super::follow::{FollowOptions, Watch};
use super::index::IndexedSummary;
use crate::error::warn;
use crate::input::{Input, Reading};
use crate::question::{Json, Question, command_line, load, with_selection};

/// Show the totals, the peak, findings, and the five lists that matter
///
/// Findings are facts that stand out of the sampling error, the most important first, each with a command
/// that shows it. Findings and lists of functions attribute the memory of libraries to your own code; --all-code
/// lists the functions of libraries.
///
/// With several traces, such as those of a build that was recorded with --follow-exec, show their
/// totals, a row for each trace, and the largest groups of all traces together.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline summary trace.ctf
  heapline summary trace.ctf --by function --rows 10
  heapline summary trace.ctf --where 'inside \"Parser.*\"' --json
  heapline summary build.*.ctf
  heapline summary server.1234.ctf --follow      watch a recording that still runs")]
pub(crate) struct Args {
    /// Traces to read: .ctf files or Spacetime profiles, plain or compressed (.gz, .zst), or - for standard input
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,

    #[command(flatten)]
    filter: Filter,

    #[command(flatten)]
    options: SummaryOptions,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    json: Json,

    #[command(flatten)]
    follow: FollowOptions,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        if let [trace] = &self.traces[..] {
            let question = Question {
                input: self.reading.input(trace),
                filter: self.filter.clone(),
            };
            if self.follow.follow {
                return self.follow.run(&Watch {
                    question: &question,
                    options: &self.options,
                    json: self.json,
                    screen,
                    render: text::summary,
                });
            }
            let report = match self.indexed(&question.input) {
                Some(report) => report,
                None => question.ask(&self.options)?,
            };
            return question.print(self.json, screen, &report, text::summary);
        }
        if self.follow.follow {
            bail!("--follow takes one trace");
        }
        self.combine(screen)
    }

    /// The summary that the index of the trace has, if it is the one that is asked for.
    fn indexed(&self, input: &Input) -> Option<Summary> {
        if self.filter != Filter::default() || self.options != SummaryOptions::default() {
            return None;
        }
        let index = input.trace_file()?.open_index()?;
        let damage = index.damage();
        if self.reading.strict && !damage.is_empty() {
            return None;
        }
        let kept = IndexedSummary::of(&index)?;
        input.warn_of(&damage);
        input.warn_of_moved(kept.moved_events);
        kept.stacks.warn(input);
        Some(kept.summary)
    }

    /// Prints the summary of several traces. They are loaded one after another: those of a large build
    /// need not fit into memory together.
    fn combine(self, screen: Screen) -> anyhow::Result<()> {
        let mut seen = BTreeSet::new();
        if let Some(twice) = self.traces.iter().find(|trace| !seen.insert(*trace)) {
            bail!(
                "{} is given twice; its memory would count twice",
                twice.display()
            );
        }
        let query = self.filter.query();
        let mut combiner = Combiner::new(self.options.clone());
        let mut missing: Option<BTreeSet<String>> = None;
        for trace in &self.traces {
            let profile = load(&self.reading.input(trace), self.filter.keep_recursion)?;
            check_summary(&self.options, &self.filter, &profile)
                .with_context(|| trace.display().to_string())?;
            let names: BTreeSet<String> = query.unmatched(&profile).into_iter().collect();
            missing = Some(match missing {
                Some(missing) => missing.intersection(&names).cloned().collect(),
                None => names,
            });
            combiner.add(trace.display().to_string(), &self.filter.scope(&profile));
            check_read(&trace.display().to_string(), &profile)?;
        }
        for name in missing.unwrap_or_default() {
            warn(&format!("no trace has a {name}"));
        }
        let report = combiner.finish();
        let first = report
            .traces
            .first()
            .map(|trace| PathBuf::from(&trace.file));
        let filter = self.filter.command_line();
        let suggest = |report: &str, arguments: &[&str]| {
            let first = first.as_deref().unwrap_or(Path::new(""));
            command_line(report, first, &filter, arguments)
        };
        let context = Context {
            screen,
            suggest: Some(&suggest),
        };
        self.json.print(&report, |report| {
            let text = text::combined_summary(report, &context);
            with_selection(&self.filter, text, screen)
        })
    }
}
