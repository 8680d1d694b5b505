//! Profiles of consecutive windows of time.

use heapline_profile::{Amount, ContextId, Estimate, IdVec, Moment, Scope};

use crate::heap_profile::{Builder, HeapProfile, SAMPLE_TYPES};

/// Makes profiles of consecutive windows of a run: each has what was allocated since the one before, and what
/// is live at its end.
///
/// Amounts of all windows sum up to the total of each stack: amounts are rounded
/// to whole numbers as running totals, not window by window.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    /// The objects and bytes of each stack that were allocated until the end of the last window, rounded.
    before: Vec<[i64; 2]>,
    allocated_before: Amount,
    /// The end of the last window, in nanoseconds since the Unix epoch.
    until: Option<u64>,
}

impl Windows {
    /// The profile of everything up to now, without what earlier ones have. All scopes must be of the same
    /// growing profile, and have the same query.
    ///
    /// `live` is the moment whose live memory it has, and `until` the time to which it lasts, in nanoseconds
    /// since the Unix epoch: that of the last event if it is `None`.
    pub fn next(&mut self, scope: &Scope<'_>, live: Moment, until: Option<u64>) -> HeapProfile {
        let profile = scope.profile();
        let header = profile.header();
        let start = header.start_time.saturating_mul(1000);
        let micros = profile.micros(profile.end());
        let last = start.saturating_add(micros.saturating_mul(1000));
        let from = self.until.unwrap_or(start);
        let until = until.unwrap_or(last).max(from);

        let live = scope.live_at(live);
        let (allocated, in_use) = (scope.by_stack(), live.by_stack());
        let mut builder = Builder::new(scope);
        self.before.resize(profile.stack_count(), [0; 2]);
        for (place, stack) in profile.stacks().enumerate() {
            let before = self.before[place];
            let now = rounded(&allocated, stack);
            // Sums in another order may differ in their last digits.
            let now = [now[0].max(before[0]), now[1].max(before[1])];
            self.before[place] = now;
            let [objects, bytes] = rounded(&in_use, stack);
            let values = [now[0] - before[0], now[1] - before[1], objects, bytes];
            builder.add(stack, values);
        }
        let (tables, samples) = builder.finish();

        let (allocated, live) = (scope.total(), live.total());
        let new = allocated - std::mem::replace(&mut self.allocated_before, allocated);
        self.until = Some(until);
        HeapProfile {
            program: header.program.clone(),
            host: header.host.clone(),
            pid: header.pid,
            from,
            until,
            period: whole(profile.sampling().bytes_per_sample()).max(1),
            // Sources without single blocks do not tell how many were allocated.
            columns: (usize::from(!profile.tells().sizes)..SAMPLE_TYPES.len()).collect(),
            totals: [new.blocks, new.bytes, live.blocks, live.bytes].map(|sum| {
                let estimate = sum.estimate();
                if estimate.value.is_nan() {
                    Estimate::default()
                } else {
                    estimate
                }
            }),
            tables,
            samples,
        }
    }
}

/// The objects and bytes of a stack.
fn rounded(amounts: &IdVec<ContextId, Amount>, stack: ContextId) -> [i64; 2] {
    let amount = &amounts[stack];
    [whole(amount.blocks.value), whole(amount.bytes.value)]
}

/// The nearest whole number; 0 for what is not known.
#[expect(
    clippy::cast_possible_truncation,
    reason = "casts of floating-point numbers saturate"
)]
fn whole(amount: f64) -> i64 {
    amount.round() as i64
}
