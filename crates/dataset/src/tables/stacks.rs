//! The table of stacks.

use std::io;

use hashbrown::HashSet;
use heapline_export::parquet::{Column, Field, ROWS_IN_BATCH, properties};
use heapline_profile::Profile;

use super::{Table, Target, int, long};
use crate::hash;
use crate::names::Names;

/// The id of a stack, and its innermost place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackPlace {
    pub(crate) id: i64,
    pub(crate) place: usize,
}

/// The fields of the table.
fn fields() -> Vec<Field> {
    vec![long("stack_id"), int("depth"), long("frame_id")]
}

/// Writes a row for each frame of each stack. Returns the ids of the stacks of the profile, and which
/// places they use.
pub(crate) fn stacks(
    target: &Target<'_>,
    profile: &Profile,
    names: &Names,
) -> io::Result<(Vec<StackPlace>, Vec<bool>)> {
    let mut table = target.table(fields(), properties())?;
    let mut of_context = Vec::with_capacity(profile.stack_count());
    let mut used = vec![false; names.places.len()];
    let mut known = HashSet::new();
    let mut rows = Rows::default();
    for stack in profile.stacks() {
        let places = names.of_stack(&profile.stack(stack));
        let frames = || places.iter().map(|&place| names.places[place].id);
        let id = hash::stack(frames());
        of_context.push(StackPlace {
            id,
            place: places[0],
        });
        if !known.insert(id) {
            continue;
        }
        for (&place, depth) in places.iter().zip(0..) {
            used[place] = true;
            rows.stacks.push(id);
            rows.depths.push(depth);
            rows.frames.push(names.places[place].id);
        }
        if rows.stacks.len() >= ROWS_IN_BATCH {
            std::mem::take(&mut rows).write(&mut table)?;
        }
    }
    rows.write(&mut table)?;
    table.finish()?;
    Ok((of_context, used))
}

#[derive(Default)]
struct Rows {
    stacks: Vec<i64>,
    depths: Vec<i32>,
    frames: Vec<i64>,
}

impl Rows {
    fn write(self, table: &mut Table) -> io::Result<()> {
        table.write(vec![
            Column::new(self.stacks),
            Column::new(self.depths),
            Column::new(self.frames),
        ])
    }
}
