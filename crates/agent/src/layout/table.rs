//! Offsets by version, from the runtime's sources.

use std::ffi::CStr;
use std::fmt;

/// Versions of OCaml 5 with a sampler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    V5_3,
    V5_4,
    V5_5,
}

impl Version {
    /// The latest version whose functions a runtime has. A newer one is taken for the latest that is known.
    pub(super) fn of(has: impl Fn(&CStr) -> bool) -> Self {
        if has(c"caml_memprof_is_sampling") {
            Self::V5_5
        } else if has(c"caml_ml_gc_ramp_up") {
            Self::V5_4
        } else {
            Self::V5_3
        }
    }

    /// The version of a full name, such as `5.4.1`; `None` for one that is not known.
    pub(super) fn named(name: &str) -> Option<Self> {
        let mut parts = name.split('.');
        match (parts.next(), parts.next()) {
            (Some("5"), Some("3")) => Some(Self::V5_3),
            (Some("5"), Some("4")) => Some(Self::V5_4),
            (Some("5"), Some("5")) => Some(Self::V5_5),
            _ => None,
        }
    }

    /// The offsets of a version: `runtime/caml/domain_state.tbl`.
    pub(super) fn offsets(self) -> Offsets {
        match self {
            Self::V5_3 => Offsets {
                action_pending: 7,
                ephe_info: 21,
                final_info: 22,
                external_interrupt: 32,
                id: 36,
                unique_id: 37,
                memprof: 58,
            },
            Self::V5_4 => Offsets {
                action_pending: 7,
                ephe_info: 25,
                final_info: 26,
                external_interrupt: 36,
                id: 40,
                unique_id: 41,
                memprof: 62,
            },
            Self::V5_5 => Offsets {
                memprof: 63,
                ..Self::V5_4.offsets()
            },
        }
    }

    /// The offsets of counters, from the same file. They are verified by [`crate::collector`].
    pub(crate) fn counters(self) -> CounterOffsets {
        let id = self.offsets().id;
        CounterOffsets {
            allocated_words: 16,
            // These two are near `id`, which was found.
            shared_heap: id - 1,
            slice_budget: id + 8,
            minor_words: match self {
                Self::V5_3 => 48,
                Self::V5_4 => 52,
                Self::V5_5 => 53,
            },
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V5_3 => "5.3",
            Self::V5_4 => "5.4",
            Self::V5_5 => "5.5",
        })
    }
}

/// Offsets in `caml_domain_state`, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offsets {
    pub(crate) action_pending: usize,
    pub(crate) ephe_info: usize,
    pub(crate) final_info: usize,
    /// `requested_external_interrupt`
    pub(crate) external_interrupt: usize,
    pub(crate) id: usize,
    pub(crate) unique_id: usize,
    pub(crate) memprof: usize,
}

/// Offsets of counters in `caml_domain_state`, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CounterOffsets {
    pub(crate) allocated_words: usize,
    pub(crate) shared_heap: usize,
    pub(crate) slice_budget: usize,
    /// `stat_minor_words`, with the other words that `caml_collect_alloc_stats_sample` copies after it.
    pub(crate) minor_words: usize,
}
