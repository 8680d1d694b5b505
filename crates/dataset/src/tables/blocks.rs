//! The table of sampled blocks.

use std::io;

use heapline_export::parquet::{
    Column, Dictionary, Field, ROWS_IN_BATCH, delta_encoded, properties,
};
use heapline_profile::{SampledBlock, Scope};

use super::sites::{Sites, space_number, spaces};
use super::{StackPlace, Table, Target, double, int, long, text};
use crate::info::saturated;
use crate::names::Names;

/// The columns with times, which come first.
const TIMES: [&str; 3] = ["allocated_us", "promoted_us", "collected_us"];

/// The fields of the table.
fn fields() -> Vec<Field> {
    vec![
        long(TIMES[0]),
        long(TIMES[1]).nullable(),
        long(TIMES[2]).nullable(),
        long("size_bytes"),
        long("samples"),
        long("sampled_blocks"),
        text("space"),
        int("lane"),
        long("site"),
        long("stack_id"),
        double("estimated_bytes"),
        double("estimated_bytes_variance"),
        double("estimated_blocks"),
        double("estimated_blocks_variance"),
    ]
}

/// Writes a row for each sampled block, in the order of the trace, and sums up sites.
pub(crate) fn blocks(
    target: &Target<'_>,
    scope: &Scope<'_>,
    names: &Names,
    stacks: &[StackPlace],
) -> io::Result<Sites> {
    let mut live_at_peak = vec![false; scope.profile().len()];
    scope
        .at_peak()
        .for_each_block(|block| live_at_peak[block.number] = true);
    let mut sites = Sites::new(names.places.len());
    let properties = delta_encoded(properties(), &TIMES);
    let mut rows = Rows {
        table: target.table(fields(), properties)?,
        names,
        stacks,
        spaces: spaces(),
        waiting: Vec::with_capacity(ROWS_IN_BATCH.min(live_at_peak.len())),
    };
    let mut result = Ok(());
    scope.for_each_block(|block| {
        let place = stacks[block.stack.index()].place;
        sites.add(place, block, live_at_peak[block.number]);
        if result.is_ok() {
            result = rows.push(block);
        }
    });
    result?;
    rows.write()?;
    rows.table.finish()?;
    Ok(sites)
}

struct Rows<'a> {
    table: Table,
    names: &'a Names,
    stacks: &'a [StackPlace],
    spaces: Dictionary,
    waiting: Vec<SampledBlock>,
}

impl Rows<'_> {
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
        let spaces = rows
            .iter()
            .map(|block| i32::try_from(space_number(block.space)).ok());
        let stacks = || rows.iter().map(|block| self.stacks[block.stack.index()]);
        let lanes = rows.iter().map(|block| i32::from(block.lane));
        let columns = vec![
            whole(|block| block.allocated),
            perhaps(|block| block.promoted),
            perhaps(|block| block.collected),
            whole(|block| block.size),
            whole(|block| block.samples),
            whole(|block| block.amount.sampled),
            self.spaces.column(spaces),
            Column::new(lanes),
            Column::new(stacks().map(|stack| self.names.places[stack.place].id)),
            Column::new(stacks().map(|stack| stack.id)),
            amounts(|block| block.amount.bytes.value),
            amounts(|block| block.amount.bytes.variance),
            amounts(|block| block.amount.blocks.value),
            amounts(|block| block.amount.blocks.variance),
        ];
        self.waiting.clear();
        self.table.write(columns)
    }
}
