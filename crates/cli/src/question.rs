//! Arguments shared by all reports: the trace, the filter, and the output format.

use std::io;
use std::path::Path;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use heapline_engine::{
    Answer, Ask, Cancel, Filter, LoadedTrace, Request, Session, check_read, shell_path, shell_quote,
};
use heapline_formats::Options;
use heapline_profile::query::{self, Pattern};
use heapline_profile::reports::has_cut_stacks;
use heapline_profile::{Profile, Query, Recursion, Scope, StoreOptions};
use heapline_server::find_holders;
use heapline_text::{self as text, Screen, Text};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::input::Input;
use crate::reopen::SnapshotsBeside;

/// A trace and a filter.
#[derive(Args, Clone, Debug)]
pub(crate) struct Question {
    #[command(flatten)]
    pub(crate) filter: Filter,

    #[command(flatten)]
    pub(crate) input: Input,
}

impl Question {
    /// Loads the trace and computes a report about it.
    pub(crate) fn ask<O: Ask>(&self, options: &O) -> anyhow::Result<O::Report> {
        ask(&self.filter, options, &self.input, None)
    }

    /// Loads the trace and answers a request about it.
    pub(crate) fn answer(&self, request: &Request) -> anyhow::Result<Arc<Answer>> {
        self.answer_with(request, |session| session)
    }

    /// Loads the trace and answers a request about it, in a session that is prepared for it.
    pub(crate) fn answer_with(
        &self,
        request: &Request,
        prepare: impl FnOnce(Session) -> Session,
    ) -> anyhow::Result<Arc<Answer>> {
        let mut session = prepare(session(&self.filter, &self.input, None)?);
        for query in request.option_queries() {
            warn_of_unmatched(query, &session.trace().profile);
        }
        warn_of_unmatched_patterns(request, &session.trace().profile);
        if self.input.file_size().is_some() {
            let snapshots = Arc::new(SnapshotsBeside::new(self.input.clone()));
            session = session.with_holders(find_holders(snapshots, crate::error::warn));
        }
        Ok(session.answer(request, &Cancel::default())?)
    }

    pub(crate) fn load(&self) -> anyhow::Result<Profile> {
        load(&self.input, self.filter.keep_recursion)
    }

    pub(crate) fn scope<'a>(&self, profile: &'a Profile) -> anyhow::Result<Scope<'a>> {
        self.filter.check(profile)?;
        warn_of_unmatched(&self.filter.query(), profile);
        Ok(self.filter.scope(profile))
    }

    /// Fails if something of the trace could not be read while a report was written.
    pub(crate) fn check_read(&self, profile: &Profile) -> io::Result<()> {
        check_read(&self.input.name(), profile).map_err(io::Error::other)
    }

    /// The command line of another report on the same trace with the same filter.
    fn suggest(&self, report: &str, arguments: &[&str]) -> String {
        let filter = match report {
            // It is about the whole trace.
            "info" => Filter::default(),
            // As a condition: the command may have a `--live` of its own.
            _ => Filter {
                queries: vec![self.filter.query()],
                live: None,
                ..self.filter.clone()
            },
        };
        command_line(report, &self.input.trace, &filter.command_line(), arguments)
    }

    /// Prints a report as JSON or as text.
    pub(crate) fn print<T: Serialize>(
        &self,
        json: Json,
        screen: Screen,
        report: &T,
        render: impl FnOnce(&T, &text::Context<'_>) -> Text,
    ) -> anyhow::Result<()> {
        let suggest = |report: &str, arguments: &[&str]| self.suggest(report, arguments);
        let context = text::Context {
            screen,
            suggest: Some(&suggest),
        };
        json.print(report, |report| {
            with_selection(&self.filter, render(report, &context), screen)
        })
    }
}

/// Puts the query that selects blocks above a report, if there is one.
pub(crate) fn with_selection(filter: &Filter, report: Text, screen: Screen) -> Text {
    let query = filter.query();
    if query.is_all() {
        report
    } else {
        text::of_selection(&report, query.text(), screen)
    }
}

/// Builds a command line; `filter` is already quoted.
pub(crate) fn command_line(report: &str, trace: &Path, filter: &str, arguments: &[&str]) -> String {
    let trace = trace.display().to_string();
    let mut line = format!("heapline {report} {}{filter}", shell_path(&trace));
    for argument in arguments {
        line.push(' ');
        line.push_str(&shell_quote(argument));
    }
    line
}

