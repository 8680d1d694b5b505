//! Live memory over time.

use hashbrown::HashMap;
use heapline_profile::Scope;

/// Into how many slots the time is divided.
const SLOTS: u64 = 2000;

/// Microseconds of a slot.
pub(crate) fn slot(scope: &Scope<'_>) -> u64 {
    let profile = scope.profile();
    (profile.micros(profile.end()) / SLOTS).max(1)
}

/// Changes of live memory per time slot, for slots with a change: the microsecond at its end, bytes, and numbers of blocks
/// allocated and freed.
pub(crate) fn changes(scope: &Scope<'_>) -> Vec<(u64, f64, u32)> {
    let slot = slot(scope);
    let mut changes: HashMap<u64, (f64, u32)> = HashMap::new();
    let mut change = |time: u64, bytes: f64| {
        let sums = changes.entry(time / slot).or_default();
        sums.0 += bytes;
        sums.1 = sums.1.saturating_add(1);
    };
    scope.for_each_block(|block| {
        let bytes = block.amount.bytes.value;
        change(block.from, bytes);
        if let Some(time) = block.until {
            change(time, -bytes);
        }
    });
    let mut curve: Vec<_> = changes
        .into_iter()
        // The end of the slot: only then all of it has happened.
        .map(|(n, (bytes, blocks))| (n.saturating_add(1).saturating_mul(slot), bytes, blocks))
        .collect();
    curve.sort_unstable_by_key(|(time, ..)| *time);
    curve
}
