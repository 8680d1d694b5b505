//! The table of runs, which has one row.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, Int64Array, MapArray, RecordBatch, StringArray,
    StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields};
use heapline_export::parquet::properties;

use super::{Target, double, doubles, int, long, longs};
use crate::totals::Totals;
use crate::{RunId, RunInfo};

/// The fields of the table.
fn fields() -> Vec<Field> {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let mut fields = vec![
        text("service"),
        text("day"),
        text("version").with_nullable(true),
        Field::new("labels", DataType::Map(entry_field(), true), false),
        text("program"),
        text("context").with_nullable(true),
        text("host").with_nullable(true),
        long("pid").with_nullable(true),
        long("started_us"),
        double("duration_s"),
        double("sampling_rate"),
        text("sampling"),
        int("word_bytes"),
        long("sampled_blocks"),
        Field::new("damaged", DataType::Boolean, false),
        double("peak_s"),
    ];
    fields.extend(Totals::fields());
    fields.extend([text("trace"), text("gc_parameters").with_nullable(true)]);
    fields
}

fn entry_field() -> Arc<Field> {
    let entry = DataType::Struct(entry_fields());
    Arc::new(Field::new("key_value", entry, false))
}

fn entry_fields() -> Fields {
    Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Utf8, false),
    ])
}

/// Writes the row.
pub(crate) fn runs(target: &Target<'_>, info: &RunInfo) -> io::Result<()> {
    let mut table = target.table(fields(), properties())?;
    let text = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
    let perhaps =
        |text: &Option<String>| -> ArrayRef { Arc::new(StringArray::from(vec![text.as_deref()])) };
    let number = |n: f64| doubles(std::iter::once(n));
    let whole = |n: i64| longs(std::iter::once(n));
    let mut columns = vec![
        text(&info.service),
        text(&info.day),
        perhaps(&info.version),
        labels(&info.labels)?,
        text(&info.program),
        perhaps(&info.context),
        perhaps(&info.host),
        Arc::new(Int64Array::from(vec![info.pid])),
        whole(info.started_us),
        number(info.duration_s),
        number(info.sampling_rate),
        text(&info.sampling),
        Arc::new(Int32Array::from(vec![info.word_bytes])),
        whole(info.sampled_blocks),
        Arc::new(BooleanArray::from(vec![info.damaged])),
        number(info.peak_s),
    ];
    columns.extend(Totals::columns(&[&info.totals]));
    columns.extend([text(&info.trace), perhaps(&info.gc_parameters)]);
    table.write(columns)?;
    table.finish()
}

fn labels(labels: &BTreeMap<String, String>) -> io::Result<ArrayRef> {
    let entries = StructArray::try_new(
        entry_fields(),
        vec![
            Arc::new(StringArray::from_iter_values(labels.keys())),
            Arc::new(StringArray::from_iter_values(labels.values())),
        ],
        None,
    )
    .map_err(io::Error::other)?;
    let offsets = OffsetBuffer::from_lengths([labels.len()]);
    let map = MapArray::try_new(entry_field(), offsets, entries, None, true);
    Ok(Arc::new(map.map_err(io::Error::other)?))
}

/// Reads the row. The error is the name of a column that is not as it should be.
pub(crate) fn read_info(batch: &RecordBatch) -> Result<RunInfo, &'static str> {
    let row = Row(batch);
    Ok(RunInfo {
        run: row.run()?,
        service: row.text("service")?,
        day: row.text("day")?,
        version: row.perhaps("version")?,
        labels: row.labels("labels").ok_or("labels")?,
        program: row.text("program")?,
        context: row.perhaps("context")?,
        host: row.perhaps("host")?,
        pid: row.nullable_number::<Int64Type>("pid")?,
        started_us: row.number::<Int64Type>("started_us")?,
        duration_s: row.number::<Float64Type>("duration_s")?,
        sampling_rate: row.number::<Float64Type>("sampling_rate")?,
        sampling: row.text("sampling")?,
        word_bytes: row.number::<Int32Type>("word_bytes")?,
        sampled_blocks: row.number::<Int64Type>("sampled_blocks")?,
        damaged: row
            .column("damaged")?
            .as_boolean_opt()
            .ok_or("damaged")?
            .value(0),
        peak_s: row.number::<Float64Type>("peak_s")?,
        totals: Totals::sum_of(batch).ok_or("allocated_bytes")?,
        trace: row.text("trace")?,
        gc_parameters: row.perhaps("gc_parameters")?,
    })
}

/// The first row of a batch that is not empty.
struct Row<'a>(&'a RecordBatch);

impl<'a> Row<'a> {
    fn column(&self, name: &'static str) -> Result<&'a ArrayRef, &'static str> {
        let column = self.0.column_by_name(name);
        column.filter(|column| !column.is_empty()).ok_or(name)
    }

    fn run(&self) -> Result<RunId, &'static str> {
        self.text("run")?.parse().map_err(|()| "run")
    }

    fn text(&self, name: &'static str) -> Result<String, &'static str> {
        self.perhaps(name)?.ok_or(name)
    }

    fn perhaps(&self, name: &'static str) -> Result<Option<String>, &'static str> {
        let column = self.column(name)?.as_string_opt::<i32>().ok_or(name)?;
        Ok(column.is_valid(0).then(|| column.value(0).to_owned()))
    }

    fn number<T: ArrowPrimitiveType>(&self, name: &'static str) -> Result<T::Native, &'static str> {
        self.nullable_number::<T>(name)?.ok_or(name)
    }

    fn nullable_number<T: ArrowPrimitiveType>(
        &self,
        name: &'static str,
    ) -> Result<Option<T::Native>, &'static str> {
        let column = self.column(name)?.as_primitive_opt::<T>().ok_or(name)?;
        Ok(column.is_valid(0).then(|| column.value(0)))
    }

    fn labels(&self, name: &'static str) -> Option<BTreeMap<String, String>> {
        let entries = self.column(name).ok()?.as_map_opt()?.value(0);
        let keys = entries.column(0).as_string_opt::<i32>()?;
        let values = entries.column(1).as_string_opt::<i32>()?;
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let pairs = keys.iter().zip(values);
        Some(pairs.map(|(key, value)| (text(key), text(value))).collect())
    }
}
