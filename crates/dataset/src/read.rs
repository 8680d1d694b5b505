//! Reads the tables of a dataset, column by column.
//!
//! That takes Parquet's own reader: Arrow's would be a quarter of the program.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType};
use parquet::file::reader::{FileReader, SerializedFileReader};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::tables::read_info;
use crate::{Dataset, Error, RunFolder, RunInfo, VERSION, VERSION_KEY};

/// Rows that are read at once.
const BATCH: usize = 1 << 13;

/// A table of a version that is known.
pub(crate) struct TableReader {
    path: PathBuf,
    file: SerializedFileReader<File>,
}

impl TableReader {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let file = SerializedFileReader::new(file).map_err(Error::parquet(path))?;
        let facts = file.metadata().file_metadata().key_value_metadata();
        let version = facts
            .into_iter()
            .flatten()
            .find(|fact| fact.key == VERSION_KEY)
            .and_then(|fact| fact.value.as_deref());
        match version.map(str::parse) {
            Some(Ok(VERSION)) => Ok(Self {
                path: path.to_owned(),
                file,
            }),
            Some(Ok(version)) => Err(Error::table(
                path,
                format!("it has version {version}, and this heapline reads version {VERSION}"),
            )),
            Some(Err(_)) | None => Err(Error::table(path, "it does not tell its version")),
        }
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> i64 {
        self.file.metadata().file_metadata().num_rows()
    }

    /// The error of a column.
    pub(crate) fn wrong(&self, column: &str) -> Error {
        Error::table(
            &self.path,
            format!("the column {column} is missing or wrong"),
        )
    }

    /// Hands over the values of a column that are not null, batch by batch. A column within others has a path, as in
    /// `labels.key_value.key`.
    pub(crate) fn for_each<T: DataType>(
        &self,
        column: &str,
        mut f: impl FnMut(&[T::T]),
    ) -> Result<(), Error> {
        let metadata = self.file.metadata();
        let columns = metadata.file_metadata().schema_descr().columns();
        let place = columns
            .iter()
            .position(|found| found.path().string() == column)
            .filter(|&place| columns[place].physical_type() == T::get_physical_type())
            .ok_or_else(|| self.wrong(column))?;
        let failed = Error::parquet(&self.path);
        let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
        for group in 0..metadata.num_row_groups() {
            let group = self.file.get_row_group(group).map_err(&failed)?;
            let reader = group.get_column_reader(place).map_err(&failed)?;
            let mut reader = get_typed_column_reader::<T>(reader);
            let mut left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            while left > 0 {
                values.clear();
                definitions.clear();
                repetitions.clear();
                let (rows, _, _) = reader
                    .read_records(
                        BATCH.min(left),
                        Some(&mut definitions),
                        Some(&mut repetitions),
                        &mut values,
                    )
                    .map_err(&failed)?;
                if rows == 0 {
                    return Err(self.wrong(column));
                }
                left -= rows;
                f(&values);
            }
        }
        Ok(())
    }

    /// All values of a column that are not null.
    pub(crate) fn values<T: DataType>(&self, column: &str) -> Result<Vec<T::T>, Error> {
        let mut all = Vec::new();
        self.for_each::<T>(column, |values| all.extend_from_slice(values))?;
        Ok(all)
    }

    /// All texts of a column that are not null.
    pub(crate) fn texts(&self, column: &str) -> Result<Vec<String>, Error> {
        let text = |bytes: &ByteArray| bytes.as_utf8().map(str::to_owned);
        let texts = self.values::<ByteArrayType>(column)?;
        let texts: Result<_, _> = texts.iter().map(text).collect();
        texts.map_err(|_| self.wrong(column))
    }
}

/// Reads the row of a run.
pub(crate) fn info(path: &Path) -> Result<RunInfo, Error> {
    let table = TableReader::open(path)?;
    if table.rows() != 1 {
        return Err(Error::table(path, "it must have one row"));
    }
    read_info(&table)
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
