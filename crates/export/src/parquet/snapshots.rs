//! The table of snapshots and stacks, of sources that do not know single blocks.

use std::io::{self, Write};

use heapline_profile::{AtSnapshot, Scope};

use super::{Column, Field, Kind, ROWS_IN_BATCH, Table, properties};
use crate::names::{saturated, signed};
use crate::provenance;

/// The names of the columns.
pub(crate) const SNAPSHOT_COLUMNS: [&str; 6] = [
    "snapshot",
    "time_us",
    "stack_id",
    "live_bytes",
    "live_blocks",
    "allocated_bytes",
];

/// The numbers of a row.
pub(crate) fn columns(row: &AtSnapshot) -> [i64; 6] {
    [
        saturated(row.number as u64),
        saturated(row.snapshot.time),
        i64::try_from(row.stack.index()).unwrap_or(i64::MAX),
        signed(row.live.bytes.value),
        signed(row.live.blocks.value),
        signed(row.allocated.bytes.value),
    ]
}

/// Writes one row for each snapshot and each stack that had allocated something by then.
///
/// | column | type | |
/// | --- | --- | --- |
/// | `snapshot` | `INT64` | its number, from 0 |
/// | `time_us` | `INT64` | microseconds since the start |
/// | `stack_id` | `INT64` | see [`stacks`](super::stacks()) |
/// | `live_bytes`, `live_blocks` | `INT64` | what was alive, headers included |
/// | `allocated_bytes` | `INT64` | what had been allocated since the start |
pub fn snapshots(scope: &Scope<'_>, out: impl Write + Send) -> io::Result<()> {
    let fields = SNAPSHOT_COLUMNS.map(|name| Field::new(name, Kind::Long));
    let mut table = Table::new(provenance::facts(scope), &fields, properties(), out)?;
    let mut waiting: [Vec<i64>; 6] = Default::default();
    let mut result = Ok(());
    scope.for_each_at_snapshots(|row| {
        for (column, number) in waiting.iter_mut().zip(columns(row)) {
            column.push(number);
        }
        if waiting[0].len() == ROWS_IN_BATCH && result.is_ok() {
            result = write(&mut table, &mut waiting);
        }
    });
    result?;
    write(&mut table, &mut waiting)?;
    table.finish()
}

fn write<W: Write + Send>(table: &mut Table<W>, waiting: &mut [Vec<i64>; 6]) -> io::Result<()> {
    let columns = waiting.iter_mut().map(std::mem::take);
    table.write(columns.map(Column::new).collect())
}
