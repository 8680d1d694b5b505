//! The rules.

use heapline_model::Scheme;

use super::facts::{Facts, is_function};
use super::overall::{collector, peak, total_garbage, total_growth};
use super::{Found, Phrase, Rule, TraceFindingKind};
use crate::amount::Amount;
use crate::estimate::Estimate;
use crate::query::Pattern;
use crate::reports::leaks::Leak;
use crate::trend::TrendState;

use Phrase::{AtEnd, Bytes, BytesPerSecond, Count, Name, Percent, Rate, Seconds};

/// Samples below which an amount cannot be told from noise.
const FEWEST_SAMPLES: f64 = 4.0;

/// The share of the peak from which a function is named.
pub(super) const LEAST_OF_PEAK: f64 = 0.15;

/// The share of the peak from which a single block is named.
pub(super) const LEAST_OF_BLOCK: f64 = 0.1;

/// All rules. The order counts for equal ranks only.
pub(super) const RULES: &[Rule] = &[
    Rule {
        kind: TraceFindingKind::Damage,
        least: 0.0,
        weight: 5.0,
        find: damage,
    },
    Rule {
        kind: TraceFindingKind::Peak,
        least: 0.0,
        weight: 4.0,
        find: peak,
    },
    Rule {
        kind: TraceFindingKind::TotalGrowth,
        least: 0.0,
        weight: 3.0,
        find: total_growth,
    },
    Rule {
        kind: TraceFindingKind::TotalGarbage,
        least: 0.0,
        weight: 2.0,
        find: total_garbage,
    },
    Rule {
        kind: TraceFindingKind::Collector,
        least: 0.2,
        weight: 1.5,
        find: collector,
    },
    Rule {
        kind: TraceFindingKind::Growth,
        least: 0.05,
        weight: 1.2,
        find: growth,
    },
    Rule {
        kind: TraceFindingKind::PeakHolder,
        least: LEAST_OF_PEAK,
        weight: 1.0,
        find: peak_holder,
    },
    Rule {
        kind: TraceFindingKind::LargeBlock,
        least: LEAST_OF_BLOCK,
        weight: 0.9,
        find: large_block,
    },
    Rule {
        kind: TraceFindingKind::PeakCall,
        least: 0.5,
        weight: 0.8,
        find: peak_call,
    },
    Rule {
        kind: TraceFindingKind::PromotedGarbage,
        least: 0.25,
        weight: 0.6,
        find: promoted_garbage,
    },
    Rule {
        kind: TraceFindingKind::Garbage,
        least: 0.2,
        weight: 0.5,
        find: garbage,
    },
    Rule {
        kind: TraceFindingKind::SizeClass,
        least: 0.5,
        weight: 0.3,
        find: size_class,
    },
    Rule {
        kind: TraceFindingKind::Resolution,
        least: 0.02,
        weight: 0.2,
        find: resolution,
    },
];

fn damage(facts: &Facts<'_>) -> Option<Found> {
    let damage = facts.scope.profile().damage();
    if damage.count == 0 {
        return None;
    }
    let mut sentence = vec!["The trace is damaged in ".into(), Count(damage.count)];
    sentence.push(match damage.count {
        1 => " place".into(),
        _ => " places".into(),
    });
    if damage.lost_allocations > 0 {
        sentence.extend([", and at least ".into(), Count(damage.lost_allocations)]);
        sentence.push(" sampled blocks are lost".into());
    }
    sentence.push(": figures may be too low.".into());
    Some(Found {
        part: Estimate::exact(1.0),
        whole: 1.0,
        sentence,
        report: "info",
        parameters: Vec::new(),
    })
}

