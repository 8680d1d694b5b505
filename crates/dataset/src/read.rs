//! Reads the tables of a dataset.

use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::tables::read_info;
use crate::{Dataset, Error, RunFolder, RunInfo, VERSION, VERSION_KEY};

/// Opens a table of a version that is known.
pub(crate) fn open(path: &Path) -> Result<ParquetRecordBatchReader, Error> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(Error::parquet(path))?;
    let facts = reader.metadata().file_metadata().key_value_metadata();
    let version = facts
        .into_iter()
        .flatten()
        .find(|fact| fact.key == VERSION_KEY)
        .and_then(|fact| fact.value.as_deref());
    match version.map(str::parse) {
        Some(Ok(VERSION)) => reader.build().map_err(Error::parquet(path)),
        Some(Ok(version)) => Err(Error::table(
            path,
            format!("it has version {version}, and this heapline reads version {VERSION}"),
        )),
        Some(Err(_)) | None => Err(Error::table(path, "it does not tell its version")),
    }
}

/// Reads all rows of a table, batch by batch.
pub(crate) fn for_each_batch(
    path: &Path,
    mut f: impl FnMut(&RecordBatch) -> Result<(), Error>,
) -> Result<(), Error> {
    for batch in open(path)? {
        f(&batch.map_err(|error| Error::table(path, error.to_string()))?)?;
    }
    Ok(())
}

/// Reads the row of a run.
pub(crate) fn info(path: &Path) -> Result<RunInfo, Error> {
    let mut rows = Vec::new();
    for_each_batch(path, |batch| {
        if batch.num_rows() != 1 || !rows.is_empty() {
            return Err(Error::table(path, "it must have one row"));
        }
        let wrong = |column| Error::table(path, format!("the column {column} is missing or wrong"));
        rows.push(read_info(batch).map_err(wrong)?);
        Ok(())
    })?;
    rows.pop()
        .ok_or_else(|| Error::table(path, "it must have one row"))
}

/// A run, and what its table says of it.
type ReadRun = (RunFolder, Result<RunInfo, Error>);

impl Dataset {
    /// The facts of all runs, in order of service, day and id; those that cannot be read are errors.
    pub fn runs(&self) -> Result<Vec<ReadRun>, Error> {
        let folders = self.run_folders()?;
        let read = |folder: &RunFolder| {
            let path = folder.in_dataset(self.folder()).join("runs.parquet");
            (folder.clone(), info(&path))
        };
        Ok(folders.par_iter().map(read).collect())
    }
}
