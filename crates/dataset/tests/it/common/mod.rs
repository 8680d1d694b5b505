//! Profiles and tables for the tests of datasets.

#![allow(dead_code, reason = "every test uses some of it")]

use std::fs::File;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use heapline_dataset::{Labels, Run, RunId, RunInfo};
use heapline_formats::{Options, Reader};
use heapline_profile::{Profile, StoreOptions};
use heapline_testkit::fixtures;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// The eight estimates of runs and sites.
pub(crate) const ESTIMATES: [&str; 8] = [
    "allocated_bytes",
    "allocated_blocks",
    "live_at_peak_bytes",
    "live_at_peak_blocks",
    "live_at_end_bytes",
    "live_at_end_blocks",
    "promoted_bytes",
    "promoted_blocks",
];

pub(crate) fn fixture(name: &str) -> PathBuf {
    fixtures::folder().join(name)
}

pub(crate) fn parse(bytes: Vec<u8>) -> Profile {
    let mut reader = Reader::new(Cursor::new(bytes), Options::default()).unwrap();
    Profile::load(&mut reader, StoreOptions::default()).unwrap()
}

/// The files of a run in a folder of their own.
pub(crate) struct Files {
    folder: tempfile::TempDir,
    pub(crate) info: RunInfo,
}

impl Files {
    pub(crate) fn of(profile: &Profile) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let id = RunId::of(&b"some trace"[..]).unwrap();
        let run = Run::new(profile, id, "some.ctf", &Labels::default()).unwrap();
        let info = run.write(folder.path()).unwrap();
        Self { folder, info }
    }

    pub(crate) fn table(&self, name: &str) -> Table {
        Table::read(&self.folder.path().join(format!("{name}.parquet")))
    }
}

/// All rows of a table.
pub(crate) struct Table(Vec<RecordBatch>);

impl Table {
    pub(crate) fn read(path: &Path) -> Self {
        let file = File::open(path).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        Self(reader.build().unwrap().map(Result::unwrap).collect())
    }

    pub(crate) fn rows(&self) -> usize {
        self.0.iter().map(RecordBatch::num_rows).sum()
    }

    fn each<T>(&self, column: &str, get: impl Fn(&dyn Array) -> Vec<T>) -> Vec<T> {
        let columns = self
            .0
            .iter()
            .map(|batch| batch.column_by_name(column).unwrap());
        columns.flat_map(|column| get(column)).collect()
    }

    pub(crate) fn doubles(&self, column: &str) -> Vec<f64> {
        self.each(column, |column| {
            column.as_primitive::<Float64Type>().values().to_vec()
        })
    }

    pub(crate) fn longs(&self, column: &str) -> Vec<i64> {
        self.each(column, |column| {
            column.as_primitive::<Int64Type>().values().to_vec()
        })
    }

    pub(crate) fn nullable_longs(&self, column: &str) -> Vec<Option<i64>> {
        self.each(column, |column| {
            column.as_primitive::<Int64Type>().iter().collect()
        })
    }

    pub(crate) fn texts(&self, column: &str) -> Vec<Option<String>> {
        self.each(column, |column| {
            let texts = column.as_string::<i32>().iter();
            texts.map(|text| text.map(str::to_owned)).collect()
        })
    }

    pub(crate) fn lists(&self, column: &str) -> Vec<Vec<f64>> {
        self.each(column, |column| {
            let lists = column.as_list::<i32>().iter().map(Option::unwrap);
            lists
                .map(|list| list.as_primitive::<Float64Type>().values().to_vec())
                .collect()
        })
    }

    pub(crate) fn sum(&self, column: &str) -> f64 {
        self.doubles(column).iter().sum()
    }
}

pub(crate) fn assert_near(a: f64, b: f64, what: &str) {
    assert!(
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        "{what}: {a} {b}"
    );
}
