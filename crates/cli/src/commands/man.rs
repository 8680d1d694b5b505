//! `heapline man`.

use anyhow::Context;
use clap::CommandFactory;

use super::Cli;

/// Print the manual page of heapline or of a command
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline man | man -l -
  heapline man cut > heapline-cut.1
  heapline man dataset add | man -l -")]
pub(crate) struct Args {
    /// Command to document [default: heapline itself]
    command: Vec<String>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut root = Cli::command();
        root.build();
        let mut command = &root;
        for name in &self.command {
            command = command.find_subcommand(name).with_context(|| {
                format!("no such command: `{name}`; `heapline --help` lists them")
            })?;
        }
        let mut page = Vec::new();
        clap_mangen::Man::new(command.clone()).render(&mut page)?;
        crate::output::to_stdout(&page)
    }
}
