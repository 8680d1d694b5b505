//! Checks a dataset: every run complete, unchanged and readable, and its tables consistent with each other.

use std::fs;
use std::path::{Path, PathBuf};

use hashbrown::HashSet;
use parquet::data_type::{ByteArrayType, Int64Type};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::checksums;
use crate::dataset::ADDING;
use crate::lock::Lock;
use crate::read::TableReader;
use crate::totals::{Total, Totals};
use crate::{Dataset, Error, FILES, MANIFEST, RunFolder, read};

/// Sums of the same numbers in different orders differ by less than this share.
const TOLERANCE: f64 = 1e-6;

/// The state of a dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// The number of runs.
    pub runs: usize,
    /// The problems, in the order of the paths.
    pub problems: Vec<Problem>,
    /// Folders of adds that were killed: they take room, and nothing reads them.
    pub leftovers: Vec<PathBuf>,
    /// The number of adds that are under way.
    pub under_way: usize,
}

/// Something that is wrong with a dataset.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file or folder.
    pub path: PathBuf,
    /// The problem.
    pub reason: String,
}

impl Verdict {
    /// Returns true if nothing is wrong, given whether leftovers have been removed.
    #[must_use]
    pub fn is_good(&self, is_repaired: bool) -> bool {
        self.problems.is_empty() && (is_repaired || self.leftovers.is_empty())
    }

    /// Counts runs, and notes those that are there twice. `path` gives the place of a run.
    pub fn note_runs(&mut self, runs: &[RunFolder], path: impl Fn(&RunFolder) -> PathBuf) {
        self.runs += runs.len();
        let mut ids = HashSet::new();
        let repeated = runs.iter().filter(|folder| !ids.insert(folder.run));
        self.problems.extend(repeated.map(|folder| {
            let reason = "the dataset has this run twice; remove one of its folders";
            Problem::new(&path(folder), reason)
        }));
    }
}

impl Dataset {
    /// Reads everything and looks for what is wrong.
    pub fn check(&self) -> Result<Verdict, Error> {
        let mut verdict = Verdict::default();
        let runs = self.walk(&mut verdict)?;
        verdict.note_runs(&runs, |folder| folder.in_dataset(self.folder()));
        let found = runs
            .par_iter()
            .filter_map(|folder| check_run(&folder.in_dataset(self.folder()), folder).err());
        let found: Vec<Problem> = found.collect();
        verdict.problems.extend(found);
        verdict.problems.sort();
        Ok(verdict)
    }

    /// Removes folders of adds that were killed.
    pub fn remove_leftovers(&self, leftovers: &[PathBuf]) -> Result<(), Error> {
        let _lock = self.lock()?;
        for path in leftovers {
            fs::remove_dir_all(path).map_err(Error::io("remove", path))?;
        }
        Ok(())
    }

    /// The runs; notes what else there is.
    fn walk(&self, verdict: &mut Verdict) -> Result<Vec<RunFolder>, Error> {
        let mut runs = Vec::new();
        let _lock = self.lock()?;
        for service in entries(self.folder())? {
            let path = self.folder().join(&service);
            if service == MANIFEST {
                continue;
            }
            if service.starts_with(ADDING) {
                match Lock::is_held(&path) {
                    Ok(false) => verdict.leftovers.push(path),
                    // It is gone if it was finished just now.
                    Ok(true) | Err(_) => verdict.under_way += 1,
                }
                continue;
            }
            for day in entries_or_problem(&path, verdict) {
                let path = path.join(&day);
                for run in entries_or_problem(&path, verdict) {
                    match RunFolder::parse(&service, &day, &run) {
                        Some(folder) => runs.push(folder),
                        None => verdict.problems.push(Problem::foreign(&path.join(run))),
                    }
                }
            }
        }
        runs.sort();
        verdict.leftovers.sort();
        Ok(runs)
    }
}

/// The names of a folder's entries.
fn entries(folder: &Path) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let name = entry.map_err(Error::io("read", folder))?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    Ok(names)
}

fn entries_or_problem(folder: &Path, verdict: &mut Verdict) -> Vec<String> {
    entries(folder).unwrap_or_else(|_| {
        verdict.problems.push(Problem::foreign(folder));
        Vec::new()
    })
}

