//! Checks a dataset: every run complete and readable, and its tables consistent with each other.

use std::fs;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use hashbrown::HashSet;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::dataset::ADDING;
use crate::lock::Lock;
use crate::totals::{Total, Totals, variance_of};
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

impl Dataset {
    /// Reads everything and looks for what is wrong.
    pub fn check(&self) -> Result<Verdict, Error> {
        let mut verdict = Verdict::default();
        let runs = self.walk(&mut verdict)?;
        verdict.runs = runs.len();
        let mut ids = HashSet::new();
        for folder in &runs {
            if !ids.insert(folder.run) {
                let path = folder.in_dataset(self.folder());
                let reason = "the dataset has this run twice; remove one of its folders";
                verdict.problems.push(Problem::new(&path, reason));
            }
        }
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
    let table = |name: &str| CheckedTable {
        path: path.join(name),
        run: folder.run.to_string(),
    };

    let [frames] = table("frames.parquet").ids(["frame_id"])?;
    let stacks = table("stacks.parquet");
    let [stack_ids, stack_frames] = stacks.ids(["stack_id", "frame_id"])?;
    stacks.require(
        stack_frames.is_subset(&frames),
        "frames.parquet lacks some of its frames",
    )?;
    let sites = table("sites.parquet");
    let [site_ids] = sites.ids(["site"])?;
    sites.require(
        site_ids.is_subset(&frames),
        "frames.parquet lacks some of its sites",
    )?;
    let blocks = table("blocks.parquet");
    let [block_sites, block_stacks] = blocks.ids(["site", "stack_id"])?;
    blocks.require(
        block_sites.is_subset(&site_ids),
        "sites.parquet lacks some of its sites",
    )?;
    blocks.require(
        block_stacks.is_subset(&stack_ids),
        "stacks.parquet lacks some of its stacks",
    )?;

    let runs = table("runs.parquet");
    let info = read::info(&runs.path).map_err(|error| Problem::of(&runs.path, &error))?;
    runs.require(
        info.folder() == *folder,
        "it is of another run than its folder",
    )?;
    let (sampled, totals) = sites.totals()?;
    runs.require(
        sampled == info.sampled_blocks,
        "sites.parquet has other sampled blocks",
    )?;
    for ((column, ours), (_, theirs)) in totals.iter().zip(info.totals.iter()) {
        let reason = || format!("{column} is not the sum of sites.parquet");
        runs.require(near(ours, theirs), reason())?;
    }
    let (sampled, totals) = blocks.estimates()?;
    runs.require(
        sampled == info.sampled_blocks,
        "blocks.parquet has other sampled blocks",
    )?;
    for (column, ours) in ["allocated_bytes", "allocated_blocks"]
        .into_iter()
        .zip(totals)
    {
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

/// A table that is checked.
struct CheckedTable {
    path: PathBuf,
    run: String,
}

impl CheckedTable {
    fn require(&self, holds: bool, reason: impl Into<String>) -> Result<(), Problem> {
        if holds {
            Ok(())
        } else {
            Err(Problem::new(&self.path, reason))
        }
    }

    /// Reads all rows; all must be of the run.
    fn read(&self, mut f: impl FnMut(&RecordBatch) -> Option<()>) -> Result<(), Problem> {
        let read = read::for_each_batch(&self.path, |batch| {
            let runs = batch.column_by_name("run");
            let runs = runs.and_then(|runs| runs.as_string_opt::<i32>());
            let is_ours = runs.is_some_and(|runs| runs.iter().all(|run| run == Some(&*self.run)));
            if !is_ours {
                return Err(Error::table(&self.path, "it has rows of another run"));
            }
            f(batch).ok_or_else(|| Error::table(&self.path, "it lacks a column"))
        });
        read.map_err(|error| Problem::of(&self.path, &error))
    }

    /// The distinct values of some columns.
    fn ids<const N: usize>(&self, columns: [&str; N]) -> Result<[HashSet<i64>; N], Problem> {
        let mut sets = std::array::from_fn(|_| HashSet::new());
        self.read(|batch| {
            for (set, column) in sets.iter_mut().zip(columns) {
                let column = batch.column_by_name(column)?;
                set.extend(column.as_primitive_opt::<Int64Type>()?.values());
            }
            Some(())
        })?;
        Ok(sets)
    }

    /// Sampled blocks and totals of all rows.
    fn totals(&self) -> Result<(i64, Totals), Problem> {
        let mut all = (0, Totals::default());
        self.read(|batch| {
            all.0 += sampled(batch)?;
            all.1.merge(&Totals::sum_of(batch)?);
            Some(())
        })?;
        Ok(all)
    }

    /// Sampled blocks, estimated bytes and estimated blocks of all rows.
    fn estimates(&self) -> Result<(i64, [Total; 2]), Problem> {
        let mut all = (0, [Total::default(); 2]);
        self.read(|batch| {
            all.0 += sampled(batch)?;
            for (total, name) in all
                .1
                .iter_mut()
                .zip(["estimated_bytes", "estimated_blocks"])
            {
                let sum = |name: &str| {
                    let column = batch.column_by_name(name)?;
                    let numbers = column.as_primitive_opt::<Float64Type>()?;
                    Some(numbers.iter().flatten().sum::<f64>())
                };
                total.value += sum(name)?;
                total.variance += sum(&variance_of(name))?;
            }
            Some(())
        })?;
        Ok(all)
    }
}

fn sampled(batch: &RecordBatch) -> Option<i64> {
    let column = batch.column_by_name("sampled_blocks")?;
    let numbers = column.as_primitive_opt::<Int64Type>()?;
    Some(numbers.iter().flatten().fold(0, i64::saturating_add))
}

impl Problem {
    fn new(path: &Path, reason: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    /// Something that no dataset has.
    fn foreign(path: &Path) -> Self {
        Self::new(path, "it does not belong to a dataset")
    }

    fn of(path: &Path, error: &Error) -> Self {
        let reason = match error {
            Error::Table { reason, .. } => reason.clone(),
            Error::Io { source, .. } => source.to_string(),
            error => error.to_string(),
        };
        Self::new(path, reason)
    }
}
