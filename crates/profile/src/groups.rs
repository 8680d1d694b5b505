//! Groups blocks by site, function, file, module, crate, domain, size or age.

mod condition;
mod numbering;

use std::sync::Arc;

use clap::ValueEnum;
use hashbrown::HashMap;
use heapline_model::LocationId;
use serde::{Deserialize, Serialize};

use crate::amount::Amount;
use crate::attribution::{Attributed, Attribution};
use crate::crates::Crates;
use crate::own_code::OwnFrames;
use crate::query::Pattern;
use crate::ranges::{self, age_class, size_class};
use crate::scope::{Scope, hidden_functions};
use crate::selection::Stay;
use crate::store::{
    ClassId, ContextId, FrameId, FunctionId, Id, IdVec, Kind, KindId, NodeId, Profile, is_anonymous,
};

pub(crate) use numbering::Numbering;

/// No group, or no number that stands for one.
pub(crate) const NONE: u32 = u32::MAX;

/// The name of stacks of which nothing is known.
pub(crate) const UNKNOWN: &str = "(unknown)";

/// The name of stacks without own code.
pub(crate) const NO_OWN_CODE: &str = "(no own code)";

/// The attribute that blocks are grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum GroupBy {
    /// Source location of the allocation.
    Site,
    /// Code address of the allocation; distinguishes functor instances and inlined copies.
    Address,
    /// Function that allocates.
    #[default]
    Function,
    /// Source file of that function.
    File,
    /// Module of that function.
    Module,
    /// Crate of that function; in OCaml programs, its top-level module.
    Crate,
    /// Domain that allocates.
    Domain,
    /// Block size, in powers of two.
    Size,
    /// Lifetime, in powers of ten.
    Age,
}

impl GroupBy {
    /// The groupings for nodes of trees.
    pub(crate) const FRAMES: [Self; 5] = [
        Self::Function,
        Self::Site,
        Self::File,
        Self::Module,
        Self::Crate,
    ];

    /// Returns true if groups consist of frames, so that a group can also be in the middle of a
    /// stack.
    #[must_use]
    pub fn is_of_frames(self) -> bool {
        !matches!(self, Self::Domain | Self::Size | Self::Age)
    }

    /// One of a thing.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Site => "site",
            Self::Address => "address",
            Self::Function => "function",
            Self::File => "file",
            Self::Module => "module",
            Self::Crate => "crate",
            Self::Domain => "domain",
            Self::Size => "size",
            Self::Age => "age",
        }
    }
}

/// The grouping of blocks and the display of stacks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct View {
    /// The attribute that blocks are grouped by.
    pub(crate) by: GroupBy,
    /// Functions to leave out of stacks. Their memory is their callers'.
    pub(crate) hidden: Vec<Pattern>,
    /// Tell anonymous functions apart by their lines.
    pub(crate) split_anonymous: bool,
    /// Leave libraries out of stacks, too: all but own code, which is that outside of known libraries,
    /// or what matches a pattern.
    pub(crate) own_code: Option<Vec<Pattern>>,
    /// Attribute blocks that a library allocates to the function that calls it, and name both. Libraries
    /// are all but own code, or the standard library.
    pub(crate) name_callers: bool,
}

/// The name of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Label {
    /// The name, such as `Stdlib.List.map`.
    pub name: String,
    /// The name as the trace has it, where that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub raw_name: Option<String>,
    /// The place in the source, such as `list.ml:92:32-39`, or the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub place: Option<String>,
    /// The function of a library that allocates for this one, in reports that attribute its
    /// memory to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub via: Option<String>,
    /// The module, in reports that tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub module: Option<String>,
    /// The file, in reports that tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub file: Option<String>,
}

impl Label {
    pub(crate) fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    pub(crate) fn of_function(profile: &Profile, function: FunctionId) -> Self {
        let function = &profile.symbols().functions()[function];
        Self {
            name: function.name.clone(),
            raw_name: (function.raw != function.name).then(|| function.raw.clone()),
            ..Self::default()
        }
    }

    pub(crate) fn of_frame(profile: &Profile, frame: FrameId) -> Self {
        Self {
            place: Some(profile.symbols().place(frame)),
            ..Self::of_function(profile, profile.symbols().frames()[frame].function)
        }
    }
}

/// The groups of a profile, numbered.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) by: GroupBy,
    pub(crate) labels: Vec<Label>,
    /// The group of each frame; [`NONE`] if it is hidden. Empty if groups are not of frames.
    pub(crate) of_frame: IdVec<FrameId, u32>,
    /// The group of blocks of which it is not known where they come from; [`NONE`] if groups are
    /// not of frames.
    pub(crate) unknown: u32,
    /// The group of each class of blocks. Empty if that is not all that groups depend on.
    of_class: IdVec<ClassId, u32>,
    /// The group of each context. Empty if groups are not of frames.
    of_context: IdVec<ContextId, u32>,
}

