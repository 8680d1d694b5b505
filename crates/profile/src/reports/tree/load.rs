//! The values that are summed along stacks: amounts, with or without details.

use heapline_model::Space;
use rayon::slice::ParallelSliceMut;
use serde::Serialize;

use crate::amount::Amount;
use crate::scope::Scope;
use crate::store::{Class, ClassId, ContextId, IdVec};

/// A value that is summed along stacks.
pub(in crate::reports) trait Load: Copy + Default + Sync {
    /// The counts of the blocks of a class.
    type Counts: Copy + Sync;
    /// The weights of blocks, beyond those of the scope.
    type Weights: Sync;

    /// How many blocks were counted.
    fn blocks(counts: &Self::Counts) -> u32;
    /// The sum of the blocks of a class.
    fn of_class(
        scope: &Scope<'_>,
        weights: &Self::Weights,
        class: Class,
        counts: &Self::Counts,
    ) -> Self;
    fn add(&mut self, other: &Self);
    /// The size by which nodes are sorted, and merged if they are small.
    fn bytes(&self) -> f64;
}

/// A value of the blocks of one scope.
pub(in crate::reports) trait ScopeLoad: Load<Weights = ()> {
    /// The counts of all classes.
    fn counts(scope: &Scope<'_>) -> Vec<Self::Counts>;
    fn amount(&self) -> Amount;
    fn details(&self) -> Option<Details>;
}

/// The sum of the blocks of each stack.
///
/// There may be millions of stacks, so this is kept as the counts of classes, and added up whenever
/// it is read.
pub(in crate::reports) struct ByStack<'a, T: Load> {
    scope: &'a Scope<'a>,
    weights: T::Weights,
    counts: IdVec<ClassId, T::Counts>,
    /// The classes that have blocks, in the order of their contexts.
    order: Vec<ClassId>,
}

impl<'a, T: ScopeLoad> ByStack<'a, T> {
    pub(super) fn new(scope: &'a Scope<'a>) -> Self {
        Self::of_counts(scope, (), T::counts(scope))
    }
}

impl<'a, T: Load> ByStack<'a, T> {
    /// Sums blocks of classes that were counted before.
    pub(in crate::reports) fn of_counts(
        scope: &'a Scope<'a>,
        weights: T::Weights,
        counts: Vec<T::Counts>,
    ) -> Self {
        let counts = IdVec::from(counts);
        let classes = scope.profile().classes();
        let used = counts
            .enumerate()
            .filter(|(_, counts)| T::blocks(counts) > 0);
        let mut order: Vec<ClassId> = used.map(|(class, _)| class).collect();
        // Stable and fast on what is nearly in order, as it is: both are numbered as they appear.
        order.par_sort_by_key(|&class| classes[class].context);
        Self {
            scope,
            weights,
            counts,
            order,
        }
    }

    /// The scope that weighs the blocks.
    pub(in crate::reports) fn scope(&self) -> &'a Scope<'a> {
        self.scope
    }

    /// The contexts that have blocks, in order, and what those amount to.
    pub(in crate::reports) fn iter(&self) -> impl Iterator<Item = (ContextId, T)> {
        let classes = self.scope.profile().classes();
        let context = |class| classes[class].context;
        let by_context = self.order.chunk_by(move |&a, &b| context(a) == context(b));
        by_context.map(move |of_context| {
            let mut sum = T::default();
            for &class in of_context {
                let counts = &self.counts[class];
                sum.add(&T::of_class(
                    self.scope,
                    &self.weights,
                    classes[class],
                    counts,
                ));
            }
            (context(of_context[0]), sum)
        })
    }
}

impl Load for Amount {
    type Counts = u32;
    type Weights = ();

    fn blocks(&counts: &u32) -> u32 {
        counts
    }

    fn of_class(scope: &Scope<'_>, (): &(), class: Class, &counts: &u32) -> Self {
        scope.weights()[class.kind].times(counts.into())
    }

    fn add(&mut self, other: &Self) {
        *self += *other;
    }

    fn bytes(&self) -> f64 {
        self.bytes.value
    }
}

impl ScopeLoad for Amount {
    fn counts(scope: &Scope<'_>) -> Vec<u32> {
        scope.counts()
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
    type Counts = Counts;
    type Weights = ();

    fn blocks(counts: &Counts) -> u32 {
        counts.blocks
    }

    fn of_class(scope: &Scope<'_>, (): &(), class: Class, counts: &Counts) -> Self {
        let weight = scope.weights()[class.kind];
        let bytes = |n: u32| weight.bytes.value * f64::from(n);
        let told = |bytes: f64| {
            if scope.is_of_moment() {
                f64::NAN
            } else {
                bytes
            }
        };
        let mut heap = ByHeap::default();
        *match scope.profile().kinds()[class.kind].space {
            Space::Minor => &mut heap.minor,
            Space::Major => &mut heap.major,
            Space::External => &mut heap.external,
            Space::Native => &mut heap.native,
        } = bytes(counts.blocks);
        Self {
            amount: weight.times(counts.blocks.into()),
            seconds: if scope.profile().header().tells.lifetimes {
                counts.micros as f64 / 1e6 * weight.blocks.value
            } else {
                f64::NAN
            },
            heap,
            promoted: bytes(counts.promoted),
            half: told(bytes(counts.half)),
            end: told(bytes(counts.end)),
        }
    }

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

    fn bytes(&self) -> f64 {
        self.amount.bytes.value
    }
}

impl ScopeLoad for Detailed {
    fn counts(scope: &Scope<'_>) -> Vec<Counts> {
        counts(scope)
    }

    fn amount(&self) -> Amount {
        self.amount
    }

    fn details(&self) -> Option<Details> {
        let blocks = self.amount.blocks.value;
        Some(Details {
            lifetime: (blocks > 0.0)
                .then(|| self.seconds / blocks)
                .filter(|seconds| !seconds.is_nan()),
            heap: self.heap,
            promoted: self.promoted,
            live_at_half: self.half,
            live_at_end: self.end,
        })
    }
}

/// The number of blocks of a class, in total and by property.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
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

/// By class.
fn counts(scope: &Scope<'_>) -> Vec<Counts> {
    let profile = scope.profile();
    let half = profile.after(profile.micros(profile.end()) / 2);
    scope.fold(
        || vec![Counts::default(); profile.classes().len()],
        |counts, stay| {
            counts[stay.class.index()].add(&Counts {
                blocks: 1,
                promoted: u32::from(stay.is_promoted()),
                half: u32::from(stay.is_live_at(half)),
                end: u32::from(!stay.ends()),
                micros: stay.age(profile),
            });
        },
        |all, part| {
            for (counts, part) in all.iter_mut().zip(&part) {
                counts.add(part);
            }
        },
    )
}
