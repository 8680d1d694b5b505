//! The syntax tree of a query.

use super::amount::{Lifetime, Size, TimePoint};
use super::pattern::Pattern;
use super::token::Comparison;
use crate::groups::GroupBy;

/// A condition on blocks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    All(Vec<Expr>),
    Any(Vec<Expr>),
    Not(Box<Expr>),
    Clause(Clause),
}

/// A single condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Clause {
    LiveAt(TimePoint),
    /// At any moment of a time.
    LiveIn(Span),
    Allocated(When),
    Collected(When),
    Promoted(When),
    Size(Test<Size>),
    Lifetime(Test<Lifetime>),
    Samples(Test<u64>),
    Domain(Test<u64>),
    Heap(Heap),
    /// Any frame.
    Inside(Part, Pattern),
    /// The innermost frame.
    Site(Part, Pattern),
    /// The innermost frames, as a report with some of them left out has them.
    Chain(Chain),
    /// The line of the innermost frame.
    Line(Test<u64>),
    /// The code address of the allocation.
    Address(u64),
}

/// A condition on the innermost frames of a stack.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chain {
    pub(crate) part: Part,
    /// The frame that allocates, its caller, and so on. Frames of the same name that follow each other are one.
    pub(crate) names: Vec<Pattern>,
    /// Functions that are left out.
    pub(crate) hidden: Vec<Pattern>,
    /// Leaves the functions of libraries out: all but those that match a pattern, if there are patterns.
    pub(crate) own: Option<Vec<Pattern>>,
}

/// From a time up to another one, which is not part of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) from: TimePoint,
    pub(crate) to: TimePoint,
}

/// A condition on the time of an event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum When {
    Ever,
    In(Span),
    At(Comparison, TimePoint),
}

/// A condition on a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Test<T> {
    Is(Comparison, T),
    /// At least the first, less than the second.
    In(Option<T>, Option<T>),
}

impl<T: Copy> Test<T> {
    pub(crate) fn map<U>(self, f: impl Fn(T) -> U) -> Test<U> {
        match self {
            Self::Is(comparison, value) => Test::Is(comparison, f(value)),
            Self::In(low, high) => Test::In(low.map(&f), high.map(&f)),
        }
    }
}

impl<T: PartialOrd> Test<T> {
    pub(crate) fn holds(&self, value: &T) -> bool {
        match self {
            Self::Is(comparison, other) => comparison.holds(value, other),
            Self::In(low, high) => {
                low.as_ref().is_none_or(|low| value >= low)
                    && high.as_ref().is_none_or(|high| value < high)
            }
        }
    }
}

/// The heap of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heap {
    Minor,
    Major,
    External,
    Native,
}

/// The part of a frame that a pattern is matched against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Function,
    File,
    Module,
    Crate,
    /// The function's place in the source, such as `list.ml:92:32-39`.
    Place,
}

impl Part {
    /// The grouping by this part.
    pub(crate) fn group(self) -> GroupBy {
        match self {
            Self::Function => GroupBy::Function,
            Self::File => GroupBy::File,
            Self::Module => GroupBy::Module,
            Self::Crate => GroupBy::Crate,
            Self::Place => GroupBy::Site,
        }
    }
}

impl Expr {
    /// Returns true if a clause is about heaps.
    pub(crate) fn mentions_heap(&self) -> bool {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::mentions_heap),
            Self::Not(part) => part.mentions_heap(),
            Self::Clause(clause) => matches!(clause, Clause::Heap(_)),
        }
    }
}