impl Groups {
    /// The groups of a view. Those that were used last are kept: they are the same whatever blocks are selected.
    pub(crate) fn shared(profile: &Profile, view: &View) -> Arc<Self> {
        profile.memo().get(view, || Self::new(profile, view))
    }

    pub(crate) fn new(profile: &Profile, view: &View) -> Self {
        match view.by {
            GroupBy::Domain => Self::by_kind(profile, view.by, |kind| {
                Label::named(format!("domain {}", kind.lane))
            }),
            GroupBy::Size => Self::by_kind(profile, view.by, |kind| {
                size_class(kind.size, profile.header().word_bytes)
            }),
            GroupBy::Age => Self {
                by: view.by,
                labels: ranges::age_labels(),
                of_frame: IdVec::default(),
                unknown: NONE,
                of_class: IdVec::default(),
                of_context: IdVec::default(),
            },
            _ => Self::by_frame(profile, view),
        }
    }

    fn by_kind(profile: &Profile, by: GroupBy, label: impl Fn(&Kind) -> Label) -> Self {
        let mut table = Table::default();
        let kinds = profile.kinds().iter();
        let of_kind: IdVec<KindId, u32> = kinds.map(|kind| table.number(label(kind))).collect();
        let classes = profile.classes().iter();
        Self {
            by,
            labels: table.labels,
            of_frame: IdVec::default(),
            unknown: NONE,
            of_class: classes.map(|class| of_kind[class.kind]).collect(),
            of_context: IdVec::default(),
        }
    }

    fn by_frame(profile: &Profile, view: &View) -> Self {
        let symbols = profile.symbols();
        let hidden = hidden_functions(profile, &view.hidden);
        let crates = match view.by {
            GroupBy::Crate => Crates::new(symbols),
            _ => Crates::default(),
        };
        let own = view.own_code.as_ref();
        let own = own.map(|mine| OwnFrames::shared(profile, mine));
        let is_library = |frame| own.as_ref().is_some_and(|own| !own.is_own(frame));
        let mut table = Table::default();
        let of_frame: IdVec<FrameId, u32> = symbols
            .frames()
            .enumerate()
            .map(|(frame, info)| {
                if hidden[info.function] || !view.name_callers && is_library(frame) {
                    return NONE;
                }
                let function = &symbols.functions()[info.function];
                let split = view.split_anonymous && is_anonymous(&function.name);
                table.number(match view.by {
                    GroupBy::File => Label::named(&*symbols.files()[info.file]),
                    GroupBy::Module => Label::named(&*symbols.modules()[function.module]),
                    GroupBy::Crate => Label::named(crates.name(frame)),
                    GroupBy::Function if split => Label {
                        place: Some(format!("{}:{}", symbols.files()[info.file], info.line)),
                        ..Label::of_function(profile, info.function)
                    },
                    GroupBy::Function => Label::of_function(profile, info.function),
                    _ => Label::of_frame(profile, frame),
                })
            })
            .collect();
        let unknown = table.number(Label::named(match &own {
            Some(_) => NO_OWN_CODE,
            None => UNKNOWN,
        }));
        let library = match &own {
            _ if !view.name_callers => IdVec::default(),
            Some(_) => symbols.frames().ids().map(is_library).collect(),
            None => Crates::new(symbols).in_standard_library(),
        };
        let attribution = Attribution::new(profile, &of_frame, library);
        let of_context: IdVec<ContextId, u32> = profile
            .contexts()
            .ids()
            .map(|context| {
                let Some(Attributed { frame, via }) = attribution.of(context) else {
                    return unknown;
                };
                let group = of_frame[frame];
                if let Some(via) = via {
                    return table.number(Label {
                        via: Some(symbols.function(via).name.clone()),
                        ..table.labels[group as usize].clone()
                    });
                }
                let site = profile.contexts()[context].site;
                match view.by {
                    GroupBy::Address if Some(frame) == profile.site_frame(context) => {
                        table.number(address_label(profile, site))
                    }
                    _ => group,
                }
            })
            .collect();
        Self {
            by: view.by,
            labels: table.labels,
            of_frame,
            unknown,
            of_class: of_classes(profile, &of_context),
            of_context,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// These groups and one more, with other stacks in them.
    pub(crate) fn regrouped(
        mut self,
        profile: &Profile,
        of_context: IdVec<ContextId, u32>,
        one_more: Label,
    ) -> Self {
        self.labels.push(one_more);
        self.of_class = of_classes(profile, &of_context);
        self.of_context = of_context;
        self
    }

    /// Puts modules and files into the labels, those of the first frame of each group.
    pub(crate) fn locate(&mut self, profile: &Profile) {
        let symbols = profile.symbols();
        let has_module = !matches!(self.by, GroupBy::File | GroupBy::Crate);
        let has_file = !matches!(self.by, GroupBy::Module | GroupBy::Crate);
        for (frame, &group) in symbols.frames().iter().zip(&self.of_frame) {
            let Some(label) = self.labels.get_mut(group as usize) else {
                continue;
            };
            if has_module && label.module.is_none() {
                let module = symbols.functions()[frame.function].module;
                label.module = Some(symbols.modules()[module].clone());
            }
            if has_file && label.file.is_none() {
                label.file = Some(symbols.files()[frame.file].clone());
            }
        }
    }

    /// The group of a block.
    #[inline]
    pub(crate) fn of(&self, profile: &Profile, stay: Stay) -> u32 {
        match self.by {
            GroupBy::Age => age_class(profile, stay),
            _ => self.of_class[stay.class],
        }
    }

    /// Renumbers the groups; several can get one number.
    pub(crate) fn renumbered(&self, numbers: &[u32]) -> Numbering<'_> {
        Numbering::new(self, numbers)
    }

    /// Numbers the groups that are shown by their rows; the others have none.
    pub(crate) fn rows(&self, shown: &[usize]) -> Numbering<'_> {
        let mut row_of = vec![NONE; self.len()];
        for (row, &group) in (0..).zip(shown) {
            row_of[group] = row;
        }
        self.renumbered(&row_of)
    }

