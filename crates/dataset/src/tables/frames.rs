//! The table of frames: the names of the places that stacks consist of.

use std::io;

use arrow_array::ArrayRef;
use arrow_schema::Field;
use heapline_export::parquet::{ROWS_IN_BATCH, properties};

use super::{Target, int, long, longs, nullable_ints, text};
use crate::names::{Names, Place};

/// Writes a row for each place that is used.
pub(crate) fn frames(target: &Target<'_>, names: &Names, used: &[bool]) -> io::Result<()> {
    let mut table = target.table(fields(), properties())?;
    let places = names.places.iter().zip(used);
    let places: Vec<Place> = places
        .filter(|(_, used)| **used)
        .map(|(place, _)| *place)
        .collect();
    for places in places.chunks(ROWS_IN_BATCH) {
        let mut columns = vec![longs(places.iter().map(|place| place.id))];
        columns.extend(place_columns(names, places)?);
        table.write(columns)?;
    }
    table.finish()
}

/// The fields of the table.
fn fields() -> Vec<Field> {
    let mut fields = vec![long("frame_id")];
    fields.extend(place_fields());
    fields
}

/// The fields that describe a place.
pub(super) fn place_fields() -> [Field; 4] {
    [
        text("function"),
        text("file").with_nullable(true),
        int("line").with_nullable(true),
        text("module").with_nullable(true),
    ]
}

/// The columns of these fields.
pub(super) fn place_columns(names: &Names, places: &[Place]) -> io::Result<[ArrayRef; 4]> {
    let numbers = |get: fn(&Place) -> Option<i32>| places.iter().map(get).collect();
    Ok([
        names.functions.column(numbers(|place| place.function))?,
        names.files.column(numbers(|place| place.file))?,
        nullable_ints(places.iter().map(|place| place.line)),
        names.modules.column(numbers(|place| place.module))?,
    ])
}
