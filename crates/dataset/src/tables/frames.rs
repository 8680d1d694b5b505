//! The table of frames: the names of the places that stacks consist of.

use std::io;

use heapline_export::parquet::{Column, Field, ROWS_IN_BATCH, properties};

use super::{Target, int, long, text};
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
        let mut columns = vec![Column::new(places.iter().map(|place| place.id))];
        columns.extend(place_columns(names, places));
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
        text("file").nullable(),
        int("line").nullable(),
        text("module").nullable(),
    ]
}

/// The columns of these fields.
pub(super) fn place_columns(names: &Names, places: &[Place]) -> [Column; 4] {
    let numbers = |get: fn(&Place) -> Option<i32>| places.iter().map(get);
    [
        names.functions.column(numbers(|place| place.function)),
        names.files.column(numbers(|place| place.file)),
        Column::nullable(numbers(|place| place.line)),
        names.modules.column(numbers(|place| place.module)),
    ]
}
