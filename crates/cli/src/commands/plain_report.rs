//! Commands that print a report and take nothing but its options. They are defined by the engine's
//! requests; a new report is a command without a line here.

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use heapline_engine::Request;
use heapline_text::{self as text, Screen};

use crate::input::Input;
use crate::question::{Json, Question};

/// Reports whose commands take more than the options of the report, or that have none.
const NOT_PLAIN: [&str; 8] = [
    "complete", "diff", "flame", "info", "series", "stats", "summary", "tree",
];

/// A request and the trace that it is about.
#[derive(Debug)]
pub(crate) struct PlainReport {
    request: Request,
    input: Input,
    json: Json,
}

impl PlainReport {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let question = Question {
            input: self.input,
            filter: self.request.filter().cloned().unwrap_or_default(),
        };
        let answer = question.answer(&self.request)?;
        question.print(self.json, screen, &answer.report, text::render)
    }
}

impl Subcommand for PlainReport {
    fn augment_subcommands(command: Command) -> Command {
        let reports = Request::definition();
        let plain = reports
            .get_subcommands()
            .filter(|report| Self::has_subcommand(report.get_name()));
        plain.fold(command, |command, report| {
            // Arguments that are added also set the description, and those of a report are in the
            // order of requests.
            let augmented = Json::augment_args(Input::augment_args(report.clone()));
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
        !NOT_PLAIN.contains(&name) && Request::has_subcommand(name)
    }
}

impl FromArgMatches for PlainReport {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let request = Request::from_arg_matches(matches)?;
        let (_, arguments) = matches
            .subcommand()
            .ok_or_else(|| clap::Error::new(clap::error::ErrorKind::MissingSubcommand))?;
        Ok(Self {
            request,
            input: Input::from_arg_matches(arguments)?,
            json: Json::from_arg_matches(arguments)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
