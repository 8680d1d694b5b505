//! The words of the query language. The parser looks fields up here, and offers what is here as
//! continuations of a query that is being typed.

use heapline_model::Capabilities;

use super::amount::{self, Lifetime, Size};
use super::ast::{Heap, Part};

/// A word of the language, or a value, as it is suggested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: &'static str,
    pub(super) hint: &'static str,
    pub(super) need: Need,
}

const fn word(text: &'static str, hint: &'static str) -> Word {
    Word {
        text,
        hint,
        need: Need::Nothing,
    }
}

impl Word {
    const fn needs(self, need: Need) -> Self {
        Self { need, ..self }
    }
}

/// The property that a source must tell for a condition to be of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    Lifetimes,
    Promotions,
    Sizes,
    Lanes,
}

impl Need {
    pub(super) fn is_met(self, tells: Capabilities) -> bool {
        match self {
            Self::Nothing => true,
            Self::Lifetimes => tells.lifetimes,
            Self::Promotions => tells.promotions,
            Self::Sizes => tells.sizes,
            Self::Lanes => tells.lanes,
        }
    }
}

/// The first word of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Live,
    Allocated,
    Collected,
    Promoted,
    Inside,
    Size,
    Lifetime,
    Heap,
    Site(Part),
    Own,
    Line,
    Address,
    Domain,
    Samples,
}

/// The name of a field, and how conditions on it begin, in the order in which they are suggested. A
/// name that is only another one for the same field is not suggested.
type FieldName = (&'static str, Field, &'static [Word]);

pub(super) const FIELDS: &[FieldName] = &[
    (
        "live",
        Field::Live,
        &[
            word("live at", "alive at a moment"),
            word("live in", "live at some time in a window").needs(Need::Lifetimes),
        ],
    ),
    ("alive", Field::Live, &[]),
    (
        "allocated",
        Field::Allocated,
        &[word("allocated in", "allocated in a window")],
    ),
    (
        "collected",
        Field::Collected,
        &[word("collected", "collected at all, or in a window").needs(Need::Lifetimes)],
    ),
    (
        "promoted",
        Field::Promoted,
        &[word("promoted", "moved to the major heap").needs(Need::Promotions)],
    ),
    (
        "inside",
        Field::Inside,
        &[
            word("inside", "a function anywhere in the stack"),
            word("inside module", "a module anywhere in the stack"),
            word("inside file", "a file anywhere in the stack"),
            word("inside crate", "a crate anywhere in the stack"),
        ],
    ),
    (
        "size",
        Field::Size,
        &[word("size", "without the header: 64KiB, 16w").needs(Need::Sizes)],
    ),
    (
        "lifetime",
        Field::Lifetime,
        &[word("lifetime", "in time, or in bytes allocated meanwhile").needs(Need::Lifetimes)],
    ),
    (
        "heap",
        Field::Heap,
        &[word("heap", "minor, major, external or native").needs(Need::Promotions)],
    ),
    (
        "function",
        Field::Site(Part::Function),
        &[word("function", "that allocates")],
    ),
    (
        "site",
        Field::Site(Part::Function),
        &[word("site", "the function that allocates")],
    ),
    (
        "module",
        Field::Site(Part::Module),
        &[word("module", "of the function that allocates")],
    ),
    (
        "crate",
        Field::Site(Part::Crate),
        &[word("crate", "of the function that allocates")],
    ),
    (
        "file",
        Field::Site(Part::File),
        &[word("file", "of the allocation")],
    ),
    (
        "own",
        Field::Own,
        &[word("own", "the same, with libraries left out of stacks")],
    ),
    ("line", Field::Line, &[word("line", "of the allocation")]),
    (
        "place",
        Field::Site(Part::Place),
        &[word("place", "of the allocation: \"list.ml:92:32-39\"")],
    ),
    (
        "address",
        Field::Address,
        &[word("address", "of the code that allocates: 0x4a3f0")],
    ),
    (
        "domain",
        Field::Domain,
        &[word("domain", "that allocated").needs(Need::Lanes)],
    ),
    (
        "samples",
        Field::Samples,
        &[word("samples", "number of samples in the block").needs(Need::Sizes)],
    ),
];

pub(super) const NOT: &[Word] = &[word("not", "the opposite")];
pub(super) const JOINTS: &[Word] = &[word("and", "both"), word("or", "one of them")];

/// Words after `live`.
pub(super) const LIVE: &[Word] = &[
    word("at", "a moment"),
    word("in", "a window").needs(Need::Lifetimes),
];

/// Words after an event, such as `allocated`.
pub(super) const WHEN: &[Word] = &[
    word("in", "a window"),
    word(">=", "at or after"),
    word("<=", "at or before"),
    word(">", "after"),
    word("<", "before"),
];

