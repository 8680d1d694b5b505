//! `heapline export`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use heapline_engine::check_lifetimes;
use heapline_export as export;
use heapline_export::Leaf;
use heapline_profile::query::TimePoint;
use heapline_profile::{Look, Moment, Scope};

use super::flame;
use crate::output::{Force, refuse_terminal, write_file};
use crate::question::Question;

/// Export to pprof, speedscope, Firefox Profiler, Parquet and other formats
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline export trace.ctf --format pprof -o heap.pb.gz && go tool pprof -http=: heap.pb.gz
  heapline export trace.ctf --format speedscope -o heap.speedscope.json
  heapline export trace.ctf --format svg --at peak -o peak.svg
  heapline export trace.ctf --format parquet -o heap.parquet

docs/export.md describes the formats.")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    /// Select the output format
    #[arg(long, value_enum)]
    format: Format,

    /// Write to this file, or - for standard output
    ///
    /// Parquet writes two files: heap.parquet and heap.stacks.parquet.
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,

    /// Export memory live at this time: end, peak, 10s, 90%
    #[arg(long, value_name = "TIME")]
    at: Option<TimePoint>,

    /// Append the source line of the allocation to each stack
    #[arg(long)]
    sites: bool,

    /// Draw callers above callees (svg)
    #[arg(long)]
    icicle: bool,

    #[command(flatten)]
    look: Look,

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
    /// Tables of sampled blocks (or snapshots) and of stacks, for `DuckDB`, Polars, Spark
    Parquet,
    /// Table of sampled blocks, or of snapshots
    Csv,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let to_stdout = self.output == Path::new("-");
        match self.format {
            Format::Parquet if to_stdout => {
                anyhow::bail!(
                    "cannot write Parquet to standard output, because it has two files; \
                     give a name: -o heap.parquet"
                )
            }
            Format::Pprof if to_stdout => refuse_terminal("heap.pb.gz")?,
            _ => {}
        }
        let profile = self.question.load()?;
        let scope = self.question.scope(&profile)?.hiding(&self.look.hide);
        if self.format == Format::Firefox {
            check_lifetimes(
                "the times of single blocks, which this format has",
                &profile,
            )?;
        }
        let has_blocks = profile.tells().sizes;
        let at = self
            .at
            .as_ref()
            .map(|at| at.moment(&profile, scope.estimator()));
        if self.format == Format::Parquet {
            write_file(&self.output, &self.force, |out| {
                if has_blocks {
                    export::parquet::blocks(&scope, out)
                } else {
                    export::parquet::snapshots(&scope, out)
                }
            })?;
            let stacks = stacks_path(&self.output);
            return write_file(&stacks, &self.force, |out| {
                export::parquet::stacks(&scope, out)
            });
        }
        write_file(&self.output, &self.force, |out| {
            self.format(&scope, at, out)
        })
    }

    fn format(&self, scope: &Scope<'_>, at: Option<Moment>, mut out: impl Write) -> io::Result<()> {
        let leaf = if self.sites {
            Leaf::Site
        } else {
            Leaf::Function
        };
        let live = || match at {
            Some(moment) => scope.live_at(moment),
            None => scope.clone(),
        };
        match self.format {
            Format::Pprof => {
                let moment = at.unwrap_or_else(|| scope.profile().end());
                export::pprof(scope, moment, &mut out)
            }
            Format::Collapsed => export::collapsed(&live(), leaf, &mut out),
            Format::Svg => flame::svg(&live(), leaf, self.icicle, &mut out),
            Format::Speedscope => export::speedscope(scope, at, leaf, &mut out),
            Format::Firefox => export::firefox(scope, leaf, &mut out),
            Format::Csv => export::csv(scope, &mut out),
            Format::Parquet => unreachable!("written by the caller, to two files"),
        }
    }
}

/// The file for the table of stacks: `heap.stacks.parquet` for `heap.parquet`.
fn stacks_path(path: &Path) -> PathBuf {
    match path.extension() {
        Some(extension) => {
            let mut name = std::ffi::OsString::from("stacks.");
            name.push(extension);
            path.with_extension(name)
        }
        None => path.with_extension("stacks"),
    }
}
