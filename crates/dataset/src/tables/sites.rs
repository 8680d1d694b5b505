//! The table of sites: what each place of the source allocated, by heap.

use std::io;

use heapline_export::parquet::{Column, Dictionary, Field, Kind, ROWS_IN_BATCH, properties};
use heapline_model::Space;
use heapline_profile::SampledBlock;

use super::frames::{place_columns, place_fields};
use super::{Target, long, text};
use crate::Totals;
use crate::info::saturated;
use crate::names::Names;

/// Memory allocated at a place on a heap.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    place: usize,
    space: i32,
    sampled: u64,
    totals: Totals,
    /// Bytes of blocks that died, by the power of two of their lifetimes.
    lifetimes: Vec<f64>,
}

/// All sites, in the order of their first blocks.
#[derive(Debug)]
pub(crate) struct Sites {
    rows: Vec<Site>,
    /// The row of each place and space; `NONE` if there is none yet.
    row_of: Vec<[u32; Space::ALL.len()]>,
}

const NONE: u32 = u32::MAX;

impl Sites {
    pub(crate) fn new(places: usize) -> Self {
        Self {
            rows: Vec::new(),
            row_of: vec![[NONE; Space::ALL.len()]; places],
        }
    }

    /// Adds a block that was allocated at a place.
    #[inline]
    pub(crate) fn add(&mut self, place: usize, block: &SampledBlock, is_live_at_peak: bool) {
        let space = space_number(block.space);
        let row = &mut self.row_of[place][space];
        if *row == NONE {
            *row = u32::try_from(self.rows.len()).unwrap_or(NONE - 1);
            self.rows.push(Site {
                place,
                space: i32::try_from(space).unwrap_or_default(),
                sampled: 0,
                totals: Totals::default(),
                lifetimes: Vec::new(),
            });
        }
        let site = &mut self.rows[*row as usize];
        site.sampled += block.amount.sampled;
        let is_promoted = block.promoted.is_some();
        let counts = [
            true,
            is_live_at_peak,
            block.collected.is_none(),
            is_promoted,
        ];
        site.totals.add(&block.amount, counts);
        if let Some(collected) = block.collected {
            let age = collected.saturating_sub(block.allocated);
            let power = age.max(1).ilog2() as usize;
            if site.lifetimes.len() <= power {
                site.lifetimes.resize(power + 1, 0.0);
            }
            site.lifetimes[power] += block.amount.bytes.value;
        }
    }

    /// All sampled blocks, and the totals of all sites.
    pub(crate) fn total(&self) -> (u64, Totals) {
        let mut all = (0, Totals::default());
        for site in &self.rows {
            all.0 += site.sampled;
            all.1.merge(&site.totals);
        }
        all
    }
}

/// The place of a heap among all.
pub(super) fn space_number(space: Space) -> usize {
    let place = Space::ALL.iter().position(|other| *other == space);
    place.unwrap_or_default()
}

/// The names of heaps.
pub(super) fn spaces() -> Dictionary {
    Dictionary::new(Space::ALL.iter().map(|space| space.name()))
}

/// The fields of the table.
fn fields() -> Vec<Field> {
    let mut fields = vec![long("site")];
    fields.extend(place_fields());
    fields.extend([text("space"), long("sampled_blocks")]);
    fields.extend(Totals::fields());
    fields.push(Field::list("lifetime_log2_us", Kind::Double));
    fields
}

/// Writes a row for each site.
pub(crate) fn sites(target: &Target<'_>, names: &Names, sites: &Sites) -> io::Result<()> {
    let mut table = target.table(fields(), properties())?;
    let spaces = spaces();
    for rows in sites.rows.chunks(ROWS_IN_BATCH) {
        let places: Vec<_> = rows.iter().map(|row| names.places[row.place]).collect();
        let totals: Vec<_> = rows.iter().map(|row| &row.totals).collect();
        let mut columns = vec![Column::new(places.iter().map(|place| place.id))];
        columns.extend(place_columns(names, &places));
        columns.push(spaces.column(rows.iter().map(|row| Some(row.space))));
        columns.push(Column::new(rows.iter().map(|row| saturated(row.sampled))));
        columns.extend(Totals::columns(&totals));
        let lengths = rows.iter().map(|row| row.lifetimes.len()).collect();
        let lifetimes = rows.iter().flat_map(|row| row.lifetimes.iter().copied());
        columns.push(Column::new(lifetimes).in_lists(lengths));
        table.write(columns)?;
    }
    table.finish()
}
