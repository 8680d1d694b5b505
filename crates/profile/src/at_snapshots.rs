//! Tables of what each stack had at each snapshot.

use heapline_model::Snapshot;

use crate::amount::Amount;
use crate::scope::Scope;
use crate::store::{ContextId, Moment};

/// The figures of a stack at a snapshot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtSnapshot {
    /// The number of the snapshot, from 0.
    pub number: usize,
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Its stack: see [`Profile::stack`](crate::Profile::stack).
    pub stack: ContextId,
    /// Live memory.
    pub live: Amount,
    /// Memory allocated since the start.
    pub allocated: Amount,
}

impl Scope<'_> {
    /// Returns true if it is not known what is live at the peak and at the end: without a snapshot, or because only the moment of the
    /// query is known.
    pub(crate) fn is_live_untold(&self) -> bool {
        let profile = self.profile();
        self.is_of_moment() || (!profile.tells().lifetimes && profile.snapshots().is_empty())
    }

    /// Memory that was freed, given all that was allocated and what is live at the end. Of a source with snapshots, that is at the last
    /// one, and more may be allocated after it.
    pub(crate) fn freed(&self, allocated: Amount, live_at_end: Amount) -> Amount {
        if self.profile().tells().lifetimes {
            let gone = allocated - live_at_end;
            if !self.selection().is_of_heaps() {
                return gone;
            }
            // A block that leaves the minor heap by a promotion is not freed.
            let moved = self.filter(|stay| stay.ends() && !stay.is_collected());
            return gone - moved.total();
        }
        match self.profile().snapshots().last() {
            Some(&(last, _)) if !self.is_of_moment() => {
                self.allocated_in((Moment::default(), last)).total() - live_at_end
            }
            _ => Amount::UNTOLD,
        }
    }
    /// All stacks that had allocated something by then, snapshot by snapshot.
    pub fn for_each_at_snapshots(&self, mut f: impl FnMut(&AtSnapshot)) {
        for (number, &(moment, snapshot)) in self.profile().snapshots().iter().enumerate() {
            let live = self.live_at(moment).by_stack();
            let allocated = self.allocated_in((Moment::default(), moment)).by_stack();
            for (stack, &allocated) in allocated.enumerate() {
                if !allocated.is_empty() {
                    f(&AtSnapshot {
                        number,
                        snapshot,
                        stack,
                        live: live[stack],
                        allocated,
                    });
                }
            }
        }
    }
}
