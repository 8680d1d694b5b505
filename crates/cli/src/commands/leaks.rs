//! `heapline leaks`.

use heapline_profile::reports::LeakOptions;
use heapline_text::{self as text, Screen};

use crate::question::{Json, Question};

/// Show what grows and never dies
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline leaks trace.ctf
  heapline leaks trace.ctf --by function --tail 20%
  heapline leaks trace.ctf --where 'heap = major and not inside \"Cache.*\"'")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    #[command(flatten)]
    options: LeakOptions,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let report = self.question.ask(&self.options)?;
        self.question.print(self.json, screen, &report, text::leaks)
    }
}