/// Computes a report on a trace, compared with an earlier trace if there is one.
pub(crate) fn ask<O: Ask>(
    filter: &Filter,
    options: &O,
    trace: &Input,
    against: Option<&Input>,
) -> anyhow::Result<O::Report> {
    // Fail before loading a large trace.
    options
        .validate()
        .map_err(|error| anyhow::anyhow!("--{error}"))?;
    let session = session(filter, trace, against)?;
    warn_of_unmatched_patterns(options, &session.trace().profile);
    Ok(session.ask(filter, options, &Cancel::default())?)
}

/// Loads a trace, and perhaps an earlier one to compare it with.
fn session(filter: &Filter, trace: &Input, against: Option<&Input>) -> anyhow::Result<Session> {
    let load = |input: &Input| -> anyhow::Result<LoadedTrace> {
        let profile = load(input, filter.keep_recursion)?;
        warn_of_unmatched(&filter.query(), &profile);
        Ok(LoadedTrace {
            path: input.trace.display().to_string(),
            size: input.file_size(),
            profile,
        })
    };
    // The earlier one first: warnings are in the order of the arguments.
    let against = against.map(load).transpose()?;
    Ok(Session::new(load(trace)?, against))
}

/// Loads a trace.
pub(crate) fn load(input: &Input, keep_recursion: bool) -> anyhow::Result<Profile> {
    let store = StoreOptions {
        recursion: if keep_recursion {
            Recursion::Keep
        } else {
            Recursion::Collapse
        },
    };
    let profile = input.load(Options::default(), store)?;
    input.warn_of(profile.damage());
    StackFlaws::of(&profile).warn(input);
    Ok(profile)
}

/// Stacks that are not whole.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct StackFlaws {
    /// True if there were too many.
    are_shortened: bool,
    /// True if they were recorded so.
    are_cut: bool,
}

impl StackFlaws {
    pub(crate) fn of(profile: &Profile) -> Self {
        Self {
            are_shortened: profile.shortened_stacks() > 0,
            are_cut: has_cut_stacks(profile),
        }
    }

    pub(crate) fn warn(self, input: &Input) {
        if self.are_shortened {
            crate::error::warn(&format!(
                "{} has too many distinct stacks; some are truncated to their outer frames",
                input.name()
            ));
        }
        if self.are_cut {
            crate::error::note(&format!(
                "the stacks of {} were cut when they were recorded (--stack-depth); <deeper calls> \
                 stands for the outer frames",
                input.name()
            ));
        }
    }
}

/// Warns about names in the query that do not occur in the trace, most likely misspelt.
pub(crate) fn warn_of_unmatched(query: &Query, profile: &Profile) {
    for name in query.unmatched(profile) {
        crate::error::warn(&format!("the trace has no {name}"));
    }
}

/// Warns about functions in options that do not occur in the trace.
pub(crate) fn warn_of_unmatched_patterns(options: &impl Serialize, profile: &Profile) {
    let Ok(mut fields) = serde_json::to_value(options) else {
        return;
    };
    // A request has its options below its name.
    if let Some(request) = fields.as_object_mut().filter(|fields| fields.len() == 1)
        && let Some(options) = request.values_mut().find(|value| value.is_object())
    {
        fields = options.take();
    }
    for option in ["focus", "callers-of", "hide", "mine"] {
        let values = fields.get(option).and_then(Value::as_array);
        let patterns = values.into_iter().flatten().filter_map(Value::as_str);
        for pattern in patterns.filter_map(|text| Pattern::parse(text).ok()) {
            let is_crate = option == "mine" && pattern.is_of_crate(profile);
            if let Some(name) = pattern.unmatched(profile).filter(|_| !is_crate) {
                crate::error::warn(&format!("--{option}: the trace has no {name}"));
            }
        }
    }
}

/// Parses a share such as `1%` or `0.01`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    query::share(text).ok_or_else(|| "expected a share from 0% to 100%".to_owned())
}

/// The options that select JSON output.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Json {
    /// Print JSON (see docs/json.md); short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// Select the output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text, hide_short_help = true)]
    format: ReportFormat,
}

/// The output formats of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// Tables and charts
    Text,
    /// The complete report
    Json,
}

impl Json {
    /// The choice of a command with formats of its own.
    pub(crate) fn new(json: bool) -> Self {
        let format = ReportFormat::Text;
        Self { json, format }
    }

    /// Returns true for JSON, false for text.
    pub(crate) fn is_json(self) -> bool {
        self.json || self.format == ReportFormat::Json
    }

    /// Prints a report as JSON, or as text with `render`.
    pub(crate) fn print<T: Serialize>(
        self,
        report: &T,
        render: impl FnOnce(&T) -> Text,
    ) -> anyhow::Result<()> {
        if self.is_json() {
            let mut text = serde_json::to_vec_pretty(report)?;
            text.push(b'\n');
            crate::output::to_stdout(&text)
        } else {
            crate::output::to_stdout_styled(&render(report))
        }
    }
}
