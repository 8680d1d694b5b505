//! `heapline completions`.

use anyhow::Context;
use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::candidates::VARIABLE;

/// Print a shell completion script
///
/// The script asks `heapline` for completions: commands, options, the processes of OCaml programs, traces and heap
/// snapshots, and functions and queries of the trace that is already on the command line.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline completions bash > ~/.local/share/bash-completion/completions/heapline
  heapline completions zsh > ~/.zfunc/_heapline
  heapline completions fish > ~/.config/fish/completions/heapline.fish")]
pub(crate) struct Args {
    /// Shell to print the script for
    shell: Shell,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let shells = Shells::builtins();
        let shell = shells.completer(&self.shell.to_string());
        let shell =
            shell.with_context(|| format!("there are no completions for {}", self.shell))?;
        let mut script = Vec::new();
        shell.write_registration(VARIABLE, "heapline", "heapline", "heapline", &mut script)?;
        crate::output::to_stdout(&script)
    }
}
