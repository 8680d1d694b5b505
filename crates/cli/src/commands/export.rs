//! `heapline export`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use heapline_engine::{check_lifetimes, check_time};
use heapline_export as export;
use heapline_export::{StackFormat, StackOptions};
use heapline_heap::reports::{Address, HeapError};
use heapline_profile::{Estimator, Scope};

use super::flame;
use crate::output::{Force, refuse_terminal, write_file};
use crate::question::{Question, warn_of_unmatched_patterns};
use crate::snapshot_file::{SnapshotFile, is_snapshot_file};

/// Export to pprof, speedscope, Firefox Profiler, Perfetto, Parquet and other formats
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline export trace.ctf -o heap.pb.gz && go tool pprof -http=: heap.pb.gz
  heapline export trace.ctf -o heap.speedscope.json
  heapline export trace.ctf --format firefox | gzip > firefox.json.gz
  heapline export trace.ctf -o heap.perfetto.json
  heapline export trace.ctf --at peak -o peak.svg
  heapline export trace.ctf -o heap.parquet
  heapline export server.heap -o server.heapsnapshot

docs/export.md describes the formats.")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    /// Select the output format [default: by the end of the file name, such as .svg or .pb.gz]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Write to this file, or - for standard output
    ///
    /// Parquet writes two files: heap.parquet and heap.stacks.parquet, or heap.edges.parquet for heap snapshots.
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,

    /// Show the path to the block at this address (dot)
    #[arg(long, value_name = "ADDRESS", hide_short_help = true)]
    address: Option<Address>,

    /// Draw callers above callees (svg)
    #[arg(long)]
    icicle: bool,

    #[command(flatten)]
    options: StackOptions,

    #[command(flatten)]
    force: Force,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Allocated and live memory for go tool pprof and compatible tools, compressed
    Pprof,
    /// Folded stacks: a;b;c BYTES
    Collapsed,
    /// Flame graph
    Svg,
    /// For www.speedscope.app
    Speedscope,
    /// For profiler.firefox.com, with times
    Firefox,
    /// For ui.perfetto.dev: collections, live memory and heap size over time
    Perfetto,
    /// Tables of sampled blocks (or snapshots) and of stacks, for `DuckDB`, Polars, Spark
    Parquet,
    /// Table of sampled blocks, or of snapshots
    Csv,
    /// For Chrome DevTools (heap snapshots only)
    #[value(name = "heapsnapshot")]
    HeapSnapshot,
    /// Paths for Graphviz (heap snapshots only)
    Dot,
}

impl Format {
    /// Ends of the names of files in a format.
    const ENDS: [(&str, Self); 11] = [
        (".pb.gz", Self::Pprof),
        (".pprof", Self::Pprof),
        (".collapsed", Self::Collapsed),
        (".folded", Self::Collapsed),
        (".svg", Self::Svg),
        (".speedscope.json", Self::Speedscope),
        (".perfetto.json", Self::Perfetto),
        (".parquet", Self::Parquet),
        (".csv", Self::Csv),
        (".heapsnapshot", Self::HeapSnapshot),
        (".dot", Self::Dot),
    ];

    /// The format that the name of a file ends in.
    fn of_file(path: &Path) -> anyhow::Result<Self> {
        let name = path.to_string_lossy();
        let format = Self::ENDS.iter().find(|(end, _)| name.ends_with(end));
        format.map(|(_, format)| *format).ok_or_else(|| {
            let ends = Self::ENDS.map(|(end, _)| end).join(", ");
            anyhow::anyhow!(
                "cannot tell the format of the output; give --format, or a file name with -o that ends in {ends}"
            )
        })
    }

    /// Returns true if an option has an effect on files of this format.
    fn honours(self, option: &str) -> bool {
        match (self, option) {
            (Self::Svg, "at" | "sites" | "icicle")
            | (Self::Svg | Self::Parquet | Self::Csv, "hide" | "own-code" | "mine")
            | (Self::Dot, "address") => true,
            _ => self.stacks().is_some_and(|format| format.honours(option)),
        }
    }

