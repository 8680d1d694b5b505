//! `heapline completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;

/// Print a shell completion script
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
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "heapline", &mut script);
        crate::output::to_stdout(&script)
    }
}
