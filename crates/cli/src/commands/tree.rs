//! `heapline tree`.

use anyhow::Context;
use heapline_profile::reports::{self, Direction, TreeOptions};
use heapline_text::{self as text, Screen};

use crate::question::{By, Json, Look, Question, pattern, share};

/// Show who calls what allocates, as a tree
///
/// From the program's entry down, from allocations up (--bottom-up), or both ways from functions
/// in focus (--focus). Recursion is collapsed: a function is in a path once.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline tree trace.ctf --live peak
  heapline tree trace.ctf --bottom-up --live end
  heapline tree trace.ctf --focus 'Parser.*'
  heapline tree trace.ctf --focus Typecore.type_expect --focus Ctype.unify --min 2%")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    /// From where memory is allocated to the callers
    #[arg(long)]
    bottom_up: bool,

    /// Look around a function: its callers one way, what it calls the other. Given several times,
    /// functions that call each other in this order
    #[arg(long, value_name = "PATTERN", conflicts_with = "bottom_up")]
    focus: Vec<String>,

    /// What a node is
    #[arg(long, value_enum, default_value_t = TreeBy::Function)]
    by: TreeBy,

    /// Put together what is less than this share of the total
    #[arg(long, default_value = "1%", value_name = "SHARE", value_parser = share)]
    min: f64,

    /// How deep at most
    #[arg(long, value_name = "N")]
    depth: Option<usize>,

    /// With --json: also lifetimes, heaps and growth of each node, and its module and file
    #[arg(long, requires = "json")]
    details: bool,

    /// Show the line of each allocation below its function
    #[arg(long)]
    sites: bool,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    json: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TreeBy {
    /// A function
    Function,
    /// A line of the source
    Site,
    /// A file
    File,
    /// A module
    Module,
}

impl TreeBy {
    pub(super) fn by(self) -> By {
        match self {
            Self::Function => By::Function,
            Self::Site => By::Site,
            Self::File => By::File,
            Self::Module => By::Module,
        }
    }
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let options = TreeOptions {
            view: self.look.view(self.by.by())?,
            direction: if self.bottom_up {
                Direction::BottomUp
            } else {
                Direction::TopDown
            },
            focus: self
                .focus
                .iter()
                .map(|text| pattern(text).context("cannot understand --focus"))
                .collect::<anyhow::Result<_>>()?,
            threshold: self.min,
            depth: self.depth.unwrap_or(usize::MAX),
            // From allocations up, the line is what one wants to know first.
            sites: self.sites || (self.bottom_up && self.by == TreeBy::Function),
            details: self.details,
        };
        if options.focus.len() > 64 {
            anyhow::bail!("--focus can be given 64 times at most");
        }
        let profile = self.question.load()?;
        let scope = self.question.scope(&profile)?;
        let report = reports::tree(&scope, &options);
        self.question.print(self.json, screen, &report, text::tree)
    }
}