/// Words after `inside`; without one of them, the name is that of a function.
pub(super) const INSIDE: &[Word] = &[
    word("module", "a module anywhere in the stack"),
    word("file", "a file anywhere in the stack"),
    word("crate", "a crate anywhere in the stack"),
    word("place", "a place in the source anywhere in the stack"),
];
pub(super) const PARTS: [(&str, Part); 5] = [
    ("function", Part::Function),
    ("file", Part::File),
    ("module", Part::Module),
    ("crate", Part::Crate),
    ("place", Part::Place),
];

/// Words after `own`.
pub(super) const OWN: [(Word, Part); 5] = [
    (word("function", "outside of libraries"), Part::Function),
    (word("module", "outside of libraries"), Part::Module),
    (word("crate", "outside of libraries"), Part::Crate),
    (word("file", "outside of libraries"), Part::File),
    (word("place", "outside of libraries"), Part::Place),
];

/// Values of a place and of an address.
pub(super) const PLACES: &[Word] = &[word("\"list.ml:92:*\"", "a place in the source")];
pub(super) const ADDRESSES: &[Word] = &[word("0x4a3f0", "a code address")];

/// Words after the name of the function that allocates.
pub(super) const AFTER_SITE: &[Word] = &[
    word("called by", "its direct caller"),
    word("hiding", "functions that are left out of stacks"),
];
/// Words after a name outside of libraries.
pub(super) const AFTER_OWN: &[Word] = &[word(
    "mine",
    "functions that are not of libraries, as by --mine",
)];
pub(super) const AFTER_CALLED: &[Word] = &[word("by", "the direct caller")];

pub(super) const COMPARISONS: &[Word] = &[
    word(">=", "at least"),
    word("<=", "at most"),
    word(">", "more than"),
    word("<", "less than"),
    word("=", "exactly"),
    word("in", "between two values: 1..2"),
];
pub(super) const EQUALITIES: &[Word] = &[word("=", "is"), word("!=", "is not")];

pub(super) const HEAPS: [(Word, Heap); 4] = [
    (
        word("major", "promoted blocks count from then on").needs(Need::Promotions),
        Heap::Major,
    ),
    (
        word("minor", "until it is promoted or dies").needs(Need::Promotions),
        Heap::Minor,
    ),
    (word("external", "outside of OCaml's heaps"), Heap::External),
    (word("native", "of a Rust program"), Heap::Native),
];

pub(super) const TIMES: &[Word] = &[
    word("peak", "when the program used most memory"),
    word("end", "of the trace"),
    word("start", "of the trace"),
    word("50%", "of the run"),
];
pub(super) const WINDOWS: &[Word] = &[
    word("..50%", "the first half"),
    word("50%..", "the second half"),
    word("90%..", "the last tenth"),
    word("start..peak", "until the peak"),
    word("peak..end", "after the peak"),
];

/// The values of a field that is compared.
pub(super) struct Values<T: 'static> {
    /// A description for errors.
    pub(super) expected: &'static str,
    pub(super) read: fn(&str) -> Option<T>,
    /// Returns true if the two can be the bounds of a range.
    pub(super) is_range: fn(&T, &T) -> bool,
    pub(super) examples: &'static [Word],
    pub(super) ranges: &'static [Word],
}

pub(super) const SIZES: Values<Size> = Values {
    expected: "a size: 100, 64KiB, 1.5MiB or 16w (words)",
    read: amount::size,
    is_range: |_, _| true,
    examples: &[
        word("64KiB", "bytes, in powers of 1024"),
        word("1KiB", "bytes, in powers of 1024"),
        word("16w", "words"),
    ],
    ranges: &[word("2w..16w", "words"), word("1KiB..64KiB", "bytes")],
};

pub(super) const LIFETIMES: Values<Lifetime> = Values {
    expected: "a time (2s, 10ms) or an amount allocated meanwhile (1MiB, 500kw)",
    read: amount::lifetime,
    is_range: |low, high| low.is_time() == high.is_time(),
    examples: &[
        word("1s", "time"),
        word("10ms", "time"),
        word("1MiB", "allocated meanwhile"),
    ],
    ranges: &[word("1ms..10ms", "time"), word("1s..", "from a second on")],
};

pub(super) const DOMAINS: Values<u64> = numbers(
    &[word("0", "the number of a domain")],
    &[word("1..", "all but the first domain")],
);
pub(super) const SAMPLES: Values<u64> = numbers(
    &[word("2", "samples")],
    &[word("2..", "more than one sample")],
);
pub(super) const LINES: Values<u64> =
    numbers(&[word("1", "of the source")], &[word("1..100", "lines")]);

const fn numbers(examples: &'static [Word], ranges: &'static [Word]) -> Values<u64> {
    Values {
        expected: "a number",
        read: whole,
        is_range: |_, _| true,
        examples,
        ranges,
    }
}

fn whole(text: &str) -> Option<u64> {
    text.replace('_', "").parse().ok()
}
