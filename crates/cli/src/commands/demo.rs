//! `heapline demo`.

use heapline_profile::Overview;
use heapline_trace::{Options, Reader};

use super::info;

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
        let mut reader = Reader::new(TRACE, Options::new().stacks(false))?;
        let overview = Overview::read(&mut reader)?;
        let mut text = info::text(&overview, "built-in demo", Some(TRACE.len() as u64));
        text.push_str(
            "\nThis trace is built in. To try other commands on it:\n  \
             heapline demo --trace > mix.ctf\n  \
             heapline dump mix.ctf | head\n",
        );
        crate::output::to_stdout_styled(&text)
    }
}
