//! The tables of a run.

mod blocks;
mod frames;
mod runs;
mod sites;
mod stacks;

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use ::parquet::file::properties::WriterPropertiesBuilder;
use heapline_export::parquet::{self, Column, Dictionary, Field, Kind};

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
        let mut all = vec![text("run")];
        all.extend(fields);
        let facts = vec![(VERSION_KEY, VERSION.to_string())];
        let out = BufWriter::with_capacity(1 << 16, File::create_new(self.path)?);
        let run = self.run.to_string();
        Ok(Table {
            table: parquet::Table::new(facts, &all, properties, out)?,
            run: Dictionary::new(std::iter::once(&*run)),
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
    fn write(&mut self, columns: Vec<Column>) -> io::Result<()> {
        let rows = columns.first().map_or(0, Column::rows);
        let mut all = vec![self.run.column(std::iter::repeat_n(Some(0), rows))];
        all.extend(columns);
        self.table.write(all)
    }

    fn finish(self) -> io::Result<()> {
        self.table.finish()
    }
}

fn long(name: &str) -> Field {
    Field::new(name, Kind::Long)
}

fn int(name: &str) -> Field {
    Field::new(name, Kind::Int)
}

fn double(name: &str) -> Field {
    Field::new(name, Kind::Double)
}

fn text(name: &str) -> Field {
    Field::new(name, Kind::Text)
}
