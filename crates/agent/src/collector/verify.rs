//! Verifies that counters are what they are taken for, before any of them is recorded.
//!
//! - When a recording begins, they are compared with what the runtime itself says to the program. Early in a program most
//!   are 0, which proves little.
//! - A minor collection changes them in ways that are known. The first one that promotes something decides.
//! - A program that ends before that is asked again at its end.
//!
//! Until it is decided, the work of the collector is held back.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use super::counters::{Counted, Unknown};

/// What is known of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Undecided,
    Verified,
    Refused,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// They agree, and are such that others would not.
    Agrees,
    /// They agree, and others might.
    Undecided,
    /// This one does not agree.
    Differs(&'static str),
}

/// A verdict of the counters of this process, for all domains.
pub(super) struct Verification {
    state: AtomicU8,
    reason: OnceLock<Unknown>,
}

const VERIFIED: u8 = 1;
const REFUSED: u8 = 2;

impl Verification {
    pub(super) const fn new() -> Self {
        Self {
            state: AtomicU8::new(0),
            reason: OnceLock::new(),
        }
    }

    #[inline]
    pub(super) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            VERIFIED => State::Verified,
            REFUSED => State::Refused,
            _ => State::Undecided,
        }
    }

    pub(super) fn is_undecided(&self) -> bool {
        self.state() == State::Undecided
    }

    /// From now on no counter is recorded.
    pub(super) fn refuse(&self, reason: Unknown) {
        let _ = self.reason.set(reason);
        self.state.store(REFUSED, Ordering::Release);
    }

    /// Takes note of a verdict. One that differs counts more than any that agree.
    pub(super) fn decide(&self, verdict: Verdict) {
        match verdict {
            Verdict::Agrees => {
                let _ =
                    self.state
                        .compare_exchange(0, VERIFIED, Ordering::AcqRel, Ordering::Relaxed);
            }
            Verdict::Undecided => {}
            Verdict::Differs(counter) => self.refuse(Unknown::Differs(counter)),
        }
    }

    pub(super) fn reason(&self) -> Option<Unknown> {
        self.reason.get().copied()
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("counters of the collector: ")?;
        match self.state() {
            State::Verified => {
                f.write_str("minor, promoted and major words, heap, collections: verified")
            }
            State::Undecided => {
                f.write_str("to be verified at the first minor collection of a recording")
            }
            State::Refused => match self.reason() {
                Some(Unknown::Missing(name)) => write!(
                    f,
                    "not recorded: the runtime has no {}",
                    name.to_string_lossy()
                ),
                Some(Unknown::Differs(counter)) => write!(
                    f,
                    "not recorded: {counter} is not where heapline expects it in this runtime"
                ),
                Some(Unknown::Layout) | None => {
                    f.write_str("not recorded: the layout of the domain state is not known")
                }
            },
        }
    }
}

/// The runtime's own answers: the first are `Gc.counters`, and OCaml 4 has more, by the counters' names.
pub(super) struct Answer {
    pub(super) words: [f64; 3],
    pub(super) others: Vec<(&'static str, u64, u64)>,
}

/// Compares counters with what the runtime said at that moment.
pub(super) fn compare(counted: &Counted, answer: &Answer) -> Verdict {
    let [minor, promoted, major] = answer.words;
    let words = [
        ("minor words", counted.minor_words, minor),
        ("promoted words", counted.promoted_words, promoted),
        ("major words", counted.major_words(), major),
    ];
    for (name, ours, theirs) in words {
        #[expect(
            clippy::cast_precision_loss,
            reason = "both lose the same, and there are fewer words"
        )]
        let ours = ours as f64;
        if ours.to_bits() != theirs.to_bits() {
            return Verdict::Differs(name);
        }
    }
    for (name, ours, theirs) in &answer.others {
        if ours != theirs {
            return Verdict::Differs(name);
        }
    }
    if !counted.has_plausible_heap {
        return Verdict::Differs("heap words");
    }
    if words.iter().all(|(_, ours, _)| *ours > 0) {
        Verdict::Agrees
    } else {
        Verdict::Undecided
    }
}

/// Compares the counters at the beginning and the end of a minor collection: it empties the minor heap, and what it promotes is
/// allocated on the major heap.
pub(super) fn across_minor(before: &Counted, after: &Counted) -> Verdict {
    let grown = |of: fn(&Counted) -> u64| of(after).checked_sub(of(before));
    if before.minor_words != after.minor_words || after.emptied_words != after.minor_words {
        return Verdict::Differs("minor words");
    }
    let promoted = grown(|counted| counted.promoted_words);
    if promoted.is_none() || promoted != grown(|counted| counted.allocated_words) {
        return Verdict::Differs("promoted words");
    }
    if before.sliced_words != after.sliced_words {
        return Verdict::Differs("major words");
    }
    if grown(|counted| counted.minor_collections).is_none_or(|grown| grown > 1) {
        return Verdict::Differs("minor collections");
    }
    if !before.has_plausible_heap || !after.has_plausible_heap {
        return Verdict::Differs("heap words");
    }
    if promoted > Some(0) && grown(|counted| counted.emptied_words) > Some(0) {
        Verdict::Agrees
    } else {
        Verdict::Undecided
    }
}
