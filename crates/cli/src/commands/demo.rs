//! `heapline demo`.

use heapline_server::{Subjects, Trace};
use heapline_text::Screen;

use super::view::Serving;
use crate::input::demo;

/// Show a small built-in trace in the browser
///
/// The recorded program is a shop that serves requests in two domains: with a catalogue in large arrays, a cache, sessions
/// that leak, a report that needs much memory for a second, a search index that is built again and again, and much garbage.
///
/// All commands take the trace by the name `demo`: `heapline hotspots demo`.
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
            return crate::output::binary_to_stdout(demo::TRACE);
        }
        if self.text {
            let arguments = vec![demo::NAME.into()];
            return super::parse::<super::summary::Args>(arguments)?.run(screen);
        }
        let trace = Trace {
            path: demo::NAME.to_owned(),
            size: Some(demo::TRACE.len() as u64),
            strict: false,
            executable: None,
            file: None,
            open: Box::new(|| Ok(Box::new(demo::TRACE))),
        };
        self.serving.serve(Subjects::new(trace, None))
    }
}
