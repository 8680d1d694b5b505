//! Commands that print a report and take nothing but its options. They are defined by the engine's
//! requests; a new report is a command without a line here.

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use heapline_engine::{Cancel, Request};
use heapline_text::{self as text, Screen};

use crate::input::Input;
use crate::question::{Json, Question};
use crate::snapshot_file::SnapshotFile;

/// Reports whose commands take more than the options of the report, or that have none.
const NOT_PLAIN: [&str; 11] = [
    "complete",
    "diff",
    "diff-tree",
    "flame",
    "info",
    "series",
    "source",
    "stats",
    "summary",
    "tree",
    "why",
];

/// A request and the file that it is about: a trace or a heap snapshot.
#[derive(Debug)]
pub(crate) struct PlainReport<F> {
    request: Request,
    file: F,
    json: Json,
}

/// A file that reports are about.
pub(crate) trait ReportFile: Args {
    /// True for the file of reports on heap snapshots.
    const IS_SNAPSHOT: bool;

    /// Prints the answer to a request.
    fn print_answer(self, request: &Request, json: Json, screen: Screen) -> anyhow::Result<()>;
}

impl ReportFile for Input {
    const IS_SNAPSHOT: bool = false;

    fn print_answer(self, request: &Request, json: Json, screen: Screen) -> anyhow::Result<()> {
        let question = Question {
            input: self,
            filter: request.filter().cloned().unwrap_or_default(),
        };
        let answer = question.answer(request)?;
        question.print(json, screen, &answer.report, text::render)
    }
}

impl ReportFile for SnapshotFile {
    const IS_SNAPSHOT: bool = true;

    fn print_answer(self, request: &Request, json: Json, screen: Screen) -> anyhow::Result<()> {
        let answer = self.session(None)?.answer(request, &Cancel::default())?;
        self.print(json, screen, &answer.report)
    }
}

impl<F: ReportFile> PlainReport<F> {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        self.file.print_answer(&self.request, self.json, screen)
    }
}

impl<F: ReportFile> Subcommand for PlainReport<F> {
    fn augment_subcommands(command: Command) -> Command {
        let reports = Request::definition();
        let plain = reports
            .get_subcommands()
            .filter(|report| Self::has_subcommand(report.get_name()));
        plain.fold(command, |command, report| {
            // Arguments that are added also set the description, and those of a report are in the
            // order of requests.
            let augmented = Json::augment_args(F::augment_args(report.clone()));
            let described = augmented
                .about(Resettable::from(report.get_about().cloned()))
                .long_about(Resettable::from(report.get_long_about().cloned()));
            command.subcommand(described.display_order(None))
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        !NOT_PLAIN.contains(&name)
            && Request::has_subcommand(name)
            && Request::is_of_snapshots(name) == F::IS_SNAPSHOT
    }
}

impl<F: ReportFile> FromArgMatches for PlainReport<F> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let request = Request::from_arg_matches(matches)?;
        let (_, arguments) = matches
            .subcommand()
            .ok_or_else(|| clap::Error::new(clap::error::ErrorKind::MissingSubcommand))?;
        Ok(Self {
            request,
            file: F::from_arg_matches(arguments)?,
            json: Json::from_arg_matches(arguments)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
