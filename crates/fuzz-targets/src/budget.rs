//! Budgets for traces: those that are understood are understood again, and have a verdict.

use std::io::Cursor;
use std::sync::LazyLock;

use heapline_formats::{Options, Reader};
use heapline_profile::reports::Budget;
use heapline_profile::{Estimator, Profile, StoreOptions};

static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
    let path = heapline_testkit::fixtures::folder().join("odd/domains.ctf");
    let trace = std::fs::read(path).expect("the fixture is there");
    let mut reader = Reader::new(Cursor::new(trace), Options::default()).expect("it is a trace");
    Profile::load(&mut reader, StoreOptions::default()).expect("it is whole")
});

/// Runs the target on an input; returns true if all budgets in it are understood.
#[must_use]
pub fn run(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let Ok(budgets) = Budget::parse_file(&text) else {
        return false;
    };
    for budget in &budgets {
        assert_eq!(Budget::parse(budget.text()).as_ref(), Ok(budget));
        let verdict = budget.check(&PROFILE, Estimator::default());
        assert!(verdict.value.low <= verdict.value.high);
    }
    !budgets.is_empty()
}
