//! The scope of a report: a profile, the selected blocks, and their weights.

use heapline_model::Space;

use crate::amount::{Amount, Overshoot};
use crate::groups::{NO_OWN_CODE, UNKNOWN};
use crate::options::Look;
use crate::overshoot::overshoot;
use crate::own_code::OwnFrames;
use crate::peaks::Peaks;
use crate::query::{Pattern, Query};
use crate::sampling::Estimator;
use crate::selection::{Selection, Stay};
use crate::store::{
    ContextId, FrameId, FunctionId, IdVec, KindId, Moment, NEVER, NodeId, Peak, Profile,
};

/// A profile, the blocks of it that are meant, and the estimator: what every report is about.
///
/// ```no_run
/// # fn f(profile: &heapline_profile::Profile) -> Result<(), heapline_profile::QueryError> {
/// use heapline_profile::{Estimator, Query, Scope};
///
/// let query = Query::parse("live at peak and size >= 64KiB")?;
/// let scope = Scope::new(profile, &query, Estimator::default());
/// println!("{} bytes", scope.total().bytes.estimate().value);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    profile: &'a Profile,
    estimator: Estimator,
    selection: Selection,
    weights: IdVec<KindId, Amount>,
    /// By frame: whether it is left out of stacks. Empty if none is.
    hidden: IdVec<FrameId, bool>,
    /// The name of stacks of which no frame is left.
    unknown: &'static str,
    /// True if it is about one moment, and the source does not tell what became of blocks.
    is_of_moment: bool,
}

/// A sampled block, with times in microseconds since the start of the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampledBlock {
    /// The number of allocations before it in the source.
    pub number: usize,
    /// The time of its allocation.
    pub allocated: u64,
    /// The time of its promotion, if any.
    pub promoted: Option<u64>,
    /// The time of its collection, if any.
    pub collected: Option<u64>,
    /// The start of the part of its life that counts: its allocation, or its promotion if the query
    /// is about the major heap.
    pub from: u64,
    /// The end of that part, if any.
    pub until: Option<u64>,
    /// Bytes, without the header.
    pub size: u64,
    /// The number of times that the sampler hit it.
    pub samples: u64,
    /// The heap on which it was allocated.
    pub space: Space,
    /// The lane (domain or thread) that allocated it.
    pub lane: u16,
    /// Its stack: see [`Profile::stack`].
    pub stack: ContextId,
    /// The amount that it represents.
    pub amount: Amount,
}

impl<'a> Scope<'a> {
    /// The blocks that a query is true of.
    #[must_use]
    pub fn new(profile: &'a Profile, query: &Query, estimator: Estimator) -> Self {
        let scope = Self {
            profile,
            estimator,
            selection: query.select(profile, estimator),
            weights: profile.weights(estimator),
            hidden: IdVec::default(),
            unknown: UNKNOWN,
            is_of_moment: !profile.header().tells.lifetimes && query.is_of_time(),
        };
        if query.is_of_peak() {
            scope.chosen(profile.overshoot(estimator))
        } else {
            scope
        }
    }

    /// With weights of a moment that was chosen because most is alive then.
    fn chosen(mut self, overshoot: Overshoot) -> Self {
        let weights = self.weights.iter();
        self.weights = weights.map(|weight| weight.chosen(overshoot)).collect();
        self
    }

    /// Returns true if nothing is known of the blocks at other moments than the one of the query.
    pub(crate) fn is_of_moment(&self) -> bool {
        self.is_of_moment
    }

    /// Keeps every frame of recursive calls in the stacks if `yes`: by default a
    /// function is in a stack once, where it was first called. The store must have kept them, see
    /// [`StoreOptions`](crate::StoreOptions).
    #[must_use]
    pub fn keep_recursion(mut self, yes: bool) -> Self {
        if yes {
            self.profile = self.profile.with_recursion();
        }
        self
    }

