//! The commands: one file each, but for those that print a report and nothing else.

#[cfg(recording)]
mod attach;
mod check;
mod completions;
#[cfg(recording)]
mod cpu_time;
mod cut;
mod dataset;
mod demo;
mod diff;
mod dump;
mod export;
mod flame;
mod fleet;
mod follow;
mod groups;
pub(crate) mod index;
mod info;
mod man;
mod plain_report;
mod prof_spacetime;
mod push;
mod rate;
#[cfg(recording)]
mod record;
mod recording;
mod report;
mod sending;
mod series;
#[cfg(recording)]
mod snapshot;
mod source;
mod stats;
#[cfg(unix)]
mod sturgeon;
mod summary;
mod top;
mod tree;
#[cfg(not(recording))]
mod unavailable;
mod view;
mod why;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::input::Input;
use crate::snapshot_file::SnapshotFile;

/// Show where the memory of OCaml and Rust programs goes
///
/// Heapline records programs or reads memtrace traces, and shows what was allocated, what stayed
/// live, and which code allocated it. Every sampled figure comes with an error bar.
#[derive(Debug, Parser)]
#[command(
    name = "heapline",
    version,
    arg_required_else_help = true,
    after_help = "Run `heapline --help` for what the commands do, `heapline COMMAND -h` for the options of one.",
    after_long_help = "Exit codes: 0 success, 1 a check failed, 2 error.\n\
                       Run `heapline COMMAND --help` for all options and examples."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Use only ASCII characters in charts and tables
    #[arg(long, global = true, hide_short_help = true)]
    ascii: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(recording)]
    Record(record::Args),
    #[cfg(recording)]
    Attach(attach::Args),
    #[cfg(recording)]
    Snapshot(snapshot::Args),
    /// Record an OCaml program, or a Rust program that uses Heapline's allocator
    ///
    /// Not available in this build: recording needs x86-64 or arm64 Linux with glibc, and the cargo feature
    /// `record`. Record on another machine, and open the trace here.
    #[cfg(not(recording))]
    Record(unavailable::Args),
    /// Record an OCaml program that is already running
    ///
    /// Not available in this build: recording needs x86-64 or arm64 Linux with glibc, and the cargo feature `record`.
    #[cfg(not(recording))]
    Attach(unavailable::Args),
    /// Take a snapshot of the heap of a running OCaml program
    ///
    /// Not available in this build: it needs x86-64 or arm64 Linux with glibc, and the cargo feature `record`.
    #[cfg(not(recording))]
    Snapshot(unavailable::Args),
    View(view::Args),
    Top(top::Args),
    Report(report::Args),
    Summary(summary::Args),
    #[command(flatten)]
    PlainReport(plain_report::PlainReport<Input>),
    Tree(tree::Args),
    Flame(flame::Args),
    Series(series::Args),
    Stats(stats::Args),
    Source(source::Args),
    Diff(diff::Args),
    #[command(flatten)]
    SnapshotReport(plain_report::PlainReport<SnapshotFile>),
    Why(why::Args),
    Check(check::Args),
    Export(export::Args),
    Push(push::Args),
    Info(info::Args),
    Index(index::Args),
    Dump(dump::Args),
    Cut(cut::Args),
    Dataset(dataset::Args),
    Fleet(fleet::Args),
    #[cfg(unix)]
    Sturgeon(sturgeon::Args),
    Demo(demo::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Cli {
    /// Parses the arguments of the process.
    pub(crate) fn from_arguments(arguments: Vec<OsString>) -> Result<Self, clap::Error> {
        let command = taking_negative_numbers(groups::grouped(Self::command()));
        let matches = command.try_get_matches_from(arguments)?;
        Self::from_arg_matches(&matches)
    }

    /// Runs the command; the exit code is 1 if a check failed.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let screen = crate::screen::detect(self.ascii);
        match self.command {
            #[cfg(recording)]
            Command::Record(args) => return args.run(screen),
            #[cfg(recording)]
            Command::Attach(args) => return args.run(screen),
            #[cfg(recording)]
            Command::Snapshot(args) => args.run(),
            #[cfg(not(recording))]
            Command::Record(_) | Command::Attach(_) | Command::Snapshot(_) => {
                Err(unavailable::error())
            }
            Command::View(args) => args.run(),
            Command::Top(args) => return args.run(screen),
            Command::Report(args) => args.run(),
            Command::Summary(args) => args.run(screen),
            Command::PlainReport(report) => report.run(screen),
            Command::SnapshotReport(report) => report.run(screen),
            Command::Tree(args) => args.run(screen),
            Command::Flame(args) => args.run(),
            Command::Series(args) => args.run(screen),
            Command::Stats(args) => args.run(screen),
            Command::Source(args) => args.run(screen),
            Command::Diff(args) => args.run(screen),
            Command::Why(args) => args.run(screen),
            Command::Check(args) => return args.run(screen),
            Command::Export(args) => args.run(),
            Command::Push(args) => args.run(),
            Command::Info(args) => args.run(screen),
            Command::Index(args) => args.run(),
            Command::Dump(args) => args.run(),
            Command::Cut(args) => args.run(),
            Command::Dataset(args) => return args.run(screen),
            Command::Fleet(args) => return args.run(),
            #[cfg(unix)]
            Command::Sturgeon(args) => args.run(),
            Command::Demo(args) => args.run(screen),
            Command::Completions(args) => args.run(),
            Command::Man(args) => args.run(),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Takes a negative number after an option for its value, so that the error is about the value.
fn taking_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let takes_value = !arg.is_positional() && arg.get_action().takes_values();
        let takes_hyphens = arg.is_allow_hyphen_values_set();
        arg.allow_negative_numbers(takes_value && !takes_hyphens)
    });
    command.mut_subcommands(taking_negative_numbers)
}

/// Parses the arguments of a command that another one runs, with the defaults of all others.
fn parse<A: clap::Args>(arguments: Vec<OsString>) -> Result<A, clap::Error> {
    let command = A::augment_args(clap::Command::new("heapline").no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(arguments)?)
}
