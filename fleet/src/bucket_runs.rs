//! Lists and checks the runs of a dataset in an object store: its files are fetched, and read as those of a folder.

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use futures::{StreamExt, TryStreamExt};
use heapline_dataset::{Dataset, Error, FILES, MANIFEST, Problem, RunFolder, RunInfo, Verdict};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

use crate::bucket::{Bucket, COMMIT_MARK};

/// Files that are fetched at the same time.
const AT_ONCE: usize = 16;

/// A run without its last file is still being added, unless no file of it is younger than this.
const LONGEST_ADD: Duration = Duration::from_hours(24);

impl Bucket {
    /// The facts of all complete runs, in order of service, day and id; those that cannot be read are errors.
    pub async fn run_infos(&self) -> anyhow::Result<Vec<Result<RunInfo, Error>>> {
        self.require_manifest().await?;
        let marks = self.commit_marks().await?;
        let (_folder, dataset) = temporary_dataset()?;
        self.fetch(&marks, dataset.folder()).await?;
        Ok(dataset.runs()?.into_iter().map(|(_, info)| info).collect())
    }

    /// Fetches everything, run by run, and looks for what is wrong. With `repair`, removes what adds that were killed left behind.
    pub async fn check(&self, repair: bool) -> anyhow::Result<Verdict> {
        self.check_with(repair, LONGEST_ADD).await
    }

    async fn check_with(&self, repair: bool, longest_add: Duration) -> anyhow::Result<Verdict> {
        self.require_manifest().await?;
        let mut verdict = Verdict::default();
        let mut runs: BTreeMap<RunFolder, Vec<ObjectMeta>> = BTreeMap::new();
        for object in self.objects().await? {
            let relative = self.relative(&object.location);
            match run_of(&relative) {
                Some(run) => runs.entry(run).or_default().push(object),
                None if relative == MANIFEST => {}
                None => {
                    let foreign = Problem::foreign(&self.address(&relative));
                    verdict.problems.push(foreign);
                }
            }
        }
        let mut complete = Vec::new();
        for (run, objects) in runs {
            let is_complete = objects
                .iter()
                .any(|object| object.location.filename() == Some(COMMIT_MARK));
            if is_complete {
                let problems = self.check_run(&objects).await?;
                verdict.problems.extend(problems);
                complete.push(run);
            } else if is_older(&objects, longest_add) {
                verdict.leftovers.push(self.address(&run.to_string()));
                if repair {
                    self.remove(&objects).await?;
                }
            } else {
                verdict.under_way += 1;
            }
        }
        verdict.note_runs(&complete, |run| self.address(&run.to_string()));
        verdict.problems.sort();
        Ok(verdict)
    }

    /// Returns the problems of a run.
    async fn check_run(&self, objects: &[ObjectMeta]) -> anyhow::Result<Vec<Problem>> {
        let (_folder, dataset) = temporary_dataset()?;
        let paths: Vec<Path> = objects.iter().map(|it| it.location.clone()).collect();
        self.fetch(&paths, dataset.folder()).await?;
        let mut problems = dataset.check()?.problems;
        for problem in &mut problems {
            let relative = problem.path.strip_prefix(dataset.folder());
            let relative = relative.unwrap_or(&problem.path).display().to_string();
            problem.path = self.address(&relative);
        }
        Ok(problems)
    }

