//! `heapline demo`.

use heapline_engine::Filter;
use heapline_formats::{Options, Reader};
use heapline_profile::reports::SummaryOptions;
use heapline_profile::{Profile, StoreOptions, reports};
use heapline_server::{Subjects, Trace};
use heapline_text::{self as text, Context, Line, Screen};

use super::view::Serving;
use crate::question::command_line;

/// A trace of `fixtures/mix.ml`, recorded with memtrace on OCaml 5.3.
const TRACE: &[u8] = include_bytes!("../../demo/mix.ctf");

/// Show a small built-in trace in the browser
///
/// The traced program has a growing list, a cache, large arrays, and many short-lived blocks.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the summary of the trace instead
    #[arg(long)]
    text: bool,

    /// Write the trace to standard output instead
    #[arg(long, conflicts_with = "text")]
    trace: bool,

    #[command(flatten)]
    serving: Serving,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        if self.trace {
            return crate::output::binary_to_stdout(TRACE);
        }
        if self.text {
            return summary(screen);
        }
        let trace = Trace {
            path: "mix.ctf".to_owned(),
            size: Some(TRACE.len() as u64),
            strict: false,
            executable: None,
            open: Box::new(|| Ok(Box::new(TRACE))),
        };
        self.serving.serve(Subjects::new(trace, None))
    }
}

fn summary(screen: Screen) -> anyhow::Result<()> {
    let mut reader = Reader::new(TRACE, Options::default())?;
    let profile = Profile::load(&mut reader, StoreOptions::default())?;
    let scope = Filter::default().scope(&profile);
    let report = reports::summary(&scope, &SummaryOptions::default());
    let suggest =
        |report: &str, arguments: &[&str]| command_line(report, "mix.ctf".as_ref(), "", arguments);
    let context = Context {
        screen,
        suggest: Some(&suggest),
    };
    let mut text = text::summary(&report, &context);
    for line in [
        "",
        "This trace is built in. To try these commands on it:",
        "  heapline demo --trace > mix.ctf",
    ] {
        text.push(Line::plain(line));
    }
    crate::output::to_stdout_styled(&text)
}
