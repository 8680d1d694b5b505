//! Runs the statements of a question, and reads their answers.

use anyhow::Context;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};

use crate::engine::Engine;
use crate::question::{By, Question};
use crate::statistics::Present;

/// Runs that have the same properties.
#[derive(Clone, Debug, PartialEq)]
pub struct RunGroup {
    /// The values of those properties of the question that are of runs.
    pub keys: Vec<String>,
    /// The number of runs.
    pub runs: u64,
    /// The start of the first one, in microseconds since 1970.
    pub started_us: i64,
}

/// The values of a group in runs that have the same properties.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The values of the properties of the question.
    pub keys: Vec<String>,
    /// The values of the runs that have any.
    pub present: Present,
}

/// The groups of runs of a question.
pub async fn run_groups(engine: &Engine, question: &Question<'_>) -> anyhow::Result<Vec<RunGroup>> {
    let by: Vec<By> = question
        .by
        .iter()
        .copied()
        .filter(|by| by.is_of_runs())
        .collect();
    let mut groups = Vec::new();
    for batch in engine.collect(&question.runs_statement()).await? {
        let keys = Keys::new(&batch, &by)?;
        let runs = integers(&batch, "runs")?;
        let started = integers(&batch, "started_us")?;
        for row in 0..batch.num_rows() {
            let runs = u64::try_from(runs.as_primitive::<Int64Type>().value(row)).unwrap_or(0);
            // Without properties, there is a row even if there are no runs.
            if runs > 0 {
                let started_us = started.as_primitive::<Int64Type>().value(row);
                groups.push(RunGroup {
                    keys: keys.row(row),
                    runs,
                    started_us,
                });
            }
        }
    }
    Ok(groups)
}

/// The groups of a question in which some run has a value.
pub async fn groups(engine: &Engine, question: &Question<'_>) -> anyhow::Result<Vec<Group>> {
    let mut groups = Vec::new();
    for batch in engine.collect(&question.groups_statement()?).await? {
        let keys = Keys::new(&batch, question.by)?;
        let present = integers(&batch, "present")?;
        let [mean, variance, sampling] = [
            numbers(&batch, "mean")?,
            numbers(&batch, "variance")?,
            numbers(&batch, "sampling_variance")?,
        ];
        for row in 0..batch.num_rows() {
            // The variance of a single value is null.
            let number = |column: &ArrayRef| match column.is_null(row) {
                true => 0.0,
                false => column.as_primitive::<Float64Type>().value(row),
            };
            let runs = u64::try_from(present.as_primitive::<Int64Type>().value(row)).unwrap_or(0);
            let present = Present {
                runs,
                mean: number(&mean),
                variance: number(&variance).max(0.0),
                sampling_variance: number(&sampling),
            };
            if runs > 0 {
                groups.push(Group {
                    keys: keys.row(row),
                    present,
                });
            }
        }
    }
    Ok(groups)
}

/// The columns of the properties of a question.
struct Keys {
    columns: Vec<(By, ArrayRef)>,
    /// The function, the file and the line of sites.
    place: Option<[ArrayRef; 3]>,
}

impl Keys {
    fn new(batch: &RecordBatch, by: &[By]) -> anyhow::Result<Self> {
        let columns = by.iter().map(|&by| Ok((by, texts(batch, by.name())?)));
        let place = by.contains(&By::Site).then(|| {
            let [function, file, line] = ["site_function", "site_file", "site_line"];
            anyhow::Ok([
                texts(batch, function)?,
                texts(batch, file)?,
                texts(batch, line)?,
            ])
        });
        Ok(Self {
            columns: columns.collect::<anyhow::Result<_>>()?,
            place: place.transpose()?,
        })
    }

    fn row(&self, row: usize) -> Vec<String> {
        let text = |column: &ArrayRef| {
            (!column.is_null(row)).then(|| column.as_string::<i32>().value(row).to_owned())
        };
        let key = |(by, column): &(By, ArrayRef)| match (by, &self.place) {
            (By::Site, Some([function, file, line])) => {
                let function = text(function).unwrap_or_default();
                match (text(file), text(line)) {
                    (Some(file), Some(line)) => format!("{function} ({file}:{line})"),
                    (Some(file), None) => format!("{function} ({file})"),
                    (None, _) => function,
                }
            }
            _ => text(column).unwrap_or_default(),
        };
        self.columns.iter().map(key).collect()
    }
}

fn texts(batch: &RecordBatch, name: &str) -> anyhow::Result<ArrayRef> {
    column(batch, name, &DataType::Utf8)
}

fn numbers(batch: &RecordBatch, name: &str) -> anyhow::Result<ArrayRef> {
    column(batch, name, &DataType::Float64)
}

fn integers(batch: &RecordBatch, name: &str) -> anyhow::Result<ArrayRef> {
    column(batch, name, &DataType::Int64)
}

fn column(batch: &RecordBatch, name: &str, kind: &DataType) -> anyhow::Result<ArrayRef> {
    let column = batch
        .column_by_name(name)
        .with_context(|| format!("the answer lacks the column {name}"))?;
    Ok(cast(column, kind)?)
}
