//! `heapline info`.

use clap::ValueEnum;
use heapline_engine::Info;
use heapline_export::identify;
use heapline_formats::Options;
use heapline_heap::reports::HeapInfo;
use heapline_profile::StoreOptions;
use heapline_profile::reports;
use heapline_text::{self as text, Context, Screen, TraceFile};

use crate::input::{Input, warn_of_left_out};
use crate::output::{to_stdout, to_stdout_styled};
use crate::question::Json;
use crate::snapshot_file::{SnapshotFile, is_snapshot_file};

/// Show what a trace or a heap snapshot is, what is in it, and what is wrong with it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline info trace.ctf
  heapline info trace.ctf.zst --json | jq .bytes.allocated
  heapline info trace.ctf --format memtrace")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Select the output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Print JSON (see docs/json.md); short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// The complete report
    Json,
    /// As memtrace's identify
    Memtrace,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let format = if self.json { Format::Json } else { self.format };
        if format != Format::Memtrace && is_snapshot_file(&self.input.trace) {
            return self.of_snapshot(Json::new(format == Format::Json), screen);
        }
        // What memtrace's identify leaves out, it must leave out too.
        let options = Options {
            stacks: false,
            partial_packets: format != Format::Memtrace,
            ..Options::default()
        };
        let overview = reports::info(&self.input.load(options, StoreOptions::default())?);
        let file = self.input.trace.display().to_string();
        let file_size = self.input.file_size();
        match format {
            Format::Json => {
                let info = Info {
                    file,
                    file_size,
                    overview,
                };
                let mut text = serde_json::to_vec_pretty(&info)?;
                text.push(b'\n');
                to_stdout(&text)
            }
            Format::Text => {
                let file = TraceFile {
                    name: &self.input.name(),
                    size: file_size,
                };
                to_stdout_styled(&text::info(&overview, file, &Context::new(screen)))
            }
            Format::Memtrace if !overview.tells.sizes => {
                anyhow::bail!("{file} is not a trace: memtrace's identify does not know it")
            }
            Format::Memtrace => {
                self.input.warn_of(&overview.damage);
                warn_of_left_out(&overview.damage);
                let size = file_size.unwrap_or(overview.trace_bytes);
                to_stdout(identify(&overview, &file, size).as_bytes())
            }
        }
    }

    /// Shows the contents of a heap snapshot.
    fn of_snapshot(&self, json: Json, screen: Screen) -> anyhow::Result<()> {
        let path = self.input.trace.clone();
        let info = heapline_heap::reports::info(&SnapshotFile { path }.graph()?);
        let file_size = self.input.file_size();
        let report = SnapshotInfo {
            file: self.input.name(),
            file_size,
            info,
        };
        json.print(&report, |report| {
            let file = TraceFile {
                name: &report.file,
                size: report.file_size,
            };
            text::heap::info(&report.info, file, &Context::new(screen))
        })
    }
}

/// The contents of a heap snapshot, as JSON.
#[derive(serde::Serialize)]
struct SnapshotInfo {
    file: String,
    file_size: Option<u64>,
    #[serde(flatten)]
    info: HeapInfo,
}
