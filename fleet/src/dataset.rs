//! The files of a dataset.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use heapline_dataset::FILES;
use url::Url;

use crate::bucket::Bucket;

/// The tables that each run has, by the names that statements use.
pub const TABLES: [&str; 5] = ["runs", "sites", "blocks", "stacks", "frames"];

/// The runs of a dataset at the time it was opened; runs that are added later are not part of it.
#[derive(Debug)]
pub struct Dataset {
    bucket: Option<Bucket>,
    /// The URLs of their folders.
    runs: Vec<Url>,
}

impl Dataset {
    /// Lists the runs of a dataset in a folder, or in an object store if `location` is a URL.
    pub async fn open(location: &str) -> anyhow::Result<Self> {
        let bucket = Bucket::parse(location)?;
        let runs = match &bucket {
            Some(bucket) => bucket.runs().await?,
            None => local_runs(Path::new(location))?,
        };
        if runs.is_empty() {
            bail!(
                "{location} has no runs yet; add traces: heapline dataset add {location} TRACE..."
            );
        }
        Ok(Self { bucket, runs })
    }

    /// The object store that has it, unless that is the file system.
    pub(crate) fn bucket(&self) -> Option<&Bucket> {
        self.bucket.as_ref()
    }

    /// Checks the ends of the files of a table, unless they are in an object store: the reader of Parquet trusts the length
    /// that is given there, and panics in builds with overflow checks.
    pub(crate) fn check_files(&self, table: &str) -> anyhow::Result<()> {
        let files = self.files(table).filter_map(|url| url.to_file_path().ok());
        for path in files {
            let is_complete = ends_as_parquet(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            if !is_complete {
                bail!(
                    "{} is damaged; to find all such files: heapline dataset check",
                    path.display()
                );
            }
        }
        Ok(())
    }

    /// The URLs of the files of a table, one of each run.
    pub fn files(&self, table: &str) -> impl Iterator<Item = Url> {
        let name = format!("{table}.parquet");
        self.runs.iter().map(move |run| {
            let mut url = run.clone();
            if let Ok(mut segments) = url.path_segments_mut() {
                segments.push(&name);
            }
            url
        })
    }
}

/// Returns true if a file ends with the length of its metadata and the mark of the format, and is long enough for both.
fn ends_as_parquet(path: &Path) -> std::io::Result<bool> {
    const MARK: &[u8] = b"PAR1";
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut end = [0; 8];
    let Some(start) = size.checked_sub(end.len() as u64) else {
        return Ok(false);
    };
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut end)?;
    let [a, b, c, d, mark @ ..] = end;
    let metadata = u64::from(u32::from_le_bytes([a, b, c, d]));
    Ok(mark == *MARK && metadata <= start.saturating_sub(MARK.len() as u64))
}

fn local_runs(folder: &Path) -> anyhow::Result<Vec<Url>> {
    // Executors of a cluster have other working directories.
    let folder = folder
        .canonicalize()
        .with_context(|| format!("cannot open {}", folder.display()))?;
    let dataset = heapline_dataset::Dataset::open(&folder)?;
    let [.., commit_mark] = FILES;
    let mut runs = Vec::new();
    for run in dataset.run_folders()? {
        let run = run.in_dataset(&folder);
        if run.join(commit_mark).is_file() {
            // A path would be a pattern if it has a `*`; a URL is not.
            let url = Url::from_file_path(&run);
            runs.push(url.map_err(|()| anyhow!("{} is not an absolute path", run.display()))?);
        }
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use heapline_dataset::MANIFEST;

    use super::*;

    fn add(folder: &Path, run: &str, files: &[&str]) {
        let folder = folder.join("service=a/day=2026-11-17").join(run);
        fs::create_dir_all(&folder).unwrap();
        for file in files {
            fs::write(folder.join(file), "").unwrap();
        }
    }

    #[tokio::test]
    async fn only_runs_that_are_complete_are_listed() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("50% [a*b]");
        fs::create_dir(&folder).unwrap();
        let location = folder.to_str().unwrap();
        let manifest = r#"{"format": "heapline-dataset", "version": 1}"#;
        fs::write(folder.join(MANIFEST), manifest).unwrap();
        let error = Dataset::open(location).await.unwrap_err().to_string();
        assert!(error.contains("has no runs yet"), "{error}");
        let [first, second] = ["run=0000000000000001", "run=0000000000000002"];
        add(&folder, first, &["sites.parquet", "runs.parquet"]);
        add(&folder, second, &["sites.parquet"]);
        add(&folder, ".adding-1", &["sites.parquet", "runs.parquet"]);
        let files: Vec<Url> = Dataset::open(location)
            .await
            .unwrap()
            .files("sites")
            .collect();
        assert_eq!(files.len(), 1);
        let path = files[0].to_file_path().unwrap();
        assert!(
            path.ends_with(format!("{first}/sites.parquet")) && path.is_file(),
            "{path:?}"
        );
    }

    #[tokio::test]
    async fn other_folders_are_refused() {
        let empty = tempfile::tempdir().unwrap();
        assert!(Dataset::open(empty.path().to_str().unwrap()).await.is_err());
        let error = Dataset::open("gopher://bucket")
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("gopher is not supported"), "{error}");
    }
}
