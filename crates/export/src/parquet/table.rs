//! A Parquet table on its way out.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use super::{Column, Field, schema};
use crate::provenance;

/// Rows that are read and written together, at most.
const ROWS_IN_GROUP: usize = 1 << 18;

/// Items of a column that are written together, about: rows can have long lists.
const ITEMS_IN_GROUP: usize = 1 << 21;

/// Rows that are handed over together.
pub const ROWS_IN_BATCH: usize = 1 << 14;

/// A table on its way out: plain Parquet, compressed by zstd.
// Arrow's writer takes any type of column there is: it would be a sixth of the program.
pub struct Table<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    /// For each column: true if it may have nulls.
    is_nullable: Vec<bool>,
    /// The columns of the next group, some rows of each at a time.
    waiting: Vec<Vec<Column>>,
}

impl<W: Write + Send> Table<W> {
    /// Starts a table with these metadata.
    pub fn new(
        facts: Vec<(&'static str, String)>,
        fields: &[Field],
        properties: WriterPropertiesBuilder,
        out: W,
    ) -> io::Result<Self> {
        let facts = facts
            .into_iter()
            .map(|(key, value)| KeyValue::new(key.to_owned(), value))
            .collect();
        let properties = properties
            .set_created_by(provenance::PROGRAM.to_owned())
            .set_key_value_metadata(Some(facts))
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        let schema = schema::schema(fields).map_err(io_error)?;
        Ok(Self {
            writer: SerializedFileWriter::new(out, schema, Arc::new(properties))
                .map_err(io_error)?,
            is_nullable: fields.iter().flat_map(Field::columns).collect(),
            waiting: Vec::new(),
        })
    }

    /// Appends rows, given the columns of all fields: several for those that consist of others.
    pub fn write(&mut self, columns: Vec<Column>) -> io::Result<()> {
        let rows = columns.first().map_or(0, Column::rows);
        if columns.len() != self.is_nullable.len() || columns.iter().any(|c| c.rows() != rows) {
            return Err(io::Error::other("rows of a table lack some columns"));
        }
        if rows == 0 {
            return Ok(());
        }
        let waiting = self.waiting.iter().map(|columns| columns[0].rows());
        if waiting.sum::<usize>() + rows > ROWS_IN_GROUP {
            self.write_group()?;
        }
        self.waiting.push(columns);
        let items = |column: usize| -> usize {
            let columns = self.waiting.iter().map(|columns| &columns[column]);
            columns.map(Column::items).sum()
        };
        if (0..self.is_nullable.len()).any(|column| items(column) >= ITEMS_IN_GROUP) {
            self.write_group()?;
        }
        Ok(())
    }

    /// Writes the rest of the rows and the metadata.
    pub fn finish(mut self) -> io::Result<()> {
        self.write_group()?;
        self.writer.finish().map_err(io_error)?;
        self.writer.inner_mut().flush()
    }

    /// Writes the rows that wait.
    fn write_group(&mut self) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group().map_err(io_error)?;
        for (column, &is_nullable) in self.is_nullable.iter().enumerate() {
            let mut writer = group
                .next_column()
                .map_err(io_error)?
                .ok_or_else(|| io::Error::other("a table has too many columns"))?;
            for columns in &waiting {
                columns[column].write(writer.untyped(), is_nullable)?;
            }
            writer.close().map_err(io_error)?;
        }
        group.close().map(drop).map_err(io_error)
    }
}

/// The settings that a table starts from.
#[must_use]
pub fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
}

/// Stores the differences of neighbours for these columns: best for times, which grow slowly, and each of
/// which occurs once or twice, so that dictionaries do not pay.
#[must_use]
pub fn delta_encoded(
    properties: WriterPropertiesBuilder,
    columns: &[&str],
) -> WriterPropertiesBuilder {
    columns.iter().fold(properties, |properties, column| {
        let column = ColumnPath::from(*column);
        properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED)
    })
}

/// The error as it was before it went through the library: callers look for broken pipes.
pub(super) fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}
