//! The sentences about the whole program. There is one of each kind wherever the trace tells it.

use Phrase::{AtEnd, Bytes, Percent, Seconds};

use super::facts::Facts;
use super::rules::{with_function, within};
use super::{Found, Phrase};
use crate::estimate::Estimate;
use crate::reports::Figures;
use crate::reports::gc::GcFacts;

/// Functions that are named at the peak.
const NAMED: usize = 3;

/// The least share of memory without own code that is told.
const NOTEWORTHY: f64 = 0.05;

/// A sentence that is always said, and so is not a part of anything.
fn always(
    sentence: Vec<Phrase>,
    report: &'static str,
    parameters: Vec<(&'static str, String)>,
) -> Found {
    Found {
        part: Estimate::exact(1.0),
        whole: 1.0,
        sentence,
        report,
        parameters,
    }
}

/// What is live at the peak, and the functions with most of it.
pub(super) fn peak(facts: &Facts<'_>) -> Option<Found> {
    let whole = facts.at_peak.bytes.value;
    if whole.is_nan() || whole <= 0.0 {
        return None;
    }
    let profile = facts.scope.profile();
    let mut sentence = vec![
        "At the peak, ".into(),
        Seconds(profile.peak(facts.scope.estimator()).time),
        " into a run of ".into(),
        Seconds(profile.duration()),
        ", ".into(),
        Bytes(Figures::of_total(facts.scope, &facts.at_peak).bytes),
        " is live".into(),
    ];
    let named = facts.by_function.iter().take(NAMED);
    for (number, (label, amount)) in named.enumerate() {
        sentence.push(if number == 0 { ": " } else { ", " }.into());
        sentence.push(Phrase::Name(label.name.clone()));
        sentence.push(if number == 0 { " has " } else { " " }.into());
        sentence.push(Percent(100.0 * amount.bytes.value / whole));
    }
    let amounts = facts.by_function.iter().map(|(_, amount)| amount);
    let without = 1.0 - amounts.map(|amount| amount.bytes.value).sum::<f64>() / whole;
    if without >= NOTEWORTHY {
        let start = if facts.by_function.is_empty() {
            ": "
        } else {
            ", "
        };
        let rest = [
            start.into(),
            Percent(100.0 * without),
            " has no own code".into(),
        ];
        sentence.extend(rest);
    }
    let others = facts.by_function.len().saturating_sub(NAMED);
    if others > 0 {
        sentence.extend([
            ", ".into(),
            Phrase::Count(others as u64),
            if others == 1 {
                " other function the rest"
            } else {
                " other functions the rest"
            }
            .into(),
        ]);
    }
    sentence.push(".".into());
    let mut parameters = with_function(facts);
    parameters.push(("live", "peak".to_owned()));
    Some(always(sentence, "hotspots", parameters))
}

/// Whether old memory grows.
pub(super) fn total_growth(facts: &Facts<'_>) -> Option<Found> {
    let leaks = facts.leaks.as_ref()?;
    let age = Seconds(leaks.min_age);
    let end = AtEnd(leaks.subject.duration);
    let retained = Bytes(leaks.retained.bytes);
    let sentence = if leaks.retained.samples == 0 {
        vec![
            "Memory does not grow: none that is older than ".into(),
            age,
            " is live ".into(),
            end,
            ".".into(),
        ]
    } else if leaks.growth.low > 0.0 {
        vec![
            "Memory grows: ".into(),
            retained,
            " is older than ".into(),
            age,
            " ".into(),
            end,
            ", ".into(),
            Bytes(leaks.growth),
            " more than half-way through the run.".into(),
        ]
    } else {
        let than_before = if leaks.growth.high < 0.0 {
            ", less than half-way through the run."
        } else {
            ", within the error as much as half-way through the run."
        };
        vec![
            "Memory does not grow: ".into(),
            retained,
            " is older than ".into(),
            age,
            " ".into(),
            end,
            than_before.into(),
        ]
    };
    Some(always(sentence, "leaks", with_function(facts)))
}

/// Seconds of a pause that is long.
const LONG_PAUSE: f64 = 0.1;

/// Seconds in the collector that are worth a word, whatever share of the time they are.
const NOTEWORTHY_TIME: f64 = 0.1;

/// The time in the garbage collector, and its longest pause. A long pause counts as much as half of the time.
pub(super) fn collector(facts: &Facts<'_>) -> Option<Found> {
    let profile = facts.scope.profile();
    let gc = GcFacts::of(profile).filter(|_| facts.scope.selection().is_all(profile))?;
    let (start, longest) = gc.longest?;
    if gc.collector.seconds < NOTEWORTHY_TIME {
        return None;
    }
    let share = gc.collector.percent / 100.0;
    let of_pause = if longest >= LONG_PAUSE { 0.5 } else { 0.0 };
    let sentence = vec![
        "The garbage collector takes ".into(),
        Percent(gc.collector.percent),
        " of the time; its longest pause is ".into(),
        Seconds(longest),
        " at ".into(),
        Seconds(start),
        ".".into(),
    ];
    Some(Found {
        part: Estimate::exact(share.max(of_pause)),
        whole: 1.0,
        sentence,
        report: "gc",
        parameters: Vec::new(),
    })
}

/// What is freed soon after its allocation.
pub(super) fn total_garbage(facts: &Facts<'_>) -> Option<Found> {
    let report = facts.temporary.as_ref()?;
    let part = report.total.temporary.bytes;
    let whole = report.total.allocated.bytes;
    if whole.value.is_nan() || whole.value <= 0.0 {
        return None;
    }
    let sentence = vec![
        Bytes(part),
        " of ".into(),
        Bytes(whole),
        " allocated (".into(),
        Percent(100.0 * part.value / whole.value),
        ") is freed within ".into(),
        Seconds(report.within),
        ".".into(),
    ];
    Some(always(sentence, "temporary", within(facts, report.within)))
}
