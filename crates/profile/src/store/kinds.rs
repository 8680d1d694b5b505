//! Kinds of blocks: the few facts that a great many blocks have in common.

use hashbrown::HashMap;
use heapline_model::Space;
use serde::{Deserialize, Serialize};

use super::ids::{Id, IdVec, KindId};
use crate::amount::Amount;
use crate::estimate::Sum;
use crate::sampling::{Estimator, Sampling};

/// The kind of a block: all but when and where it was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Kind {
    /// Bytes, without the header.
    pub size: u64,
    /// How often the sampler hit it.
    pub samples: u64,
    /// Blocks that were merged into this one.
    pub merged: u64,
    /// Where it was allocated.
    pub space: Space,
    /// The lane (domain or thread) that allocated it.
    pub lane: u16,
    /// True if it was dead when the source told of it. Nobody knows how many blocks that were.
    pub passed: bool,
}

impl Kind {
    /// The amount that a block of this kind stands for.
    #[must_use]
    pub fn amount(&self, sampling: &Sampling, estimator: Estimator) -> Amount {
        let amount = sampling.merged_amount(
            estimator,
            self.size,
            self.space,
            self.samples,
            self.blocks(),
        );
        if self.passed {
            let blocks = Sum::UNTOLD;
            return Amount { blocks, ..amount };
        }
        amount
    }

    /// The number of sampled blocks that it stands for.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.merged.saturating_add(1)
    }
}

/// Gives kinds their numbers.
#[derive(Debug, Default)]
pub(crate) struct KindTable {
    kinds: IdVec<KindId, Kind>,
    numbers: HashMap<Kind, KindId>,
    /// By size, the kind of blocks of the current lane that were sampled once on the minor heap:
    /// nearly all blocks.
    common: Vec<KindId>,
    lane: u16,
}

impl KindTable {
    /// Bytes of small blocks, in words of 8 bytes or in bytes.
    const COMMON: usize = 2048;

    /// The number of a kind; `is_new` is told of it first if it is a new one.
    #[inline]
    pub(crate) fn number(&mut self, kind: Kind, is_new: impl FnOnce(&Kind)) -> KindId {
        let size = usize::try_from(kind.size).unwrap_or(usize::MAX);
        if kind.samples != 1
            || kind.merged != 0
            || kind.space != Space::Minor
            || size >= Self::COMMON
        {
            return self.intern(kind, is_new);
        }
        if kind.lane != self.lane || self.common.is_empty() {
            self.lane = kind.lane;
            self.common.clear();
            self.common.resize(Self::COMMON, KindId::NONE);
        }
        if self.common[size] == KindId::NONE {
            self.common[size] = self.intern(kind, is_new);
        }
        self.common[size]
    }

    fn intern(&mut self, kind: Kind, is_new: impl FnOnce(&Kind)) -> KindId {
        *self.numbers.entry(kind).or_insert_with(|| {
            is_new(&kind);
            self.kinds.push(kind)
        })
    }

    /// All kinds so far.
    pub(crate) fn kinds(&self) -> &IdVec<KindId, Kind> {
        &self.kinds
    }
}
