//! The table of sampled blocks.

use std::io::{self, Write};

use heapline_model::Space;
use heapline_profile::{SampledBlock, Scope};

use super::{Column, Dictionary, Field, Kind, ROWS_IN_BATCH, Table, delta_encoded, properties};
use crate::names::saturated;
use crate::provenance;

/// The names of the columns.
pub(crate) const BLOCK_COLUMNS: [&str; 11] = [
    "allocated_us",
    "promoted_us",
    "collected_us",
    "size_bytes",
    "samples",
    "source",
    "domain",
    "stack_id",
    "estimated_bytes",
    "estimated_blocks",
    "sampled_blocks",
];

/// Writes one row for each sampled block, in the order of the trace.
///
/// | column | type | |
/// | --- | --- | --- |
/// | `allocated_us` | `INT64` | microseconds since the start of the trace |
/// | `promoted_us`, `collected_us` | `INT64` | the same; null if it was not |
/// | `size_bytes` | `INT64` | without the header |
/// | `samples` | `INT64` | how often the sampler hit it |
/// | `source` | `STRING` | `minor`, `major`, `external` or `native` |
/// | `domain` | `INT32` | the domain or thread that allocated it |
/// | `stack_id` | `INT64` | see [`stacks`](super::stacks()) |
/// | `estimated_bytes`, `estimated_blocks` | `DOUBLE` | what it stands for |
/// | `sampled_blocks` | `INT64` | 1, or the number of blocks that were merged into this row |
pub fn blocks(scope: &Scope<'_>, out: impl Write + Send) -> io::Result<()> {
    let properties = delta_encoded(properties(), &BLOCK_COLUMNS[..3]);
    let mut rows = Rows {
        table: Table::new(provenance::facts(scope), &fields(), properties, out)?,
        sources: Dictionary::new(Space::ALL.iter().map(|space| space.name())),
        waiting: Vec::with_capacity(ROWS_IN_BATCH),
    };
    let mut result = Ok(());
    scope.for_each_block(|block| {
        if result.is_ok() {
            result = rows.push(block);
        }
    });
    result?;
    rows.write()?;
    rows.table.finish()
}

fn fields() -> [Field; BLOCK_COLUMNS.len()] {
    BLOCK_COLUMNS.map(|name| match name {
        "promoted_us" | "collected_us" => Field::new(name, Kind::Long).nullable(),
        "source" => Field::new(name, Kind::Text),
        "domain" => Field::new(name, Kind::Int),
        "estimated_bytes" | "estimated_blocks" => Field::new(name, Kind::Double),
        _ => Field::new(name, Kind::Long),
    })
}

struct Rows<W: Write + Send> {
    table: Table<W>,
    sources: Dictionary,
    waiting: Vec<SampledBlock>,
}

impl<W: Write + Send> Rows<W> {
    fn push(&mut self, block: &SampledBlock) -> io::Result<()> {
        self.waiting.push(*block);
        if self.waiting.len() == ROWS_IN_BATCH {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        let rows = &self.waiting;
        let whole = |get: fn(&SampledBlock) -> u64| {
            Column::new(rows.iter().map(|block| saturated(get(block))))
        };
        let perhaps = |get: fn(&SampledBlock) -> Option<u64>| {
            Column::nullable(rows.iter().map(|block| get(block).map(saturated)))
        };
        let amounts = |get: fn(&SampledBlock) -> f64| Column::new(rows.iter().map(get));
        let sources = rows.iter().map(|block| {
            let place = Space::ALL.iter().position(|space| *space == block.space);
            place.and_then(|place| i32::try_from(place).ok())
        });
        let domains = rows.iter().map(|block| i32::from(block.lane));
        let columns = vec![
            whole(|block| block.allocated),
            perhaps(|block| block.promoted),
            perhaps(|block| block.collected),
            whole(|block| block.size),
            whole(|block| block.samples),
            self.sources.column(sources),
            Column::new(domains),
            whole(|block| block.stack.index() as u64),
            amounts(|block| block.amount.bytes.value),
            amounts(|block| block.amount.blocks.value),
            whole(|block| block.amount.sampled),
        ];
        self.waiting.clear();
        self.table.write(columns)
    }
}
