//! `heapline why`.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use anyhow::Context as _;
use heapline_formats::{Options, Reader};
use heapline_heap::Heap;
use heapline_heap::reports::{Samples, WhyOptions, join, why};
use heapline_model::{Batch, EventKind, Source};
use heapline_profile::query::Pattern;
use heapline_profile::{Estimator, Query, Scope};
use heapline_text::{self as text, Context, Screen};

use crate::input::{Input, Reading};
use crate::question::{Json, load, warn_of_unmatched};
use crate::snapshot_file::SnapshotFile;

/// Show why memory is still alive: the paths that hold it
///
/// Paths lead from a toplevel definition, a stack frame or another root to the selected blocks, by
/// the shortest way. Paths with the same names are one row. With a recording of the same run, rows
/// also have the places that allocated the memory.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline why server.heap
  heapline why server.heap --kind string
  heapline why server.heap --site 'Parser.*' --trace server.ctf
  heapline why server.heap --where 'age > 1min' --trace server.ctf
  heapline why server.heap --held-by Cache.table --trace server.ctf")]
pub(crate) struct Args {
    #[command(flatten)]
    file: SnapshotFile,

    #[command(flatten)]
    options: WhyOptions,

    /// Select blocks that matching functions allocated
    #[arg(long, value_name = "PATTERN")]
    site: Option<Pattern>,

    /// Select sampled blocks by a query (see docs/query.md)
    #[arg(long = "where", short = 'w', value_name = "QUERY")]
    query: Option<Query>,

    /// Read allocation sites from this recording [default: the one that the snapshot names]
    #[arg(long, value_name = "TRACE")]
    trace: Option<PathBuf>,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let heap = self.file.load()?;
        let by_samples = self.site.is_some() || self.query.is_some();
        let samples = self.samples(&heap, by_samples)?;
        let report = why(&heap, &self.options, samples.as_ref(), by_samples)?;
        self.json.print(&report, |report| {
            text::heap::why(report, &Context::new(screen))
        })
    }

    /// The selected blocks of the recording, if there is one.
    fn samples(&self, heap: &Heap, is_needed: bool) -> anyhow::Result<Option<Samples>> {
        let named = heap.graph().property("trace").map(PathBuf::from);
        let Some(path) = self.trace.clone().or(named) else {
            anyhow::ensure!(
                !is_needed,
                "--site and --where need the recording of the same run; give it with --trace"
            );
            return Ok(None);
        };
        // A recording that the snapshot names may be gone.
        if !is_needed && self.trace.is_none() && !path.is_file() {
            return Ok(None);
        }
        let reading = Reading {
            strict: false,
            executable: None,
        };
        let input = reading.input(&path);
        let numbers = self.numbers(heap, &input)?;
        let profile = load(&input, false)?;
        let site = self
            .site
            .as_ref()
            .map(|site| format!("site = {}", site.text()));
        let site = site.map(|site| Query::parse(&site)).transpose()?;
        let queries = [site, self.query.clone()].into_iter().flatten();
        let query = queries.fold(Query::default(), Query::and);
        warn_of_unmatched(&query, &profile);
        let scope = Scope::new(&profile, &query, Estimator::default());
        let samples = join(heap, &scope, |number| numbers.get(&number).copied());
        if samples.known() == 0 && heap.graph().site_count() > 0 {
            anyhow::bail!("{} is not the recording of this run", input.name());
        }
        Ok(Some(samples))
    }

    /// The numbers of allocations in the trace, by the number that the snapshot has of them.
    fn numbers(&self, heap: &Heap, input: &Input) -> anyhow::Result<HashMap<u64, usize>> {
        let wanted: HashSet<u64> = heap.graph().sites().map(|(_, site)| site.number).collect();
        anyhow::ensure!(
            !wanted.is_empty(),
            "{} has no sampled blocks; take a snapshot while a recording runs",
            self.file.path.display()
        );
        let options = Options {
            stacks: false,
            ..Options::default()
        };
        let name = || input.name();
        let mut reader = Reader::new(input.bytes()?, options).with_context(name)?;
        let (mut numbers, mut batch, mut next) = (HashMap::new(), Batch::default(), 0);
        while reader.next_batch(&mut batch).with_context(name)? {
            let events = batch.events().iter();
            for birth in events.filter(|event| event.kind == EventKind::Birth) {
                if wanted.contains(&birth.block) {
                    numbers.insert(birth.block, next);
                }
                next += 1;
            }
            batch.clear();
        }
        Ok(numbers)
    }
}
