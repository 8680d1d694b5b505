//! Counters of simulated runtimes.

use super::counters::{Counted, SliceKind, Unknown, phases};
use super::verify::{Answer, State, Verdict, Verification, across_minor, compare};
use crate::layout::{Version, single::Statistics};
use heapline_recorder::{CollectorCounters, Phase};

/// Counters in the middle of a program.
const COUNTED: Counted = Counted {
    minor_words: 1_000_000,
    emptied_words: 786_432,
    promoted_words: 50_000,
    sliced_words: 60_000,
    allocated_words: 700,
    heap_words: 126_976,
    free_words: 30_000,
    minor_collections: 3,
    major_collections: 1,
    compactions: 0,
    forced_major_collections: 0,
    has_plausible_heap: true,
};

/// The same after a minor collection that promotes 4,000 words.
const AFTER: Counted = Counted {
    emptied_words: 1_000_000,
    promoted_words: 54_000,
    allocated_words: 4700,
    minor_collections: 4,
    ..COUNTED
};

fn answer() -> Answer {
    Answer {
        words: [1_000_000.0, 50_000.0, 60_700.0],
        others: vec![
            ("minor collections", 3, 3),
            ("heap words", 126_976, 126_976),
        ],
    }
}

#[test]
fn counters_are_those_of_the_program() {
    assert_eq!(
        COUNTED.counters(),
        CollectorCounters {
            minor_words: 1_000_000,
            promoted_words: 50_000,
            major_words: 60_700,
            heap_words: 126_976,
            free_words: 30_000,
            minor_collections: 3,
            major_collections: 1,
            compactions: 0,
            forced_major_collections: 0,
        }
    );
}

#[test]
fn the_runtimes_answer_decides() {
    assert_eq!(compare(&COUNTED, &answer()), Verdict::Agrees);
    let names = ["minor words", "promoted words", "major words"];
    for (n, name) in names.into_iter().enumerate() {
        for wrong in [0.0, 1e300, f64::NAN, answer().words[n] + 1.0] {
            let mut answer = answer();
            answer.words[n] = wrong;
            assert_eq!(compare(&COUNTED, &answer), Verdict::Differs(name));
        }
    }
    let mut answer = answer();
    answer.others[1].2 += 1;
    assert_eq!(compare(&COUNTED, &answer), Verdict::Differs("heap words"));
}

#[test]
fn zeros_prove_nothing() {
    let early = Counted {
        promoted_words: 0,
        ..COUNTED
    };
    let mut said = answer();
    said.words[1] = 0.0;
    assert_eq!(compare(&early, &said), Verdict::Undecided);
    // A collection that promotes nothing.
    let after = Counted {
        promoted_words: COUNTED.promoted_words,
        allocated_words: COUNTED.allocated_words,
        ..AFTER
    };
    assert_eq!(across_minor(&COUNTED, &after), Verdict::Undecided);
    // One of an empty minor heap.
    let mut before = COUNTED;
    before.emptied_words = before.minor_words;
    assert_eq!(across_minor(&before, &AFTER), Verdict::Undecided);
}

#[test]
fn a_minor_collection_decides() {
    assert_eq!(across_minor(&COUNTED, &AFTER), Verdict::Agrees);
    // OCaml 5 has counted it before.
    let after = Counted {
        minor_collections: 3,
        ..AFTER
    };
    assert_eq!(across_minor(&COUNTED, &after), Verdict::Agrees);
    let wrong: [(Counted, _); 9] = [
        (
            Counted {
                minor_words: 1_000_001,
                ..AFTER
            },
            "minor words",
        ),
        (
            Counted {
                emptied_words: 786_432,
                ..AFTER
            },
            "minor words",
        ),
        (
            Counted {
                promoted_words: 54_001,
                ..AFTER
            },
            "promoted words",
        ),
        (
            Counted {
                promoted_words: 49_999,
                allocated_words: 699,
                ..AFTER
            },
            "promoted words",
        ),
        (
            Counted {
                allocated_words: 700,
                ..AFTER
            },
            "promoted words",
        ),
        (
            Counted {
                sliced_words: 60_001,
                ..AFTER
            },
            "major words",
        ),
        (
            Counted {
                minor_collections: 2,
                ..AFTER
            },
            "minor collections",
        ),
        (
            Counted {
                minor_collections: 5,
                ..AFTER
            },
            "minor collections",
        ),
        (
            Counted {
                has_plausible_heap: false,
                ..AFTER
            },
            "heap words",
        ),
    ];
    for (after, counter) in wrong {
        assert_eq!(
            across_minor(&COUNTED, &after),
            Verdict::Differs(counter),
            "{after:?}"
        );
    }
}

#[test]
fn one_that_differs_counts_more_than_those_that_agree() {
    let verification = Verification::new();
    verification.decide(Verdict::Undecided);
    assert_eq!(verification.state(), State::Undecided);
    assert_eq!(
        verification.to_string(),
        "counters of the collector: to be verified at the first minor collection of a recording"
    );
    verification.decide(Verdict::Agrees);
    assert_eq!(verification.state(), State::Verified);
    verification.decide(Verdict::Differs("heap words"));
    assert_eq!(verification.state(), State::Refused);
    verification.decide(Verdict::Agrees);
    assert_eq!(verification.state(), State::Refused);
    assert_eq!(
        verification.to_string(),
        "counters of the collector: not recorded: heap words is not where heapline expects it in this runtime"
    );
    let missing = Verification::new();
    missing.refuse(Unknown::Missing(c"caml_fl_cur_wsz"));
    assert_eq!(
        missing.to_string(),
        "counters of the collector: not recorded: the runtime has no caml_fl_cur_wsz"
    );
}

#[test]
fn each_version_has_its_layout_and_phases() {
    let first = Statistics::of(|name| name == c"caml_memprof_suspended");
    assert_eq!((first.minor_words, first.has_forced), (36, false));
    let later = Statistics::of(|_| false);
    assert_eq!((later.minor_words, later.has_forced), (37, true));
    let offsets = |version: Version| {
        let offsets = version.counters();
        [
            offsets.shared_heap,
            offsets.slice_budget,
            offsets.minor_words,
        ]
    };
    assert_eq!(offsets(Version::V5_3), [35, 44, 48]);
    assert_eq!(offsets(Version::V5_4), [39, 48, 52]);
    assert_eq!(offsets(Version::V5_5), [39, 48, 53]);
    assert_eq!(phases(None)[3], Phase::Idle);
    assert_eq!(phases(Some(Version::V5_3))[0], Phase::Mark);
    // 5.5 sweeps for a while before it marks.
    assert_eq!(
        phases(Some(Version::V5_5))[..2],
        [Phase::Sweep, Phase::Mark]
    );
}

#[test]
fn slices_are_told_apart_by_their_budgets() {
    let of = SliceKind::of_budget;
    for version in [Version::V5_3, Version::V5_4, Version::V5_5] {
        for ordinary in [0, 1, 511, 513, 65_536, u64::MAX] {
            assert_eq!(of(ordinary, version), SliceKind::Ordinary);
        }
        assert_eq!(of(512, version), SliceKind::Opportunistic);
        assert_eq!(of(10_000_000, version), SliceKind::Forced);
    }
    // Only 5.5 marks roots in such slices.
    assert_eq!(of(1000, Version::V5_4), SliceKind::Ordinary);
    assert_eq!(of(1000, Version::V5_5), SliceKind::Opportunistic);
}
