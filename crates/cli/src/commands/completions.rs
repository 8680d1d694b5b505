//! `heapline completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline completions bash > ~/.local/share/bash-completion/completions/heapline
  heapline completions zsh > ~/.zfunc/_heapline
  heapline completions fish > ~/.config/fish/completions/heapline.fish")]
pub(crate) struct Args {
    shell: Shell,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "heapline", &mut script);
        crate::output::to_stdout(&script)
    }
}