fn growth(facts: &Facts<'_>) -> Option<Found> {
    let leaks = facts.leaks.as_ref()?;
    // Of memory that goes up and down, it is chance how much there is at the end.
    let is_even = |row: &&Leak| row.trend.state != TrendState::Uneven && is_function(&row.label);
    let row = leaks.rows.iter().find(is_even)?;
    let is_growing = row.trend.state == TrendState::Growing;
    let mut sentence = vec![Name(row.label.name.clone())];
    match row.trend.rate.map(BytesPerSecond) {
        Some(rate) if is_growing => sentence.extend([" still grows, by ".into(), rate]),
        Some(rate) => sentence.extend([" grew by ".into(), rate]),
        None => sentence.push(" grows".into()),
    }
    if let Some(since) = row.trend.since {
        sentence.push(if is_growing { " since " } else { " until " }.into());
        sentence.push(Seconds(since.time));
    }
    sentence.extend([
        ". Of its memory that is older than ".into(),
        Seconds(leaks.min_age),
        ", there is ".into(),
        Bytes(row.growth),
        " more ".into(),
        AtEnd(leaks.subject.duration),
        " than half-way through the run.".into(),
    ]);
    Some(Found {
        part: row.growth,
        whole: leaks.retained.bytes.value,
        sentence,
        report: "leaks",
        parameters: with_function(facts),
    })
}

fn peak_holder(facts: &Facts<'_>) -> Option<Found> {
    let report = facts.peak.as_ref()?;
    let row = report.rows.first()?;
    Some(Found {
        part: row.live.bytes,
        whole: report.peak.live.bytes.value,
        sentence: vec![
            Name(row.label.name.clone()),
            " holds ".into(),
            Bytes(row.live.bytes),
            " of the peak (".into(),
            Percent(row.percent),
            "). Without it, the peak is ".into(),
            Bytes(row.without.peak.live.bytes),
            " at ".into(),
            Seconds(row.without.peak.time),
            ".".into(),
        ],
        report: "peak",
        parameters: facts.look.clone(),
    })
}

/// The most specific call under which half of the peak was allocated, unless nearly all was.
fn peak_call(facts: &Facts<'_>) -> Option<Found> {
    const ALL: f64 = 0.8;
    let whole = facts.at_peak.bytes.value;
    let holder = facts.peak.as_ref().and_then(|report| report.rows.first());
    let is_holder = |name: &str, amount: &Amount| {
        holder.is_some_and(|row| {
            row.label.name == name && amount.samples <= row.live.samples + row.live.samples / 10
        })
    };
    let (label, amount) = facts
        .under_calls
        .iter()
        .rev()
        .find(|(_, amount)| amount.bytes.value >= 0.5 * whole)?;
    if amount.bytes.value > ALL * whole || is_holder(&label.name, amount) {
        return None;
    }
    let mut parameters = facts.look.clone();
    parameters.push(("own-code", "true".to_owned()));
    parameters.push(("live", "peak".to_owned()));
    parameters.push(("focus", Pattern::literal(&label.name).to_string()));
    Some(Found {
        part: amount.bytes.estimate(),
        whole,
        sentence: vec![
            Percent(100.0 * amount.bytes.value / whole),
            " of what is live at the peak, ".into(),
            Bytes(amount.bytes.estimate()),
            ", was allocated under ".into(),
            Name(label.name.clone()),
            ".".into(),
        ],
        report: "tree",
        parameters,
    })
}

fn large_block(facts: &Facts<'_>) -> Option<Found> {
    let block = facts.largest_block.as_ref()?;
    // A sample of a smaller block stands for others, too.
    if block.blocks.value > 1.05 || block.sampled_blocks > 1 {
        return None;
    }
    let whole = facts.at_peak.bytes.value;
    let site = block.stack.first();
    Some(Found {
        part: block.bytes,
        whole,
        sentence: vec![
            "A single block of ".into(),
            Bytes(Estimate::exact(block.size as f64)),
            " is ".into(),
            Percent(100.0 * block.bytes.value / whole),
            " of what is live at the peak. It was allocated by ".into(),
            Name(site.map_or_else(|| "(unknown)".to_owned(), |site| site.name.clone())),
            ".".into(),
        ],
        report: "blocks",
        parameters: vec![("live", "peak".to_owned())],
    })
}