    /// The format of stacks in one file that it is, if it is one.
    fn stacks(self) -> Option<StackFormat> {
        match self {
            Self::Pprof => Some(StackFormat::Pprof),
            Self::Collapsed => Some(StackFormat::Collapsed),
            Self::Speedscope => Some(StackFormat::Speedscope),
            Self::Firefox => Some(StackFormat::Firefox),
            Self::Perfetto => Some(StackFormat::Perfetto),
            Self::Svg | Self::Parquet | Self::Csv | Self::HeapSnapshot | Self::Dot => None,
        }
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let to_stdout = self.output == Path::new("-");
        let format = match self.format {
            Some(format) => format,
            None => Format::of_file(&self.output)?,
        };
        match format {
            Format::Parquet if to_stdout => {
                anyhow::bail!(
                    "cannot write Parquet to standard output, because it has two files; \
                     give a name: -o heap.parquet"
                )
            }
            Format::Pprof if to_stdout => refuse_terminal("heap.pb.gz")?,
            _ => {}
        }
        if is_snapshot_file(&self.question.input.trace) {
            return self.export_snapshot(format);
        }
        if matches!(format, Format::HeapSnapshot | Format::Dot) {
            anyhow::bail!("this format is for heap snapshots (.heap) only");
        }
        self.refuse_unused(format)?;
        let profile = self.question.load()?;
        warn_of_unmatched_patterns(&self.options, &profile);
        if let Some(at) = &self.options.at {
            check_time("at", at, &profile)?;
        }
        let scope = self.question.scope(&profile)?.showing(&self.options.look);
        if format.stacks().is_some_and(StackFormat::has_times) {
            check_lifetimes(
                "the times of single blocks, which this format has",
                &profile,
            )?;
        }
        let has_blocks = profile.tells().sizes;
        if format == Format::Parquet {
            write_file(&self.output, &self.force, |out| {
                if has_blocks {
                    export::parquet::blocks(&scope, out)?;
                } else {
                    export::parquet::snapshots(&scope, out)?;
                }
                self.question.check_read(&profile)
            })?;
            let stacks = with_part(&self.output, "stacks");
            return write_file(&stacks, &self.force, |out| {
                export::parquet::stacks(&scope, out)
            });
        }
        write_file(&self.output, &self.force, |out| {
            self.write(format, &scope, out)?;
            self.question.check_read(&profile)
        })
    }

    /// Fails if an option was given that the format cannot honour.
    fn refuse_unused(&self, format: Format) -> anyhow::Result<()> {
        let others = [("icicle", self.icicle), ("address", self.address.is_some())];
        let others = others.into_iter().filter(|(_, is_given)| *is_given);
        let mut given = self.options.given().chain(others.map(|(option, _)| option));
        let Some(option) = given.find(|option| !format.honours(option)) else {
            return Ok(());
        };
        let value = format.to_possible_value();
        let name = value.as_ref().map_or("", |value| value.get_name());
        let advice = match option {
            "at" => "; --live selects the blocks that are live at a time",
            "address" => ", only to dot files of heap snapshots",
            "icicle" => ", only to svg",
            _ => "",
        };
        anyhow::bail!("--{option} does not apply to {name}{advice}");
    }

    fn write(&self, format: Format, scope: &Scope<'_>, mut out: impl Write) -> io::Result<()> {
        if let Some(format) = format.stacks() {
            return format.write(scope, &self.options, &mut out);
        }
        let live = self.options.live(scope);
        match format {
            Format::Svg => flame::svg(&live, self.options.leaf(), self.icicle, &mut out),
            Format::Csv => export::csv(scope, &mut out),
            Format::Parquet => unreachable!("written by the caller, to two files"),
            _ => unreachable!("refused by the caller, or a format of stacks"),
        }
    }

    /// Exports a heap snapshot.
    fn export_snapshot(&self, format: Format) -> anyhow::Result<()> {
        use export::heap;

        let filter = &self.question.filter;
        let options = &self.options;
        let has_filter = !filter.query().is_all()
            || filter.estimator != Estimator::default()
            || filter.keep_recursion
            || *options != StackOptions::default();
        let is_supported = matches!(
            format,
            Format::Pprof | Format::Parquet | Format::HeapSnapshot | Format::Dot
        );
        anyhow::ensure!(
            is_supported,
            "heap snapshots can be exported to pprof, parquet, heapsnapshot and dot"
        );
        anyhow::ensure!(
            !has_filter,
            "heap snapshots are exported as a whole; options that select blocks or stacks do not apply"
        );
        self.refuse_unused(format)?;
        let path = self.question.input.trace.clone();
        let snapshot = SnapshotFile { path }.load()?;
        let node = match self.address {
            Some(Address(address)) => Some(
                snapshot
                    .graph()
                    .find(address / 8)
                    .ok_or(HeapError::NoBlock(address))?,
            ),
            None => None,
        };
        if format == Format::Parquet {
            write_file(&self.output, &self.force, |out| heap::nodes(&snapshot, out))?;
            let edges = with_part(&self.output, "edges");
            return write_file(&edges, &self.force, |out| heap::edges(&snapshot, out));
        }
        write_file(&self.output, &self.force, |out| match (format, node) {
            (Format::Pprof, _) => heap::pprof(&snapshot, out),
            (Format::Dot, Some(node)) => heap::dot_of_path(&snapshot, node, out),
            (Format::Dot, None) => heap::dot(&snapshot, out),
            _ => heap::devtools(&snapshot, out),
        })
    }
}

/// The file for another table: `heap.stacks.parquet` for `heap.parquet`.
fn with_part(path: &Path, part: &str) -> PathBuf {
    match path.extension() {
        Some(extension) => {
            let mut name = std::ffi::OsString::from(part);
            name.push(".");
            name.push(extension);
            path.with_extension(name)
        }
        None => path.with_extension(part),
    }
}
