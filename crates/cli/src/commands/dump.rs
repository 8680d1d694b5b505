//! `heapline dump`.

use std::path::PathBuf;

use clap::ValueEnum;
use heapline_export::dump::{self, DumpError, dump};
use heapline_formats::memtrace_damage;
use heapline_trace::Options;

use crate::input::{Input, warn_of_left_out};
use crate::output::{Force, Output};

/// Print the events of a trace as text
///
/// The formats memtrace and alloc-stats match the output of memtrace's `dump_trace` and the input of
/// ocaml-alloc-stats byte for byte; as in those programs, an incomplete last packet is omitted. The
/// other formats include its intact events. Stacks start with the outermost caller.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline dump trace.ctf | head
  heapline dump trace.ctf.zst --format csv -o events.csv
  zcat trace.ctf.gz | heapline dump - --format jsonl | jq 'select(.length_words > 1000)'")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Select the output format
    #[arg(long, value_enum, default_value_t = Format::Memtrace)]
    format: Format,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    force: Force,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Output of memtrace's `dump_trace`
    Memtrace,
    /// Input of ocaml-alloc-stats: time, id, kind and length, no stacks
    AllocStats,
    /// Comma-separated values, one row per event
    Csv,
    /// One JSON object per line: trace, locations, events
    Jsonl,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let format = match self.format {
            Format::Memtrace => dump::Format::Memtrace,
            Format::AllocStats => dump::Format::AllocStats,
            Format::Csv => dump::Format::Csv,
            Format::Jsonl => dump::Format::JsonLines,
        };
        // memtrace and ocaml-alloc-stats ignore an incomplete last packet.
        let compatible = matches!(self.format, Format::Memtrace | Format::AllocStats);
        let options = Options::new()
            .stacks(format.needs_stacks())
            .partial_packets(!compatible);
        let mut reader = self.input.open(options)?;
        let mut output = match &self.output {
            None => Output::stdout()?,
            Some(path) => Output::create(path, self.force.force)?,
        };
        dump(&mut reader, format, &mut output).map_err(|error| match error {
            DumpError::Read(error) => self.input.error(error),
            DumpError::Write(error) => {
                anyhow::Error::new(error).context(format!("cannot write {}", output.name()))
            }
        })?;
        output.finish()?;
        let damage = memtrace_damage(reader.damage());
        self.input.warn_of(&damage);
        if compatible {
            warn_of_left_out(&damage);
        }
        Ok(())
    }
}