    /// Fetches objects to a folder, under the same paths.
    async fn fetch(&self, objects: &[Path], folder: &FilePath) -> anyhow::Result<()> {
        futures::stream::iter(objects)
            .map(|object| self.fetch_one(object, folder))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    async fn fetch_one(&self, object: &Path, folder: &FilePath) -> anyhow::Result<()> {
        let target = folder.join(self.relative(object));
        let cannot = || format!("cannot fetch {object} from {}", self.url);
        if let Some(parent) = target.parent() {
            tokio::fs::create_dir_all(parent)
                .await
                .with_context(cannot)?;
        }
        let found = self.store.get(object).await.with_context(cannot)?;
        let mut file = tokio::fs::File::create(&target)
            .await
            .with_context(cannot)?;
        let mut bytes = found.into_stream();
        while let Some(bytes) = bytes.try_next().await.with_context(cannot)? {
            file.write_all(&bytes).await.with_context(cannot)?;
        }
        file.flush().await.with_context(cannot)
    }

    async fn remove(&self, objects: &[ObjectMeta]) -> anyhow::Result<()> {
        for object in objects {
            let path = &object.location;
            self.store
                .delete(path)
                .await
                .with_context(|| format!("cannot remove {path} from {}", self.url))?;
        }
        Ok(())
    }

    /// The path of an object within the dataset.
    fn relative(&self, object: &Path) -> String {
        let path = object.as_ref();
        let rest = path.strip_prefix(self.prefix.as_ref()).unwrap_or(path);
        rest.trim_start_matches('/').to_owned()
    }

    /// The address of something in the dataset.
    fn address(&self, relative: &str) -> PathBuf {
        format!("{}/{relative}", self.url.as_str().trim_end_matches('/')).into()
    }
}

/// The run that a file of a dataset is of.
fn run_of(relative: &str) -> Option<RunFolder> {
    let mut parts = relative.split('/');
    let folder = RunFolder::parse(parts.next()?, parts.next()?, parts.next()?)?;
    let is_file = parts.next().is_some_and(|file| FILES.contains(&file));
    (is_file && parts.next().is_none() && relative.starts_with(&folder.to_string()))
        .then_some(folder)
}

fn is_older(objects: &[ObjectMeta], limit: Duration) -> bool {
    objects.iter().all(|object| {
        let age = SystemTime::now().duration_since(object.last_modified.into());
        age.is_ok_and(|age| age > limit)
    })
}

/// An empty dataset in a folder that is removed with the first result.
fn temporary_dataset() -> anyhow::Result<(TempDir, Dataset)> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let dataset = Dataset::create(folder.path())?;
    Ok((folder, dataset))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use heapline_dataset::Labels;
    use object_store::memory::InMemory;

    use super::*;

    const TRACE: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../fixtures/mix-ocaml53/trace.ctf"
    );

    /// A dataset with a run.
    async fn bucket() -> Bucket {
        let bucket = Bucket {
            url: "s3://bucket/profiles".parse().unwrap(),
            prefix: Path::from("profiles"),
            store: Arc::new(InMemory::new()),
        };
        let labels = Labels::parse(["service=shop"]).unwrap();
        bucket.add(FilePath::new(TRACE), &labels).await.unwrap();
        bucket
    }

    /// Copies the files of the only run to those of another folder.
    async fn copy_run(bucket: &Bucket, service: &str, is_copied: impl Fn(&str) -> bool) {
        for object in bucket.objects().await.unwrap() {
            let path = object.location.as_ref();
            let target = path.replace("service=shop", service);
            if target != path && is_copied(path) {
                let target = Path::from(target);
                bucket.store.copy(&object.location, &target).await.unwrap();
            }
        }
    }

    #[tokio::test]
    async fn what_a_killed_add_left_is_removed() {
        let bucket = bucket().await;
        copy_run(&bucket, "service=mail", |path| {
            path.ends_with("sites.parquet")
        })
        .await;
        let recent = bucket.check(true).await.unwrap();
        assert_eq!((recent.runs, recent.under_way), (1, 1));
        assert!(recent.is_good(true) && recent.leftovers.is_empty());

        let before = bucket.objects().await.unwrap().len();
        let old = bucket.check_with(false, Duration::ZERO).await.unwrap();
        assert_eq!((old.runs, old.leftovers.len()), (1, 1));
        assert_eq!(bucket.objects().await.unwrap().len(), before);
        let repaired = bucket.check_with(true, Duration::ZERO).await.unwrap();
        assert_eq!(repaired.leftovers, old.leftovers);
        assert_eq!(bucket.objects().await.unwrap().len(), before - 1);
        let after = bucket.check_with(false, Duration::ZERO).await.unwrap();
        assert!(after.is_good(false), "{after:?}");
        assert_eq!(after.runs, 1);
    }

    #[tokio::test]
    async fn a_run_that_is_there_twice_is_a_problem() {
        let bucket = bucket().await;
        copy_run(&bucket, "service=twice", |_| true).await;
        let verdict = bucket.check(false).await.unwrap();
        assert_eq!(verdict.runs, 2);
        let reasons: Vec<&str> = verdict.problems.iter().map(|it| &*it.reason).collect();
        assert!(
            reasons
                .iter()
                .any(|reason| reason.contains("this run twice")),
            "{reasons:?}"
        );
    }

    #[test]
    fn files_of_runs_are_told_from_others() {
        let run = "service=a%20b/day=2026-01-02/run=0123456789abcdef";
        let folder = run_of(&format!("{run}/sites.parquet")).unwrap();
        assert_eq!(folder.to_string(), run);
        for other in [
            "notes.txt".to_owned(),
            run.to_owned(),
            format!("{run}/notes.txt"),
            format!("{run}/sites.parquet/more"),
            "service=a/day=b/run=c/sites.parquet".to_owned(),
        ] {
            assert_eq!(run_of(&other), None, "{other}");
        }
    }
}