    /// Leaves some functions out of the stacks.
    #[must_use]
    pub fn hiding(mut self, patterns: &[Pattern]) -> Self {
        if !patterns.is_empty() {
            let hidden = hidden_functions(self.profile, patterns);
            let frames = self.profile.symbols().frames().iter();
            self.hidden = frames.map(|frame| hidden[frame.function]).collect();
        }
        self
    }

    /// Leaves functions out of the stacks as the options say: hidden ones, and with `own_code` those of libraries.
    #[must_use]
    pub fn showing(self, look: &Look) -> Self {
        let mut scope = self.hiding(&look.hide);
        if look.is_of_own_code() {
            scope.unknown = NO_OWN_CODE;
            let own = OwnFrames::shared(scope.profile, &look.mine);
            let frames = scope.profile.symbols().frames().ids();
            let is_hidden = |frame| scope.hidden.get(frame).copied().unwrap_or_default();
            scope.hidden = frames
                .map(|frame| is_hidden(frame) || !own.is_own(frame))
                .collect();
        }
        scope
    }

    /// The frames of a stack, innermost first, but those that are hidden; see
    /// [`Profile::stack`].
    #[must_use]
    pub fn stack(&self, stack: ContextId) -> Vec<FrameId> {
        let mut frames = self.profile.stack(stack);
        if !self.hidden.is_empty() {
            frames.retain(|&frame| !self.hidden[frame]);
        }
        frames
    }

