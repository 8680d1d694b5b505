//! The commands, one file each.

mod completions;
mod cut;
mod demo;
mod dump;
mod info;
mod man;

use clap::{Parser, Subcommand};

/// Where did the memory go?
///
/// Heapline shows what OCaml programs allocate, what lives on, and where in the program it comes
/// from, out of the traces that memtrace writes.
#[derive(Debug, Parser)]
#[command(
    name = "heapline",
    version,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 done, 2 error.\n\
                  `heapline COMMAND --help` has examples. `heapline demo` needs no trace of your own."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Info(info::Args),
    Dump(dump::Args),
    Cut(cut::Args),
    Demo(demo::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Cli {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Info(args) => args.run(),
            Command::Dump(args) => args.run(),
            Command::Cut(args) => args.run(),
            Command::Demo(args) => args.run(),
            Command::Completions(args) => args.run(),
            Command::Man(args) => args.run(),
        }
    }
}
