//! `heapline demo`.

use heapline_profile::{Estimator, GroupBy, LoadOptions, Profile, Query, Scope, View, reports};
use heapline_trace::{Options, Reader};

use super::summary;

/// The program behind it is `fixtures/mix.ml`, recorded with memtrace on OCaml 5.3.
const TRACE: &[u8] = include_bytes!("../../demo/mix.ctf");

/// Show a small trace that is built in
///
/// It is of a program with a list that grows, a cache, large arrays, and much that dies young.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write the trace to standard output instead, to try other commands on
    #[arg(long)]
    trace: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.trace {
            return crate::output::binary_to_stdout(TRACE);
        }
        let mut reader = Reader::new(TRACE, Options::new())?;
        let profile = Profile::load(&mut reader, LoadOptions::default())?;
        let scope = Scope::new(&profile, &Query::default(), Estimator::default());
        let view = View {
            by: GroupBy::Site,
            ..View::default()
        };
        let report = reports::summary(&scope, &view, 5);
        let mut text = summary::text(&report, &|name, arguments| {
            format!("heapline {name} mix.ctf{arguments}")
        });
        text.push_str(
            "\nThis trace is built in. To try these commands on it:\n  \
             heapline demo --trace > mix.ctf\n",
        );
        crate::output::to_stdout_styled(&text)
    }
}