    /// The name of stacks without frames, as in reports.
    #[must_use]
    pub fn unknown_name(&self) -> &'static str {
        self.unknown
    }

    /// The profile.
    #[must_use]
    pub fn profile(&self) -> &'a Profile {
        self.profile
    }

    /// The estimator for amounts.
    #[must_use]
    pub fn estimator(&self) -> Estimator {
        self.estimator
    }

    /// The selected blocks.
    #[must_use]
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The total amount of the blocks.
    #[must_use]
    pub fn total(&self) -> Amount {
        self.sum(&self.counts_by_kind())
    }

    /// The time with most live bytes of these blocks.
    #[must_use]
    pub fn peak(&self) -> Moment {
        Peaks::new(self, (Moment(0), self.profile.end())).of_all()
    }

    /// The blocks that are live at the time with most live bytes of these blocks.
    pub(crate) fn at_own_peak(&self) -> Self {
        let peaks = Peaks::new(self, (Moment(0), self.profile.end()));
        let peak = peaks.of_all();
        let overshoot = overshoot(self, &peaks, peak);
        self.live_at(peak).chosen(overshoot)
    }

    /// The blocks that a query is not true of.
    #[must_use]
    pub fn without(&self, query: &Query) -> Self {
        let removed = query.select(self.profile, self.estimator);
        self.with(self.selection.without(&removed, self.profile))
    }

    /// The blocks that are live at a given time.
    #[must_use]
    pub fn live_at(&self, moment: Moment) -> Self {
        self.filter(|stay| stay.is_live_at(moment))
    }

    /// The blocks that are live at the peak of the whole program.
    #[must_use]
    pub fn at_peak(&self) -> Self {
        self.live_at(self.profile.peak(self.estimator).moment)
            .chosen(self.profile.overshoot(self.estimator))
    }

    /// An amount that is live at the peak of the whole program.
    pub(crate) fn as_peak(&self, amount: Amount) -> Amount {
        amount.chosen(self.profile.overshoot(self.estimator))
    }

    /// The blocks that are live at the end.
    #[must_use]
    pub fn at_end(&self) -> Self {
        self.filter(|stay| !stay.ends())
    }

    /// The blocks that were promoted.
    pub(crate) fn promoted(&self) -> Self {
        self.filter(|stay| stay.is_promoted())
    }

    /// The blocks that were allocated at or after a time and before another.
    #[must_use]
    pub fn allocated_in(&self, (Moment(from), Moment(to)): (Moment, Moment)) -> Self {
        self.filter(|stay| from <= stay.start && stay.start < to)
    }

    pub(crate) fn filter(&self, keep: impl Fn(Stay) -> bool) -> Self {
        Self {
            selection: self.selection.filter(self.profile, keep),
            ..self.clone()
        }
    }

    pub(crate) fn with(&self, selection: Selection) -> Self {
        Self {
            selection,
            ..self.clone()
        }
    }

    /// The amount of the blocks of each stack. See [`Profile::stack`].
    #[must_use]
    pub fn by_stack(&self) -> IdVec<ContextId, Amount> {
        self.by_stack_of(&self.counts())
    }

    /// The amount of each stack, given the number of blocks of each class.
    pub(crate) fn by_stack_of(&self, counts: &[u32]) -> IdVec<ContextId, Amount> {
        let mut sums = IdVec::like(self.profile.contexts(), Amount::default());
        for (class, &n) in self.profile.classes().iter().zip(counts) {
            if n > 0 {
                let weight = self.weights[class.kind];
                sums[class.context] += weight.times(n.into());
            }
        }
        sums
    }

    /// The number of blocks of each class.
    pub(crate) fn counts(&self) -> Vec<u32> {
        self.counts_of(|_| [true])
            .into_iter()
            .map(|[n]| n)
            .collect()
    }

    /// The number of blocks of each class with each of some properties.
    ///
    /// Blocks of a class stand for the same, so counting them is all that there is to do for each
    /// block; everything else is done for each class.
    pub(crate) fn counts_of<const N: usize>(
        &self,
        marks: impl Fn(Stay) -> [bool; N] + Sync,
    ) -> Vec<[u32; N]> {
        let classes = self.profile.classes().len();
        self.fold_large(
            classes * size_of::<[u32; N]>(),
            || vec![[0; N]; classes],
            |counts, stay| {
                let counts = &mut counts[stay.class.index()];
                for (count, mark) in counts.iter_mut().zip(marks(stay)) {
                    *count += u32::from(mark);
                }
            },
            |all, part| {
                for (counts, part) in all.iter_mut().zip(part) {
                    for (count, part) in counts.iter_mut().zip(part) {
                        *count += part;
                    }
                }
            },
        )
    }

    /// The number of blocks of each kind.
    pub(crate) fn counts_by_kind(&self) -> IdVec<KindId, u64> {
        if self.selection.is_all(self.profile) {
            let tallies = self.profile.tallies().iter();
            return tallies.map(|tally| tally.blocks).collect();
        }
        self.counts_by_kind_of(&self.counts())
    }

    /// The number of blocks of each kind, given that of each class.
    fn counts_by_kind_of(&self, counts: &[u32]) -> IdVec<KindId, u64> {
        let mut by_kind = IdVec::like(&self.weights, 0_u64);
        for (class, &n) in self.profile.classes().iter().zip(counts) {
            by_kind[class.kind] += u64::from(n);
        }
        by_kind
    }

    /// The total amount, given the number of blocks of each class.
    pub(crate) fn total_of(&self, counts: &[u32]) -> Amount {
        self.sum(&self.counts_by_kind_of(counts))
    }

    /// The total amount, given the number of blocks of each kind.
    pub(crate) fn sum(&self, by_kind: &IdVec<KindId, u64>) -> Amount {
        let amounts = self.weights.iter().zip(by_kind);
        amounts
            .filter(|(_, n)| **n > 0)
            .map(|(weight, &n)| weight.times(n))
            .sum()
    }

    /// The blocks one by one, in the order of the trace.
    pub fn for_each_block(&self, mut f: impl FnMut(&SampledBlock)) {
        let profile = self.profile;
        self.for_each(|stay| {
            let perhaps = |event: u64| (event != NEVER).then(|| stay.time(profile, event));
            let class = profile.classes()[stay.class];
            let kind = profile.kinds()[class.kind];
            f(&SampledBlock {
                number: stay.block,
                allocated: stay.time(profile, stay.birth),
                promoted: perhaps(stay.promotion),
                collected: perhaps(stay.death),
                from: stay.start_time(profile),
                until: perhaps(stay.end),
                size: kind.size,
                samples: kind.samples,
                space: kind.space,
                lane: kind.lane,
                stack: class.context,
                amount: self.weight(&stay),
            });
        });
    }

    #[inline]
    pub(crate) fn for_each(&self, f: impl FnMut(Stay)) {
        self.selection.for_each(self.profile, f);
    }

    /// Adds up something over all blocks, on all cores.
    pub(crate) fn fold<T: Send>(
        &self,
        empty: impl Fn() -> T + Sync,
        add: impl Fn(&mut T, Stay) + Sync,
        join: impl Fn(&mut T, T),
    ) -> T {
        self.fold_large(0, empty, add, join)
    }

    /// Like [`fold`](Self::fold), for sums of so many bytes each: on fewer cores if one for each would take too much memory.
    pub(crate) fn fold_large<T: Send>(
        &self,
        sum_bytes: usize,
        empty: impl Fn() -> T + Sync,
        add: impl Fn(&mut T, Stay) + Sync,
        join: impl Fn(&mut T, T),
    ) -> T {
        self.selection
            .fold(self.profile, sum_bytes, empty, add, join)
    }

    /// The weight of each kind of block.
    pub(crate) fn weights(&self) -> &IdVec<KindId, Amount> {
        &self.weights
    }

    /// The weight of a block.
    #[inline]
    pub(crate) fn weight(&self, stay: &Stay) -> Amount {
        self.weights[self.profile.classes()[stay.class].kind]
    }

    #[inline]
    pub(crate) fn bytes(&self, stay: &Stay) -> f64 {
        self.weight(stay).bytes.value
    }
}

