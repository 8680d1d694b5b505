//! Damage of an input: where it is, and what is lost.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// All that was found wrong while reading.
///
/// The first flaws are listed one by one; the totals count all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Damage {
    /// The first flaws, in order.
    pub flaws: Vec<Flaw>,
    /// Flaws found, including those too many to be listed.
    pub count: u64,
    /// Bytes from which nothing could be recovered.
    pub lost_bytes: u64,
    /// Allocations that are known to be missing.
    pub lost_allocations: u64,
    /// Allocations whose stack may have wrong frames because it builds on a part that was lost.
    pub uncertain_stacks: u64,
    /// Locations whose names may be wrong because they build on a part that was lost.
    pub uncertain_names: u64,
}

impl Damage {
    /// Returns true if nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns true if the input ends in the middle of something.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.flaws.iter().any(|flaw| flaw.kind == Flaw::TRUNCATED)
    }
}

/// One thing that is wrong with an input.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Flaw {
    /// Where, in bytes from the start of the decompressed input.
    pub offset: u64,
    /// The kind of damage, as a word for programs, such as `truncated`.
    pub kind: String,
    /// A description for people.
    #[serde(skip)]
    pub message: String,
    /// Numbers and reasons that belong to the kind.
    #[serde(flatten)]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub details: BTreeMap<String, Value>,
}

impl Flaw {
    /// The kind of an input that ends in the middle of something.
    pub const TRUNCATED: &str = "truncated";
    /// The kind of a recording that ended before its program.
    pub const ENDED_EARLY: &str = "ended-early";
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == Self::ENDED_EARLY {
            // It concerns the whole input.
            return f.write_str(&self.message);
        }
        write!(f, "at byte {}: {}", self.offset, self.message)
    }
}
