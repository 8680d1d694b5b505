//! The table of runs, which has one row.

use std::collections::BTreeMap;
use std::io;
use std::iter::once;

use heapline_export::parquet::{Column, Field, Kind, properties};
use parquet::data_type::{BoolType, DataType as ColumnType, DoubleType, Int32Type, Int64Type};

use super::{Target, double, int, long, text};
use crate::read::TableReader;
use crate::totals::Totals;
use crate::{Error, RunId, RunInfo};

/// The fields of the table.
fn fields() -> Vec<Field> {
    let mut fields = vec![
        text("service"),
        text("day"),
        text("version").nullable(),
        Field::map("labels"),
        text("program"),
        text("context").nullable(),
        text("host").nullable(),
        long("pid").nullable(),
        long("started_us"),
        double("duration_s"),
        double("sampling_rate"),
        text("sampling"),
        int("word_bytes"),
        long("sampled_blocks"),
        Field::new("damaged", Kind::Bool),
        double("peak_s"),
    ];
    fields.extend(Totals::fields());
    fields.extend([text("trace"), text("gc_parameters").nullable()]);
    fields
}

/// Writes the row.
pub(crate) fn runs(target: &Target<'_>, info: &RunInfo) -> io::Result<()> {
    let mut table = target.table(fields(), properties())?;
    let text = |text: &str| Column::new(once(text));
    let perhaps = |text: &Option<String>| Column::nullable(once(text.as_deref()));
    let number = |n: f64| Column::new(once(n));
    let whole = |n: i64| Column::new(once(n));
    let labels = &info.labels;
    let mut columns = vec![
        text(&info.service),
        text(&info.day),
        perhaps(&info.version),
        Column::new(labels.keys().map(String::as_str)).in_lists(vec![labels.len()]),
        Column::new(labels.values().map(String::as_str)).in_lists(vec![labels.len()]),
        text(&info.program),
        perhaps(&info.context),
        perhaps(&info.host),
        Column::nullable(once(info.pid)),
        whole(info.started_us),
        number(info.duration_s),
        number(info.sampling_rate),
        text(&info.sampling),
        Column::new(once(info.word_bytes)),
        whole(info.sampled_blocks),
        Column::new(once(info.damaged)),
        number(info.peak_s),
    ];
    columns.extend(Totals::columns(&[&info.totals]));
    columns.extend([text(&info.trace), perhaps(&info.gc_parameters)]);
    table.write(columns)?;
    table.finish()
}

/// Reads the row.
pub(crate) fn read_info(table: &TableReader) -> Result<RunInfo, Error> {
    let row = Row(table);
    Ok(RunInfo {
        run: row.run()?,
        service: row.text("service")?,
        day: row.text("day")?,
        version: row.perhaps_text("version")?,
        labels: row.labels()?,
        program: row.text("program")?,
        context: row.perhaps_text("context")?,
        host: row.perhaps_text("host")?,
        pid: row.perhaps::<Int64Type>("pid")?,
        started_us: row.get::<Int64Type>("started_us")?,
        duration_s: row.get::<DoubleType>("duration_s")?,
        sampling_rate: row.get::<DoubleType>("sampling_rate")?,
        sampling: row.text("sampling")?,
        word_bytes: row.get::<Int32Type>("word_bytes")?,
        sampled_blocks: row.get::<Int64Type>("sampled_blocks")?,
        damaged: row.get::<BoolType>("damaged")?,
        peak_s: row.get::<DoubleType>("peak_s")?,
        totals: Totals::sum_of(table)?,
        trace: row.text("trace")?,
        gc_parameters: row.perhaps_text("gc_parameters")?,
    })
}

/// The first row of a table that is not empty.
struct Row<'a>(&'a TableReader);

impl Row<'_> {
    fn run(&self) -> Result<RunId, Error> {
        let run = self.text("run")?.parse();
        run.map_err(|()| self.0.wrong("run"))
    }

    fn text(&self, column: &str) -> Result<String, Error> {
        self.perhaps_text(column)?
            .ok_or_else(|| self.0.wrong(column))
    }

    fn perhaps_text(&self, column: &str) -> Result<Option<String>, Error> {
        Ok(self.0.texts(column)?.pop())
    }

    fn get<T: ColumnType>(&self, column: &str) -> Result<T::T, Error> {
        self.perhaps::<T>(column)?
            .ok_or_else(|| self.0.wrong(column))
    }

    fn perhaps<T: ColumnType>(&self, column: &str) -> Result<Option<T::T>, Error> {
        Ok(self.0.values::<T>(column)?.pop())
    }

    fn labels(&self) -> Result<BTreeMap<String, String>, Error> {
        let keys = self.0.texts("labels.key_value.key")?;
        let values = self.0.texts("labels.key_value.value")?;
        Ok(keys.into_iter().zip(values).collect())
    }
}