    /// The amount allocated in each group itself.
    pub(crate) fn sums(&self, scope: &Scope<'_>) -> Vec<Amount> {
        let sums = self.sums_of(scope, |_| [true]);
        sums.into_iter().map(|[sum]| sum).collect()
    }

    /// Returns true if all blocks of a class are in the same group.
    pub(crate) fn are_of_classes(&self) -> bool {
        self.by != GroupBy::Age
    }

    /// The amount allocated in each group itself, by the marks of the blocks.
    pub(crate) fn sums_of<const N: usize>(
        &self,
        scope: &Scope<'_>,
        marks: impl Fn(Stay) -> [bool; N] + Sync,
    ) -> Vec<[Amount; N]> {
        if self.are_of_classes() {
            return self.add_up(scope, &scope.counts_of(marks));
        }
        let mut sums = vec![[Amount::default(); N]; self.len()];
        scope.for_each(|stay| {
            let sums = &mut sums[self.of(scope.profile(), stay) as usize];
            for (sum, mark) in sums.iter_mut().zip(marks(stay)) {
                *sum += scope.weight(&stay).times(mark.into());
            }
        });
        sums
    }

    /// The amount for each group, given the number of blocks of each class.
    pub(crate) fn add_up<const N: usize>(
        &self,
        scope: &Scope<'_>,
        counts: &[[u32; N]],
    ) -> Vec<[Amount; N]> {
        self.add_up_columns(scope, counts, std::array::from_fn(|column| column))
    }

    /// The amount for each group, given the number of blocks of each class; some columns of it.
    pub(crate) fn add_up_columns<const N: usize, const M: usize>(
        &self,
        scope: &Scope<'_>,
        counts: &[[u32; N]],
        columns: [usize; M],
    ) -> Vec<[Amount; M]> {
        let mut sums = vec![[Amount::default(); M]; self.len()];
        let classes = scope.profile().classes().iter().zip(&self.of_class);
        for ((class, &group), counts) in classes.zip(counts) {
            let counts = columns.map(|column| counts[column]);
            // No block in scope is of a class without a group.
            if counts == [0; M] || group as usize >= sums.len() {
                continue;
            }
            let weight = scope.weights()[class.kind];
            for (sum, n) in sums[group as usize].iter_mut().zip(counts) {
                if n > 0 {
                    *sum += weight.times(n.into());
                }
            }
        }
        sums
    }

    /// The amount of all blocks with a group anywhere in their stack, each block counted once.
    /// `None` if groups are not made of frames, or are addresses, which the tree does not have.
    pub(crate) fn inclusive_sums(&self, scope: &Scope<'_>) -> Option<Vec<Amount>> {
        self.inclusive_sums_of_stacks(scope, || scope.by_stack())
    }