/// Returns the first problem of a run.
fn check_run(path: &Path, folder: &RunFolder) -> Result<(), Problem> {
    let names = entries(path).map_err(|error| Problem::of(path, &error))?;
    if let Some(missing) = FILES
        .iter()
        .find(|file| !names.iter().any(|name| name == *file))
    {
        let reason = format!("{missing} is missing; remove the folder and add the trace again");
        return Err(Problem::new(path, reason));
    }
    if let Some(foreign) = names.iter().find(|name| !FILES.contains(&name.as_str())) {
        return Err(Problem::foreign(&path.join(foreign)));
    }
    checksums::check(path)?;
    let table = |name: &str| CheckedTable::open(path.join(name), folder);
    let [frames] = table("frames.parquet")?.ids(["frame_id"])?;
    let stacks = table("stacks.parquet")?;
    let [stack_ids, stack_frames] = stacks.ids(["stack_id", "frame_id"])?;
    stacks.require(
        stack_frames.is_subset(&frames),
        "frames.parquet lacks some of its frames",
    )?;
    let sites = table("sites.parquet")?;
    let [site_ids] = sites.ids(["site"])?;
    sites.require(
        site_ids.is_subset(&frames),
        "frames.parquet lacks some of its sites",
    )?;
    let blocks = table("blocks.parquet")?;
    let [block_sites, block_stacks] = blocks.ids(["site", "stack_id"])?;
    blocks.require(
        block_sites.is_subset(&site_ids),
        "sites.parquet lacks some of its sites",
    )?;
    blocks.require(
        block_stacks.is_subset(&stack_ids),
        "stacks.parquet lacks some of its stacks",
    )?;

    let runs = table("runs.parquet")?;
    let info = read::info(&runs.path).map_err(runs.problem())?;
    runs.require(
        info.folder() == *folder,
        "it is of another run than its folder",
    )?;
    runs.require(
        sites.sampled_blocks()? == info.sampled_blocks,
        "sites.parquet has other sampled blocks",
    )?;
    let totals = Totals::sum_of(&sites.table).map_err(sites.problem())?;
    for ((column, ours), (_, theirs)) in totals.iter().zip(info.totals.iter()) {
        let reason = || format!("{column} is not the sum of sites.parquet");
        runs.require(near(ours, theirs), reason())?;
    }
    runs.require(
        blocks.sampled_blocks()? == info.sampled_blocks,
        "blocks.parquet has other sampled blocks",
    )?;
    for (column, estimate) in [
        ("allocated_bytes", "estimated_bytes"),
        ("allocated_blocks", "estimated_blocks"),
    ] {
        let ours = Total::sum_of(&blocks.table, estimate).map_err(blocks.problem())?;
        let theirs = info.totals.get(column).unwrap_or_default();
        let reason = || format!("{column} is not the sum of blocks.parquet");
        runs.require(near(ours, theirs), reason())?;
    }
    Ok(())
}

fn near(a: Total, b: Total) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * a.abs().max(b.abs());
    near(a.value, b.value) && near(a.variance, b.variance)
}

/// A table all of whose rows are of a run.
struct CheckedTable {
    path: PathBuf,
    table: TableReader,
}

impl CheckedTable {
    fn open(path: PathBuf, folder: &RunFolder) -> Result<Self, Problem> {
        let run = folder.run.to_string();
        let open = || {
            let table = TableReader::open(&path)?;
            let mut ours = 0;
            table.for_each::<ByteArrayType>("run", |runs| {
                ours += runs
                    .iter()
                    .filter(|found| found.data() == run.as_bytes())
                    .count();
            })?;
            if i64::try_from(ours) != Ok(table.rows()) {
                return Err(Error::table(&path, "it has rows of another run"));
            }
            Ok(table)
        };
        match open() {
            Ok(table) => Ok(Self { path, table }),
            Err(error) => Err(Problem::of(&path, &error)),
        }
    }

    fn require(&self, holds: bool, reason: impl Into<String>) -> Result<(), Problem> {
        if holds {
            Ok(())
        } else {
            Err(Problem::new(&self.path, reason))
        }
    }

    /// Makes a problem of an error.
    fn problem(&self) -> impl Fn(Error) -> Problem {
        |error| Problem::of(&self.path, &error)
    }

    /// The distinct values of some columns.
    fn ids<const N: usize>(&self, columns: [&str; N]) -> Result<[HashSet<i64>; N], Problem> {
        let mut sets = std::array::from_fn(|_| HashSet::new());
        for (set, column) in sets.iter_mut().zip(columns) {
            self.table
                .for_each::<Int64Type>(column, |values| set.extend(values))
                .map_err(self.problem())?;
        }
        Ok(sets)
    }

    /// The sampled blocks of all rows.
    fn sampled_blocks(&self) -> Result<i64, Problem> {
        let mut all = 0_i64;
        let add = |values: &[i64]| all = values.iter().fold(all, |all, n| all.saturating_add(*n));
        self.table
            .for_each::<Int64Type>("sampled_blocks", add)
            .map_err(self.problem())?;
        Ok(all)
    }
}

impl Problem {
    pub(crate) fn new(path: &Path, reason: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    /// Something that no dataset has.
    #[must_use]
    pub fn foreign(path: &Path) -> Self {
        Self::new(path, "it does not belong to a dataset")
    }

    pub(crate) fn of(path: &Path, error: &Error) -> Self {
        let reason = match error {
            Error::Table { reason, .. } => reason.clone(),
            Error::Io { source, .. } => source.to_string(),
            error => error.to_string(),
        };
        Self::new(path, reason)
    }
}
