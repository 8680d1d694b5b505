//! Ids: numbers of frames, functions and the like, each a type of its own, and tables indexed by
//! them.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut};

use heapline_model::LocationId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An id: an index into an [`IdVec`]. Nobody outside of this crate can name this trait, so that
/// ids only come from tables.
pub trait Id: Copy + Ord {
    /// No id at all.
    const NONE: Self;

    fn from_index(index: usize) -> Self;
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $visibility:vis $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[repr(transparent)]
        $visibility struct $name(u32);

        impl $name {
            /// Its number, from 0 without gaps.
            #[inline]
            #[must_use]
            $visibility fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl Id for $name {
            const NONE: Self = Self(u32::MAX);

            #[inline]
            fn from_index(index: usize) -> Self {
                Self(saturated(index))
            }

            #[inline]
            fn index(self) -> usize {
                // The method above, not this one.
                Self::index(self)
            }
        }
    )*};
}

ids! {
    /// A place in the source: see [`Symbols::frames`](crate::Symbols::frames).
    pub FrameId;
    /// A function: see [`Symbols::functions`](crate::Symbols::functions).
    pub FunctionId;
    /// A source file: see [`Symbols::files`](crate::Symbols::files).
    pub FileId;
    /// A module: see [`Symbols::modules`](crate::Symbols::modules).
    pub ModuleId;
    /// A stack with which blocks were allocated: see [`Profile::stack`](crate::Profile::stack).
    pub ContextId;
    /// A crate, or what stands for one.
    pub(crate) CrateId;
    /// A node of the call tree.
    pub(crate) NodeId;
    /// A kind of blocks.
    pub(crate) KindId;
    /// A class of blocks.
    pub(crate) ClassId;
    /// Blocks that stand for the same amount in the same row of a report.
    pub(crate) SortId;
}

impl NodeId {
    /// The tree's root: no frame at all.
    pub(crate) const ROOT: Self = Self(0);
}

impl ContextId {
    /// The context of blocks without a stack.
    pub(crate) const NOWHERE: Self = Self(0);
}

impl Id for LocationId {
    const NONE: Self = Self(u32::MAX);

    #[inline]
    fn from_index(index: usize) -> Self {
        Self(saturated(index))
    }

    #[inline]
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Nothing here is counted beyond `u32`: nodes are limited, and the rest is as many as the blocks
/// or locations.
#[inline]
pub(crate) fn saturated(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// A vector that is indexed by ids of one type.
///
/// ```
/// # use heapline_profile::{FrameId, Function, Symbols};
/// fn function(symbols: &Symbols, frame: FrameId) -> &Function {
///     &symbols.functions()[symbols.frames()[frame].function]
/// }
/// ```
///
/// Ids of other types do not compile:
///
/// ```compile_fail,E0308
/// # use heapline_profile::{FrameId, Function, Symbols};
/// fn function(symbols: &Symbols, frame: FrameId) -> &Function {
///     &symbols.functions()[frame]
/// }
/// ```
pub struct IdVec<I, T> {
    values: Vec<T>,
    ids: PhantomData<fn(I) -> I>,
}

impl<I: Id, T> IdVec<I, T> {
    /// As many copies of a value as another table has entries.
    #[must_use]
    pub fn like<U>(other: &IdVec<I, U>, value: T) -> Self
    where
        T: Clone,
    {
        vec![value; other.len()].into()
    }

    /// All ids, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.len()).map(I::from_index)
    }

    /// All entries with their ids, in order.
    #[must_use]
    pub fn enumerate(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        let values = self.values.iter().enumerate();
        values.map(|(index, value)| (I::from_index(index), value))
    }

    /// The entry with an id, if there is one.
    #[inline]
    #[must_use]
    pub fn get(&self, id: I) -> Option<&T> {
        self.values.get(id.index())
    }

    /// Appends an entry; returns its id.
    #[inline]
    pub(crate) fn push(&mut self, value: T) -> I {
        let id = I::from_index(self.len());
        self.values.push(value);
        id
    }

    /// The entry with an id. If there is none, the table grows to have it, filled with a value.
    #[inline]
    pub(crate) fn get_or_fill(&mut self, id: I, value: T) -> &mut T
    where
        T: Clone,
    {
        if self.len() <= id.index() {
            self.values.resize(id.index() + 1, value);
        }
        &mut self.values[id.index()]
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.values.shrink_to_fit();
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        &self.values[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.values[id.index()]
    }
}

impl<I, T> Deref for IdVec<I, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<I, T> DerefMut for IdVec<I, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
}

impl<I, T> From<Vec<T>> for IdVec<I, T> {
    fn from(values: Vec<T>) -> Self {
        Self {
            values,
            ids: PhantomData,
        }
    }
}

impl<I, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(values: A) -> Self {
        Vec::from_iter(values).into()
    }
}

impl<'a, I, T> IntoIterator for &'a IdVec<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.values.iter()
    }
}

impl<I, T: Serialize> Serialize for IdVec<I, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.values.serialize(serializer)
    }
}

impl<'de, I, T: Deserialize<'de>> Deserialize<'de> for IdVec<I, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

impl<I, T> Default for IdVec<I, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<I, T: Clone> Clone for IdVec<I, T> {
    fn clone(&self) -> Self {
        self.values.clone().into()
    }
}

impl<I, T: fmt::Debug> fmt::Debug for IdVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values.fmt(f)
    }
}
