//! The eight estimates that runs and sites have in common.

use heapline_export::parquet::{Column, Field, Kind};
use heapline_profile::{Amount, Estimate, Sum};
use parquet::data_type::DoubleType;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::Error;
use crate::read::TableReader;

/// The columns: each is followed by the same with `_variance`.
pub(crate) const COLUMNS: [&str; 8] = [
    "allocated_bytes",
    "allocated_blocks",
    "live_at_peak_bytes",
    "live_at_peak_blocks",
    "live_at_end_bytes",
    "live_at_end_blocks",
    "promoted_bytes",
    "promoted_blocks",
];

/// An estimated amount: its error is the root of the variance, and variances add up as amounts do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    /// The amount.
    pub value: f64,
    /// Its variance; 0 if it is exact.
    pub variance: f64,
}

/// Memory allocated, live at the peak, live at the end and promoted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals([Total; COLUMNS.len()]);

impl Totals {
    /// A total by the name of its column, such as `live_at_end_bytes`.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<Total> {
        let place = COLUMNS.iter().position(|name| *name == column);
        place.map(|place| self.0[place])
    }

    /// All totals with the names of their columns.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Total)> + '_ {
        COLUMNS.into_iter().zip(self.0)
    }

    /// Adds a block to those totals that it counts for: allocated, live at the peak, live at the end,
    /// promoted.
    #[inline]
    pub(crate) fn add(&mut self, amount: &Amount, counts: [bool; 4]) {
        for (pair, counts) in self.0.chunks_exact_mut(2).zip(counts) {
            if counts {
                pair[0].add(amount.bytes);
                pair[1].add(amount.blocks);
            }
        }
    }

    /// Adds other totals.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (total, other) in self.0.iter_mut().zip(&other.0) {
            total.value += other.value;
            total.variance += other.variance;
        }
    }

    /// The fields of a table with totals.
    pub(crate) fn fields() -> impl Iterator<Item = Field> {
        let field = |name: String| Field::new(name, Kind::Double);
        COLUMNS
            .into_iter()
            .flat_map(move |name| [field(name.to_owned()), field(variance_of(name))])
    }

    /// The columns of these fields.
    pub(crate) fn columns(rows: &[&Self]) -> impl Iterator<Item = Column> {
        let column = |get: &dyn Fn(&Self) -> f64| Column::new(rows.iter().map(|row| get(row)));
        (0..COLUMNS.len()).flat_map(move |place| {
            [
                column(&|row| row.0[place].value),
                column(&|row| row.0[place].variance),
            ]
        })
    }

    /// The totals of all rows of a table together.
    pub(crate) fn sum_of(table: &TableReader) -> Result<Self, Error> {
        let mut totals = Self::default();
        for (total, name) in totals.0.iter_mut().zip(COLUMNS) {
            *total = Total::sum_of(table, name)?;
        }
        Ok(totals)
    }
}

impl Total {
    /// The sums of a column and of its variances.
    pub(crate) fn sum_of(table: &TableReader, column: &str) -> Result<Self, Error> {
        let sum = |column: &str| {
            let mut sum = 0.0;
            table.for_each::<DoubleType>(column, |values| sum += values.iter().sum::<f64>())?;
            Ok::<f64, Error>(sum)
        };
        Ok(Self {
            value: sum(column)?,
            variance: sum(&variance_of(column))?,
        })
    }

    /// The amount with its 95 % interval.
    #[must_use]
    pub fn estimate(self) -> Estimate {
        let sum = Sum {
            value: self.value,
            variance: self.variance,
            ..Sum::default()
        };
        sum.estimate()
    }

    #[inline]
    fn add(&mut self, sum: Sum) {
        self.value += sum.value;
        self.variance += sum.variance;
    }
}

pub(crate) fn variance_of(column: &str) -> String {
    format!("{column}_variance")
}

/// As the columns of a table.
impl Serialize for Totals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2 * COLUMNS.len()))?;
        for (name, total) in self.iter() {
            map.serialize_entry(name, &total.value)?;
            map.serialize_entry(&variance_of(name), &total.variance)?;
        }
        map.end()
    }
}
