//! `heapline leaks`.

use heapline_profile::reports::{self, LeakOptions};
use heapline_text::{self as text, Screen};

use crate::question::{By, Json, Look, Question, share};

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

    /// What is put together
    #[arg(long, value_enum, default_value_t = By::Site)]
    by: By,

    /// How old memory must be to count, as a share of the run: what is young may still die
    #[arg(long, default_value = "10%", value_name = "SHARE", value_parser = tail)]
    tail: f64,

    /// How many rows at most
    #[arg(long, default_value_t = 10, value_name = "N")]
    rows: usize,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    json: Json,
}

fn tail(text: &str) -> Result<f64, String> {
    match share(text)? {
        share if share <= 0.5 => Ok(share),
        _ => Err("it must be half of the run at most".to_owned()),
    }
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let options = LeakOptions {
            view: self.look.view(self.by)?,
            tail: self.tail,
            rows: self.rows,
            ..LeakOptions::default()
        };
        let profile = self.question.load()?;
        let scope = self.question.scope(&profile)?;
        let report = reports::leaks(&scope, &options);
        self.question.print(self.json, screen, &report, text::leaks)
    }
}