fn promoted_garbage(facts: &Facts<'_>) -> Option<Found> {
    /// Less than this share of all memory costs nothing.
    const LEAST: f64 = 0.01;
    let report = facts.temporary.as_ref()?;
    let part = report.total.promoted.bytes;
    let whole = facts.promoted.bytes.value;
    if part.low < LEAST * report.total.allocated.bytes.value {
        return None;
    }
    Some(Found {
        part,
        whole,
        sentence: vec![
            Bytes(part),
            " was promoted to the major heap and freed within ".into(),
            Seconds(report.within),
            " of its allocation: ".into(),
            Percent(100.0 * part.value / whole),
            " of all that was promoted.".into(),
        ],
        report: "temporary",
        parameters: within(facts, report.within),
    })
}

fn garbage(facts: &Facts<'_>) -> Option<Found> {
    let report = facts.temporary.as_ref()?;
    let row = report.rows.iter().find(|row| is_function(&row.label))?;
    let part = row.figures.temporary.bytes;
    let whole = report.total.allocated.bytes.value;
    Some(Found {
        part,
        whole,
        sentence: vec![
            Name(row.label.name.clone()),
            " allocates ".into(),
            Bytes(part),
            " that is freed within ".into(),
            Seconds(report.within),
            ": ".into(),
            Percent(100.0 * part.value / whole),
            " of all memory allocated.".into(),
        ],
        report: "temporary",
        parameters: within(facts, report.within),
    })
}

fn size_class(facts: &Facts<'_>) -> Option<Found> {
    let (label, amount) = facts.by_size.first()?;
    let whole = facts.at_peak.bytes.value;
    let part = amount.bytes.estimate();
    Some(Found {
        part,
        whole,
        sentence: vec![
            Percent(100.0 * part.value / whole),
            " of what is live at the peak, ".into(),
            Bytes(part),
            ", is in blocks of ".into(),
            Phrase::Text(label.name.clone()),
            ".".into(),
        ],
        report: "hotspots",
        parameters: vec![("by", "size".to_owned()), ("live", "peak".to_owned())],
    })
}

fn resolution(facts: &Facts<'_>) -> Option<Found> {
    let profile = facts.scope.profile();
    let Scheme::PerUnit { rate, unit_bytes } = profile.header().scheme else {
        return None;
    };
    if rate >= 1.0 {
        return None;
    }
    // Rates are given per word of 8 bytes.
    let per_word = -(8.0 / unit_bytes as f64 * (-rate).ln_1p()).exp_m1();
    let bytes = FEWEST_SAMPLES * profile.sampling().bytes_per_sample();
    let higher = (10.0 * per_word).min(1.0);
    Some(Found {
        part: Estimate::exact(bytes),
        whole: facts.at_peak.bytes.value,
        sentence: vec![
            "Less than ".into(),
            Bytes(Estimate::exact(bytes)),
            " cannot be told from noise at this sampling rate. Record with --rate ".into(),
            Rate(one_digit(higher)),
            " to resolve ".into(),
            Bytes(Estimate::exact(bytes * per_word / higher)),
            ".".into(),
        ],
        report: "info",
        parameters: Vec::new(),
    })
}

/// A number with one significant digit.
fn one_digit(n: f64) -> f64 {
    format!("{n:.0e}").parse().unwrap_or(n)
}

pub(super) fn with_function(facts: &Facts<'_>) -> Vec<(&'static str, String)> {
    let mut parameters = vec![("by", "function".to_owned())];
    parameters.extend(facts.look.clone());
    parameters
}

/// The parameters of a report on memory that is freed within some seconds.
pub(super) fn within(facts: &Facts<'_>, seconds: f64) -> Vec<(&'static str, String)> {
    let mut parameters = with_function(facts);
    parameters.push(("within", format!("{seconds}s")));
    parameters
}
