//! A run on its way into a dataset.

use std::io;
use std::path::Path;

use heapline_profile::{Estimator, Profile, Query, Scope};

use crate::checksums;
use crate::info::saturated;
use crate::names::Names;
use crate::tables::{self, Target};
use crate::{Error, Labels, RunFolder, RunId, RunInfo};

/// A profile with the facts that a dataset needs of it.
#[derive(Debug)]
pub struct Run<'a> {
    profile: &'a Profile,
    info: RunInfo,
}

impl<'a> Run<'a> {
    /// The run of a profile: its id, the name of its trace file, and its labels. Fails if the profile has
    /// no single blocks.
    pub fn new(
        profile: &'a Profile,
        id: RunId,
        trace: &str,
        labels: &Labels,
    ) -> Result<Self, Error> {
        if !profile.tells().sizes {
            return Err(Error::NoBlocks);
        }
        let info = RunInfo::new(profile, id, trace, labels);
        Ok(Self { profile, info })
    }

    /// The folder of a dataset that its files belong to.
    #[must_use]
    pub fn folder(&self) -> RunFolder {
        self.info.folder()
    }

    /// Writes the [`FILES`](crate::FILES) into a folder, in which there must be none of them. They are complete
    /// when this returns; a program that stores them elsewhere must store them in that order.
    pub fn write(&self, folder: &Path) -> Result<RunInfo, Error> {
        let names = Names::new(self.profile);
        let scope = Scope::new(self.profile, &Query::default(), Estimator::default());
        let stacks = self.table(folder, "stacks.parquet", |target| {
            tables::stacks(target, self.profile, &names)
        });
        let (stacks, used) = stacks?;
        self.table(folder, "frames.parquet", |target| {
            tables::frames(target, &names, &used)
        })?;
        let sites = self.table(folder, "blocks.parquet", |target| {
            tables::blocks(target, &scope, &names, &stacks)
        })?;
        self.table(folder, "sites.parquet", |target| {
            tables::sites(target, &names, &sites)
        })?;
        let (sampled, totals) = sites.total();
        let info = RunInfo {
            sampled_blocks: saturated(sampled),
            totals,
            ..self.info.clone()
        };
        self.table(folder, "runs.parquet", |target| tables::runs(target, &info))?;
        checksums::write(folder)?;
        Ok(info)
    }

    fn table<T>(
        &self,
        folder: &Path,
        file: &str,
        write: impl FnOnce(&Target<'_>) -> io::Result<T>,
    ) -> Result<T, Error> {
        let path = folder.join(file);
        let target = Target {
            path: &path,
            run: self.info.run,
        };
        write(&target).map_err(Error::io("write", &path))
    }
}
