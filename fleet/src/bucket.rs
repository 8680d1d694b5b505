//! Datasets in object stores.
//!
//! A run is there when its last file is: readers list those first. The layout is that of folders.

use std::path::Path as FilePath;
use std::sync::Arc;

use anyhow::{Context, bail};
use futures::TryStreamExt;
use heapline_dataset::{FILES, Labels, MANIFEST, Run, RunId, TraceFile};
use object_store::aws::AmazonS3Builder;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use tokio::io::AsyncWriteExt;
use url::Url;

/// The file of a run that is stored last.
pub(crate) const COMMIT_MARK: &str = {
    let [.., last] = FILES;
    last
};

/// A dataset in an object store, by its URL: `s3://BUCKET/PREFIX`.
#[derive(Clone, Debug)]
pub struct Bucket {
    pub(crate) url: Url,
    pub(crate) prefix: Path,
    pub(crate) store: Arc<dyn ObjectStore>,
}

/// The result of adding a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is a new run.
    New(String),
    /// The dataset has it already: nothing was changed.
    Known(String),
}

impl Bucket {
    /// The bucket of a URL; `None` if the text is a path. Credentials, region and endpoint come from the
    /// environment, as in other programs: `AWS_ACCESS_KEY_ID` and others.
    pub fn parse(text: &str) -> anyhow::Result<Option<Self>> {
        let url = match Url::parse(text) {
            Ok(url) if text.contains("://") => url,
            _ => return Ok(None),
        };
        if url.scheme() != "s3" {
            bail!(
                "cannot open {text}: {} is not supported; give a folder or s3://BUCKET/PREFIX",
                url.scheme()
            );
        }
        let store = AmazonS3Builder::from_env()
            .with_url(text)
            .build()
            .with_context(|| format!("cannot open {text}"))?;
        let prefix = Path::from_url_path(url.path())?;
        Ok(Some(Self {
            url,
            prefix,
            store: Arc::new(store),
        }))
    }

    /// The store, and the URL that its objects begin with.
    pub(crate) fn store(&self) -> (&Url, Arc<dyn ObjectStore>) {
        (&self.url, Arc::clone(&self.store))
    }

    /// The URLs of the folders of all complete runs, in order.
    pub(crate) async fn runs(&self) -> anyhow::Result<Vec<Url>> {
        self.require_manifest().await?;
        let marks = self.commit_marks().await?;
        marks.iter().map(|path| self.folder_url(path)).collect()
    }

    /// Adds a trace, unless its run is there already.
    pub async fn add(&self, trace: &FilePath, labels: &Labels) -> anyhow::Result<Added> {
        let trace = TraceFile::open(trace)?;
        let id = trace.id()?;
        if !self.has_manifest().await? {
            self.create().await?;
        }
        if let Some(known) = self.find(id).await? {
            return Ok(Added::Known(known));
        }
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let name = {
            let profile = trace.profile()?;
            let run = Run::new(&profile, id, &trace.name(), labels)?;
            run.write(folder.path())?;
            run.folder().to_string()
        };
        for file in FILES {
            // The name is escaped already.
            let target = Path::parse(format!("{}/{name}/{file}", self.prefix))?;
            self.upload(&folder.path().join(file), &target).await?;
        }
        Ok(Added::New(name))
    }

    /// Uploads a file; no reader sees a part of it.
    async fn upload(&self, file: &FilePath, target: &Path) -> anyhow::Result<()> {
        let cannot = || format!("cannot store {target} in {}", self.url);
        let mut reader = tokio::fs::File::open(file).await.with_context(cannot)?;
        let mut writer = BufWriter::new(Arc::clone(&self.store), target.clone());
        match tokio::io::copy(&mut reader, &mut writer).await {
            Ok(_) => writer.shutdown().await.with_context(cannot),
            Err(error) => {
                // The error of the copy is the one to report.
                let _ = writer.abort().await;
                Err(error).with_context(cannot)
            }
        }
    }

    /// Fails if there is no dataset.
    pub(crate) async fn require_manifest(&self) -> anyhow::Result<()> {
        if !self.has_manifest().await? {
            bail!(
                "{} is not a dataset; make one: heapline dataset add {0} TRACE...",
                self.url
            );
        }
        Ok(())
    }

    /// Returns true if there is a manifest, and it is of a version that is known.
    async fn has_manifest(&self) -> anyhow::Result<bool> {
        let manifest = match self.store.get(&self.prefix.clone().join(MANIFEST)).await {
            Err(Error::NotFound { .. }) => return Ok(false),
            manifest => manifest.with_context(|| format!("cannot read {}", self.url))?,
        };
        let bytes = manifest.bytes().await?;
        // A local dataset checks it.
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        std::fs::write(folder.path().join(MANIFEST), bytes)?;
        heapline_dataset::Dataset::open(folder.path())
            .with_context(|| format!("cannot open {}", self.url))?;
        Ok(true)
    }

    /// Makes a dataset where nothing is.
    async fn create(&self) -> anyhow::Result<()> {
        let mut objects = self.store.list(Some(&self.prefix));
        if let Some(object) = objects
            .try_next()
            .await
            .with_context(|| format!("cannot list {}", self.url))?
        {
            bail!(
                "{} has other objects, such as {}; give another prefix",
                self.url,
                object.location
            );
        }
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        heapline_dataset::Dataset::create(folder.path())?;
        let manifest = std::fs::read(folder.path().join(MANIFEST))?;
        let options = PutOptions {
            mode: PutMode::Create,
            ..PutOptions::default()
        };
        let path = self.prefix.clone().join(MANIFEST);
        match self.store.put_opts(&path, manifest.into(), options).await {
            // Another process did the same.
            Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
            Err(error) => {
                Err(error).with_context(|| format!("cannot make a dataset in {}", self.url))
            }
        }
    }

    async fn find(&self, run: RunId) -> anyhow::Result<Option<String>> {
        let folder = format!("run={run}");
        let marks = self.commit_marks().await?;
        let found = marks
            .iter()
            .find(|mark| mark.parts().any(|part| part.as_ref() == folder));
        Ok(found.map(ToString::to_string))
    }

    /// The last files of all runs.
    pub(crate) async fn commit_marks(&self) -> anyhow::Result<Vec<Path>> {
        let objects = self.objects().await?.into_iter();
        let mut marks: Vec<Path> = objects
            .map(|object| object.location)
            .filter(|path| path.filename() == Some(COMMIT_MARK))
            .collect();
        marks.sort();
        Ok(marks)
    }

    /// All objects of the dataset.
    pub(crate) async fn objects(&self) -> anyhow::Result<Vec<ObjectMeta>> {
        let objects = self.store.list(Some(&self.prefix)).try_collect();
        objects
            .await
            .with_context(|| format!("cannot list {}", self.url))
    }

    /// The URL of the folder of an object.
    fn folder_url(&self, object: &Path) -> anyhow::Result<Url> {
        let mut url = self.url.clone();
        let parts: Vec<String> = object
            .parts()
            .map(|part| part.as_ref().to_owned())
            .collect();
        let mut segments = url
            .path_segments_mut()
            .ok()
            .context("the URL of the dataset has no path")?;
        segments
            .clear()
            .extend(&parts[..parts.len().saturating_sub(1)]);
        drop(segments);
        Ok(url)
    }
}
