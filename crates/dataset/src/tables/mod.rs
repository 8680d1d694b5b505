//! The tables of a run.

mod blocks;
mod frames;
mod runs;
mod sites;
mod stacks;

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

use ::parquet::file::properties::WriterPropertiesBuilder;
use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array};
use arrow_schema::{DataType, Field, Schema};
use heapline_export::parquet::{self, Dictionary};

pub(crate) use self::blocks::blocks;
pub(crate) use self::frames::frames;
pub(crate) use self::runs::{read_info, runs};
pub(crate) use self::sites::sites;
pub(crate) use self::stacks::{StackPlace, stacks};
use crate::{RunId, VERSION, VERSION_KEY};

/// The file that a table is written to, which must not exist.
pub(crate) struct Target<'a> {
    pub(crate) path: &'a Path,
    pub(crate) run: RunId,
}

impl Target<'_> {
    fn table(&self, fields: Vec<Field>, properties: WriterPropertiesBuilder) -> io::Result<Table> {
        let mut all = vec![Field::new("run", Dictionary::data_type(), false)];
        all.extend(fields);
        let facts = vec![(VERSION_KEY, VERSION.to_string())];
        let out = BufWriter::with_capacity(1 << 16, File::create_new(self.path)?);
        let run = self.run.to_string();
        Ok(Table {
            table: parquet::Table::new(facts, Schema::new(all), properties, out)?,
            run: Dictionary::new(std::iter::once(&*run))?,
        })
    }
}

/// A table of a run: its first column is the run.
struct Table {
    table: parquet::Table<BufWriter<File>>,
    run: Dictionary,
}

impl Table {
    /// Appends rows, given all columns but the first.
    fn write(&mut self, columns: Vec<ArrayRef>) -> io::Result<()> {
        let rows = columns.first().map_or(0, |column| column.len());
        let mut all = vec![self.run.column(vec![Some(0); rows])?];
        all.extend(columns);
        self.table.write(all)
    }

    fn finish(self) -> io::Result<()> {
        self.table.finish()
    }
}

fn long(name: &str) -> Field {
    Field::new(name, DataType::Int64, false)
}

fn int(name: &str) -> Field {
    Field::new(name, DataType::Int32, false)
}

fn double(name: &str) -> Field {
    Field::new(name, DataType::Float64, false)
}

fn text(name: &str) -> Field {
    Field::new(name, Dictionary::data_type(), false)
}

fn longs(numbers: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(numbers))
}

fn nullable_ints(numbers: impl Iterator<Item = Option<i32>>) -> ArrayRef {
    Arc::new(numbers.collect::<Int32Array>())
}

fn doubles(numbers: impl Iterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(numbers))
}