    /// Inclusive sums, given the amount of each stack.
    pub(crate) fn inclusive_sums_of_stacks(
        &self,
        scope: &Scope<'_>,
        by_stack: impl FnOnce() -> IdVec<ContextId, Amount>,
    ) -> Option<Vec<Amount>> {
        if !self.are_in_stacks() {
            return None;
        }
        let profile = scope.profile();
        let tree = profile.tree();
        let mut sums = vec![Amount::default(); self.len()];
        // The last stack that each group was met in: it counts once in each.
        let mut last = vec![ContextId::NONE; self.len()];
        for (stack, &amount) in by_stack().enumerate() {
            if amount.is_empty() {
                continue;
            }
            let mut meet = |group: u32| {
                if group != NONE && last[group as usize] != stack {
                    last[group as usize] = stack;
                    sums[group as usize] += amount;
                }
            };
            meet(self.of_context[stack]);
            let mut node = profile.contexts()[stack].node;
            while node != NodeId::ROOT {
                meet(self.of_frame[tree.frame[node]]);
                node = tree.parent[node];
            }
        }
        Some(sums)
    }

    /// Inclusive sums of some of the groups, where so many blocks of each class are in scope. For a
    /// few groups, such as the rows of a table, it takes a tenth of the time.
    pub(crate) fn inclusive_sums_of(
        &self,
        groups: &[usize],
        scope: &Scope<'_>,
        counts: &[u32],
    ) -> Option<Vec<Amount>> {
        /// Beyond these it would take longer.
        const FEW: usize = 512;
        if groups.len() > FEW {
            let sums = self.inclusive_sums(scope)?;
            return Some(groups.iter().map(|&group| sums[group]).collect());
        }
        self.are_in_stacks().then(|| {
            let parts = groups.chunks(u64::BITS as usize);
            parts
                .flat_map(|groups| self.inclusive_sums_by_bit(groups, scope, counts))
                .collect()
        })
    }

    /// Inclusive sums of at most 64 groups, with a bitset of the groups in each stack.
    fn inclusive_sums_by_bit(
        &self,
        groups: &[usize],
        scope: &Scope<'_>,
        counts: &[u32],
    ) -> Vec<Amount> {
        let profile = scope.profile();
        let mut bits = vec![0_u64; self.len()];
        for (bit, &group) in groups.iter().enumerate() {
            bits[group] = 1 << bit;
        }
        let bit_of = |group: u32| bits.get(group as usize).copied().unwrap_or(0);
        let of_frame: IdVec<FrameId, u64> =
            self.of_frame.iter().map(|&group| bit_of(group)).collect();
        let tree = profile.tree();
        let mut of_node = IdVec::like(&tree.parent, 0_u64);
        for node in tree.nodes() {
            let caller = of_node[tree.parent[node]];
            of_node[node] = caller | of_frame[tree.frame[node]];
        }
        let of_context = profile.contexts().iter().zip(&self.of_context);
        let of_context: IdVec<ContextId, u64> = of_context
            .map(|(context, &group)| of_node[context.node] | bit_of(group))
            .collect();

        let mut sums = vec![Amount::default(); groups.len()];
        for (class, &n) in profile.classes().iter().zip(counts) {
            let mut rest = of_context[class.context];
            if n == 0 || rest == 0 {
                continue;
            }
            let amount = scope.weights()[class.kind].times(n.into());
            while rest != 0 {
                sums[rest.trailing_zeros() as usize] += amount;
                rest &= rest - 1;
            }
        }
        sums
    }

    /// Returns true if groups can be in the middle of a stack in the tree.
    fn are_in_stacks(&self) -> bool {
        self.by.is_of_frames() && self.by != GroupBy::Address
    }
}

/// The group of each class, from those of contexts.
fn of_classes(profile: &Profile, of_context: &IdVec<ContextId, u32>) -> IdVec<ClassId, u32> {
    let classes = profile.classes().iter();
    classes.map(|class| of_context[class.context]).collect()
}

/// Numbers labels.
#[derive(Default)]
struct Table {
    labels: Vec<Label>,
    numbers: HashMap<Label, u32>,
}

impl Table {
    fn number(&mut self, label: Label) -> u32 {
        if let Some(&number) = self.numbers.get(&label) {
            return number;
        }
        // There are not more groups than frames, kinds or contexts.
        let number = u32::try_from(self.labels.len()).unwrap_or(NONE - 1);
        self.labels.push(label.clone());
        self.numbers.insert(label, number);
        number
    }
}

fn address_label(profile: &Profile, location: LocationId) -> Label {
    let frame = profile.symbols().innermost(location);
    let label = Label::of_frame(profile, frame);
    Label {
        place: Some(format!(
            "{} at {:#x}",
            label.place.unwrap_or_default(),
            profile.symbols().address(location)
        )),
        ..label
    }
}
