//! Tables for programs that query tables: DuckDB, Polars, pandas, Spark and others.
//!
//! There are two of them, joined by `stack_id`: [`blocks()`], or [`snapshots()`] where there are no
//! single blocks, and [`stacks()`]. They are plain Parquet
//! with types that every reader has; what the trace says of itself is in their metadata.

mod blocks;
mod heap;
mod snapshots;
mod stacks;

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};

pub(crate) use self::blocks::BLOCK_COLUMNS;
pub use self::blocks::blocks;
pub use self::heap::{edges, nodes};
pub use self::snapshots::snapshots;
pub(crate) use self::snapshots::{SNAPSHOT_COLUMNS, columns as snapshot_columns};
pub use self::stacks::stacks;
use crate::provenance;

/// Rows that are read and written together.
const ROWS_IN_GROUP: usize = 1 << 18;

/// Rows that are handed over together.
const ROWS_IN_BATCH: usize = 1 << 14;

/// A table on its way out.
struct Table<W: Write + Send> {
    schema: Arc<Schema>,
    writer: ArrowWriter<W>,
}

impl<W: Write + Send> Table<W> {
    fn new(
        facts: Vec<(&'static str, String)>,
        schema: Schema,
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
            .set_max_row_group_row_count(Some(ROWS_IN_GROUP))
            .build();
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            // Dictionaries are how we hand strings over; readers are to see strings.
            .with_skip_arrow_metadata(true);
        let schema = Arc::new(schema);
        let writer =
            ArrowWriter::try_new_with_options(out, schema.clone(), options).map_err(io_error)?;
        Ok(Self { schema, writer })
    }

    fn write(&mut self, columns: Vec<ArrayRef>) -> io::Result<()> {
        let batch = RecordBatch::try_new(self.schema.clone(), columns).map_err(io::Error::other)?;
        self.writer.write(&batch).map_err(io_error)
    }

    fn finish(mut self) -> io::Result<()> {
        self.writer.finish().map_err(io_error)?;
        self.writer.inner_mut().flush()
    }
}

fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
}

/// The error as it was before it went through the library: callers look for broken pipes.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}

/// Strings that columns refer to by number, so that they are never copied.
#[derive(Clone)]
struct Dictionary(Arc<StringArray>);

impl Dictionary {
    fn new<'a>(strings: impl Iterator<Item = &'a str> + Clone) -> io::Result<Self> {
        let bytes: usize = strings.clone().map(str::len).sum();
        if i32::try_from(bytes).is_err() {
            return Err(io::Error::other("the trace has more than 2 GiB of names"));
        }
        Ok(Self(Arc::new(StringArray::from_iter_values(strings))))
    }

    fn column(&self, numbers: Vec<Option<i32>>) -> io::Result<ArrayRef> {
        let column =
            DictionaryArray::<Int32Type>::try_new(Int32Array::from(numbers), self.0.clone());
        Ok(Arc::new(column.map_err(io::Error::other)?))
    }

    fn data_type() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
    }
}

/// A number as such columns have it. There are fewer names than bytes of them.
fn number(n: impl TryInto<i32>) -> Option<i32> {
    n.try_into().ok()
}
