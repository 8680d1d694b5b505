//! Writes the answers of statements in several formats.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::writer::FileWriter;
use datafusion::arrow::util::pretty::pretty_format_batches_with_schema;
use datafusion::arrow::{csv, json};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;
use futures::StreamExt;
use heapline_text::sanitize_lines;

/// Tables for people have no more rows than this: all of them are in memory at once.
const MOST_TABLE_ROWS: usize = 1000;

/// The format of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people.
    #[default]
    Table,
    /// Comma-separated values, with a header.
    Csv,
    /// An array of objects.
    Json,
    /// An Arrow IPC file.
    Arrow,
    /// A Parquet file.
    Parquet,
}

/// The format and the destination of an answer.
#[derive(Args, Clone, Debug, Default)]
pub struct OutputOptions {
    /// Write the answer in this format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Write the answer to this file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite the output file if it exists
    #[arg(long)]
    pub force: bool,
}

impl OutputOptions {
    /// Writes an answer as it arrives. A file that is not complete is removed.
    pub async fn write(&self, rows: SendableRecordBatchStream) -> anyhow::Result<u64> {
        let Some(path) = &self.output else {
            let is_binary = matches!(self.format, Format::Arrow | Format::Parquet);
            if is_binary && io::stdout().is_terminal() {
                bail!("refusing to write binary data to a terminal; give --output FILE");
            }
            return copy(self.format, rows, Box::new(io::stdout())).await;
        };
        let cannot = || format!("cannot write {}", path.display());
        if path.exists() && !self.force {
            bail!(
                "{} already exists; use --force to overwrite it",
                path.display()
            );
        }
        let unfinished = unfinished(path);
        let file = File::create(&unfinished).with_context(cannot)?;
        let written = copy(self.format, rows, Box::new(file)).await;
        if written.is_ok() {
            std::fs::rename(&unfinished, path).with_context(cannot)?;
        } else {
            // The error of the statement is the one to report.
            let _ = std::fs::remove_file(&unfinished);
        }
        written
    }
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

/// Writes batches in a format.
trait Writer {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()>;
    fn finish(self: Box<Self>) -> anyhow::Result<()>;
}

type Destination = Box<dyn Write + Send>;

async fn copy(
    format: Format,
    mut rows: SendableRecordBatchStream,
    to: Destination,
) -> anyhow::Result<u64> {
    let mut writer = writer(format, rows.schema(), to)?;
    let mut count = 0;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        count += batch.num_rows() as u64;
        writer.write(&batch)?;
    }
    writer.finish()?;
    Ok(count)
}

fn writer(format: Format, schema: SchemaRef, to: Destination) -> anyhow::Result<Box<dyn Writer>> {
    Ok(match format {
        Format::Table => Box::new(Table {
            schema,
            to,
            kept: Vec::new(),
            rows: 0,
            left_out: 0,
        }),
        Format::Csv => Box::new(csv::Writer::new(to)),
        Format::Json => Box::new(json::ArrayWriter::new(to)),
        Format::Arrow => Box::new(FileWriter::try_new(to, &schema)?),
        Format::Parquet => {
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .build();
            Box::new(ArrowWriter::try_new(to, schema, Some(properties))?)
        }
    })
}

struct Table {
    schema: SchemaRef,
    to: Destination,
    kept: Vec<RecordBatch>,
    rows: usize,
    left_out: usize,
}

impl Writer for Table {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let shown = batch.num_rows().min(MOST_TABLE_ROWS - self.rows);
        self.rows += shown;
        self.left_out += batch.num_rows() - shown;
        if shown > 0 {
            self.kept.push(batch.slice(0, shown));
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> anyhow::Result<()> {
        let table = pretty_format_batches_with_schema(Arc::clone(&self.schema), &self.kept)?;
        // Names come from traces: they may have control characters for terminals.
        writeln!(self.to, "{}", sanitize_lines(&table.to_string()))?;
        if self.left_out > 0 {
            writeln!(
                self.to,
                "{} more rows; other formats have all of them (--format csv)",
                self.left_out
            )?;
        }
        Ok(self.to.flush()?)
    }
}

impl Writer for csv::Writer<Destination> {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        Ok(self.write(batch)?)
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        Ok(self.into_inner().flush()?)
    }
}

impl Writer for json::ArrayWriter<Destination> {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        Ok(self.write(batch)?)
    }

    fn finish(mut self: Box<Self>) -> anyhow::Result<()> {
        json::ArrayWriter::finish(&mut self)?;
        let mut to = self.into_inner();
        writeln!(to)?;
        Ok(to.flush()?)
    }
}

impl Writer for FileWriter<Destination> {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        Ok(self.write(batch)?)
    }

    fn finish(mut self: Box<Self>) -> anyhow::Result<()> {
        Ok(FileWriter::finish(&mut self)?)
    }
}

impl Writer for ArrowWriter<Destination> {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        Ok(self.write(batch)?)
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        self.close()?;
        Ok(())
    }
}
