//! A Parquet table on its way out.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use crate::provenance;

/// Rows that are read and written together.
const ROWS_IN_GROUP: usize = 1 << 18;

/// Rows that are handed over together.
pub const ROWS_IN_BATCH: usize = 1 << 14;

/// A table on its way out: plain Parquet, compressed by zstd.
pub struct Table<W: Write + Send> {
    schema: Arc<Schema>,
    writer: ArrowWriter<W>,
}

impl<W: Write + Send> Table<W> {
    /// Starts a table with these metadata.
    pub fn new(
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

    /// Appends rows, given a column for each field of the schema.
    pub fn write(&mut self, columns: Vec<ArrayRef>) -> io::Result<()> {
        let batch = RecordBatch::try_new(self.schema.clone(), columns).map_err(io::Error::other)?;
        self.writer.write(&batch).map_err(io_error)
    }

    /// Writes the rest of the rows and the metadata.
    pub fn finish(mut self) -> io::Result<()> {
        self.writer.finish().map_err(io_error)?;
        self.writer.inner_mut().flush()
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
#[derive(Clone, Debug)]
pub struct Dictionary(Arc<StringArray>);

impl Dictionary {
    /// Copies the strings; fails if they take more than 2 GiB.
    pub fn new<'a>(strings: impl Iterator<Item = &'a str> + Clone) -> io::Result<Self> {
        let bytes: usize = strings.clone().map(str::len).sum();
        if i32::try_from(bytes).is_err() {
            return Err(io::Error::other("the trace has more than 2 GiB of names"));
        }
        Ok(Self(Arc::new(StringArray::from_iter_values(strings))))
    }

    /// A column with the strings of these numbers; `None` is null.
    pub fn column(&self, numbers: Vec<Option<i32>>) -> io::Result<ArrayRef> {
        let column =
            DictionaryArray::<Int32Type>::try_new(Int32Array::from(numbers), self.0.clone());
        Ok(Arc::new(column.map_err(io::Error::other)?))
    }

    /// The type of its columns.
    #[must_use]
    pub fn data_type() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
    }
}
