//! The values that are summed along stacks: amounts, with or without details.

use heapline_model::Space;
use serde::Serialize;

use crate::estimate::Amount;
use crate::scope::Scope;

/// A value that is summed along stacks.
pub(super) trait Load: Copy + Default {
    fn add(&mut self, other: &Self);
    fn amount(&self) -> Amount;
    fn details(&self) -> Option<Details>;

    fn bytes(&self) -> f64 {
        self.amount().bytes.value
    }

    fn is_empty(&self) -> bool {
        self.amount().is_empty()
    }
}

impl Load for Amount {
    fn add(&mut self, other: &Self) {
        *self += *other;
    }

    fn amount(&self) -> Amount {
        *self
    }

    fn details(&self) -> Option<Details> {
        None
    }
}

/// Details on the blocks of a node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Details {
    /// Mean seconds that blocks lived, those alive at the end as long as they were seen; null if
    /// there are none.
    pub lifetime: Option<f64>,
    /// Bytes by the heap where they were allocated.
    pub heap: ByHeap,
    /// Bytes that were promoted.
    pub promoted: f64,
    /// Bytes alive at half of the run.
    pub live_at_half: f64,
    /// Bytes alive at the end.
    pub live_at_end: f64,
}

/// Bytes by the heap that they were allocated on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ByHeap {
    /// The minor heap.
    pub minor: f64,
    /// The major heap, directly.
    pub major: f64,
    /// Outside of OCaml's heaps.
    pub external: f64,
    /// Memory of an allocator such as malloc.
    pub native: f64,
}

/// An amount with its details in the making.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Detailed {
    amount: Amount,
    /// Seconds lived, times blocks.
    seconds: f64,
    heap: ByHeap,
    promoted: f64,
    half: f64,
    end: f64,
}

impl Load for Detailed {
    fn add(&mut self, other: &Self) {
        self.amount += other.amount;
        self.seconds += other.seconds;
        self.heap.minor += other.heap.minor;
        self.heap.major += other.heap.major;
        self.heap.external += other.heap.external;
        self.heap.native += other.heap.native;
        self.promoted += other.promoted;
        self.half += other.half;
        self.end += other.end;
    }

    fn amount(&self) -> Amount {
        self.amount
    }

    fn details(&self) -> Option<Details> {
        let blocks = self.amount.blocks.value;
        Some(Details {
            lifetime: (blocks > 0.0).then(|| self.seconds / blocks),
            heap: self.heap,
            promoted: self.promoted,
            live_at_half: self.half,
            live_at_end: self.end,
        })
    }
}

/// The number of blocks of a class, in total and by property.
#[derive(Clone, Copy, Default)]
struct Counts {
    blocks: u32,
    promoted: u32,
    half: u32,
    end: u32,
    /// Microseconds lived, of all together.
    micros: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.blocks += other.blocks;
        self.promoted += other.promoted;
        self.half += other.half;
        self.end += other.end;
        self.micros = self.micros.saturating_add(other.micros);
    }
}

/// The detailed amounts of the blocks of each stack.
pub(super) fn detailed_by_stack(scope: &Scope<'_>) -> Vec<Detailed> {
    let profile = scope.profile();
    let mut by_stack = vec![Detailed::default(); profile.contexts().len()];
    for (class, counts) in profile.classes().iter().zip(counts(scope)) {
        if counts.blocks == 0 {
            continue;
        }
        let weight = scope.weights()[class.kind as usize];
        let bytes = |n: u32| weight.bytes.value * f64::from(n);
        let mut heap = ByHeap::default();
        *match profile.kinds()[class.kind as usize].space {
            Space::Minor => &mut heap.minor,
            Space::Major => &mut heap.major,
            Space::External => &mut heap.external,
            Space::Native => &mut heap.native,
        } = bytes(counts.blocks);
        by_stack[class.context as usize].add(&Detailed {
            amount: weight.times(counts.blocks.into()),
            seconds: counts.micros as f64 / 1e6 * weight.blocks.value,
            heap,
            promoted: bytes(counts.promoted),
            half: bytes(counts.half),
            end: bytes(counts.end),
        });
    }
    by_stack
}

/// By class.
fn counts(scope: &Scope<'_>) -> Vec<Counts> {
    let profile = scope.profile();
    let half = profile.after(profile.micros(profile.end()) / 2);
    scope.fold(
        || vec![Counts::default(); profile.classes().len()],
        |counts, stay| {
            counts[stay.class as usize].add(&Counts {
                blocks: 1,
                promoted: u32::from(stay.is_promoted()),
                half: u32::from(stay.is_live_at(half)),
                end: u32::from(!stay.ends()),
                micros: profile.time(stay.end) - profile.time(stay.start),
            });
        },
        |all, part| {
            for (counts, part) in all.iter_mut().zip(&part) {
                counts.add(part);
            }
        },
    )
}
