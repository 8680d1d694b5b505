//! Values of columns, on their way to a table.

use std::io;
use std::sync::Arc;

use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;

use super::table::io_error;

/// The values of a column in some rows.
#[derive(Clone, Debug)]
pub struct Column {
    values: Values,
    /// For each item, true if it has a value. Empty if all have.
    is_present: Vec<bool>,
    /// If rows have lists of items: how many each has.
    lengths: Option<Vec<usize>>,
}

#[derive(Clone, Debug)]
enum Values {
    Bools(Vec<bool>),
    Ints(Vec<i32>),
    Longs(Vec<i64>),
    Doubles(Vec<f64>),
    Texts(Vec<ByteArray>),
    /// Texts by their numbers.
    Numbers(Dictionary, Vec<u32>),
}

/// A type that columns have values of.
pub trait Value: Sized {
    /// A column of values.
    fn column(values: Vec<Self>) -> Column;
}

macro_rules! values {
    ($($value:ty => $values:ident,)*) => {
        $(impl Value for $value {
            fn column(values: Vec<Self>) -> Column {
                Column::of(Values::$values(values))
            }
        })*
    };
}

values! {
    bool => Bools,
    i32 => Ints,
    i64 => Longs,
    f64 => Doubles,
    ByteArray => Texts,
}

impl Value for &str {
    fn column(values: Vec<Self>) -> Column {
        ByteArray::column(values.into_iter().map(ByteArray::from).collect())
    }
}

impl Column {
    /// A column without nulls.
    pub fn new<T: Value>(values: impl IntoIterator<Item = T>) -> Self {
        T::column(values.into_iter().collect())
    }

    /// A column in which `None` is null.
    pub fn nullable<T: Value>(values: impl IntoIterator<Item = Option<T>>) -> Self {
        let (values, is_present) = without_nulls(values.into_iter());
        Self {
            is_present,
            ..T::column(values)
        }
    }

    /// The items in lists of these lengths, one for each row.
    #[must_use]
    pub fn in_lists(self, lengths: Vec<usize>) -> Self {
        Self {
            lengths: Some(lengths),
            ..self
        }
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.lengths.as_ref().map_or(self.items(), Vec::len)
    }

    fn of(values: Values) -> Self {
        Self {
            values,
            is_present: Vec::new(),
            lengths: None,
        }
    }

    /// The number of values and nulls.
    pub(super) fn items(&self) -> usize {
        self.values.len().max(self.is_present.len())
    }

    /// Writes all values, with nulls if there may be any.
    pub(super) fn write(&self, writer: &mut ColumnWriter<'_>, is_nullable: bool) -> io::Result<()> {
        if !is_nullable && self.values.len() < self.items() {
            return Err(io::Error::other("a column without nulls has some"));
        }
        let (definitions, repetitions) = self.levels(is_nullable);
        let (definitions, repetitions) = (definitions.as_deref(), repetitions.as_deref());
        let written = match (writer, &self.values) {
            (ColumnWriter::BoolColumnWriter(writer), Values::Bools(values)) => {
                writer.write_batch(values, definitions, repetitions)
            }
            (ColumnWriter::Int32ColumnWriter(writer), Values::Ints(values)) => {
                writer.write_batch(values, definitions, repetitions)
            }
            (ColumnWriter::Int64ColumnWriter(writer), Values::Longs(values)) => {
                writer.write_batch(values, definitions, repetitions)
            }
            (ColumnWriter::DoubleColumnWriter(writer), Values::Doubles(values)) => {
                writer.write_batch(values, definitions, repetitions)
            }
            (ColumnWriter::ByteArrayColumnWriter(writer), Values::Texts(values)) => {
                writer.write_batch(values, definitions, repetitions)
            }
            (ColumnWriter::ByteArrayColumnWriter(writer), Values::Numbers(texts, numbers)) => {
                let text = |&number: &u32| texts.0[number as usize].clone();
                let values: Vec<ByteArray> = numbers.iter().map(text).collect();
                writer.write_batch(&values, definitions, repetitions)
            }
            _ => return Err(io::Error::other("a column has values of another type")),
        };
        written.map(drop).map_err(io_error)
    }

    /// The definition and repetition levels of the items, as Parquet has them: how much of the path to an item is there, and
    /// where a list goes on.
    fn levels(&self, is_nullable: bool) -> (Option<Vec<i16>>, Option<Vec<i16>>) {
        let in_list = i16::from(self.lengths.is_some());
        let most = in_list + i16::from(is_nullable);
        let level = |item: usize| match self.is_present.get(item) {
            Some(false) => most - 1,
            _ => most,
        };
        let Some(lengths) = &self.lengths else {
            let levels = || (0..self.items()).map(level).collect();
            return (is_nullable.then(levels), None);
        };
        let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
        let mut item = 0;
        for &length in lengths {
            if length == 0 {
                definitions.push(0);
                repetitions.push(0);
            }
            for place in 0..length {
                definitions.push(level(item));
                repetitions.push(i16::from(place > 0));
                item += 1;
            }
        }
        (Some(definitions), Some(repetitions))
    }
}

/// The values that are not null, and for each one whether it is not.
fn without_nulls<T>(values: impl Iterator<Item = Option<T>>) -> (Vec<T>, Vec<bool>) {
    let (rows, _) = values.size_hint();
    let (mut present, mut is_present) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    for value in values {
        is_present.push(value.is_some());
        present.extend(value);
    }
    (present, is_present)
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Bools(values) => values.len(),
            Self::Ints(values) => values.len(),
            Self::Longs(values) => values.len(),
            Self::Doubles(values) => values.len(),
            Self::Texts(values) => values.len(),
            Self::Numbers(_, numbers) => numbers.len(),
        }
    }
}

/// Strings that columns refer to by number, so that they are never copied.
#[derive(Clone, Debug)]
pub struct Dictionary(Arc<Vec<ByteArray>>);

impl Dictionary {
    /// Copies the strings.
    pub fn new<'a>(strings: impl Iterator<Item = &'a str>) -> Self {
        Self(Arc::new(strings.map(ByteArray::from).collect()))
    }

    /// A column with the strings of these numbers; `None` is null, and so is a number that there is no string for.
    pub fn column(&self, numbers: impl IntoIterator<Item = Option<i32>>) -> Column {
        let is_known = |number: &u32| (*number as usize) < self.0.len();
        let known = |number: i32| u32::try_from(number).ok().filter(is_known);
        let numbers = numbers.into_iter().map(|number| number.and_then(known));
        let (numbers, is_present) = without_nulls(numbers);
        Column {
            is_present,
            ..Column::of(Values::Numbers(self.clone(), numbers))
        }
    }
}