/// For each function, true if it matches one of the patterns.
pub(crate) fn hidden_functions(profile: &Profile, patterns: &[Pattern]) -> IdVec<FunctionId, bool> {
    let functions = profile.symbols().functions();
    let mut hidden = IdVec::like(functions, false);
    for pattern in patterns {
        let matches = pattern.functions(functions);
        for (is_hidden, &matches) in hidden.iter_mut().zip(&matches) {
            *is_hidden |= matches;
        }
    }
    hidden
}

impl Profile {
    /// The peak: the first of the times with the largest sum of live bytes.
    #[must_use]
    pub fn peak(&self, estimator: Estimator) -> Peak {
        self.peak_or(estimator, || {
            Scope::new(self, &Query::default(), estimator).peak()
        })
    }

    /// How far the estimate of what is live at the peak is too high.
    pub(crate) fn overshoot(&self, estimator: Estimator) -> Overshoot {
        self.overshoot_or(estimator, || {
            let scope = Scope::new(self, &Query::default(), estimator);
            let peaks = Peaks::new(&scope, (Moment(0), self.end()));
            overshoot(&scope, &peaks, self.peak(estimator).moment)
        })
    }

    /// The number of distinct stacks.
    #[must_use]
    pub fn stack_count(&self) -> usize {
        self.contexts().len()
    }

    /// All distinct stacks.
    pub fn stacks(&self) -> impl ExactSizeIterator<Item = ContextId> + use<> {
        self.contexts().ids()
    }

    /// The frames of a stack, innermost first; see [`Symbols`](crate::Symbols). The
    /// first one is where the allocation is. Recursion is collapsed, unless this is a profile
    /// [with recursion](Self::with_recursion): each function is there once, where it was first
    /// called, apart from the first one.
    #[must_use]
    pub fn stack(&self, stack: ContextId) -> Vec<FrameId> {
        let context = self.contexts()[stack];
        let site = self.site_frame(stack);
        let tree = self.tree();
        let mut frames = Vec::new();
        let mut node = context.node;
        if let Some(site) = site {
            frames.push(site);
            // The allocation is in the innermost function, be it in another line of it.
            let function = |frame: FrameId| self.symbols().frames()[frame].function;
            if node != NodeId::ROOT && function(tree.frame[node]) == function(site) {
                node = tree.parent[node];
            }
        }
        while node != NodeId::ROOT {
            frames.push(tree.frame[node]);
            node = tree.parent[node];
        }
        frames
    }
}
