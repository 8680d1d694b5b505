//! `stats`: sizes, lifetimes, phases.

use heapline_profile::reports::{Bin, Quantiles, Segment, Stats, Subject};

use crate::NO_SAMPLES;
use crate::chart::bar;
use crate::info::{history, missing};
use crate::page::Page;
use crate::screen::{Context, Screen};
use crate::styled::{Line, Style, Text};
use crate::table::{Align, Table};
use crate::units::{
    bytes, count, count_short, estimated_bytes, estimated_count, percent_number, seconds,
};

/// Renders histograms, quantiles and phases.
#[must_use]
pub fn stats(report: &Stats, context: &Context<'_>) -> Text {
    let screen = context.screen;
    let mut page = Page::new(screen);
    page.title(&format!(
        "{} blocks, {}",
        estimated_count(report.total.blocks),
        estimated_bytes(report.total.bytes)
    ));
    if report.subject.sampled_blocks == 0 {
        page.note(NO_SAMPLES);
        return page.finish();
    }
    if let Some(coarse) = &report.subject.coarse {
        page.note(&format!("History: {}.", history(coarse)));
    }
    if let Some(gaps) = &report.subject.gaps {
        page.note(&format!("Gaps: {}.", missing(gaps)));
    }
    sizes(&mut page, screen, report);
    lifetimes(&mut page, screen, report);
    if report.phases.len() > 1 {
        page.title("Phases, by allocation rate");
        page.table(&segments(screen, &report.subject, &report.phases));
    }
    page.title("Time slices of equal length");
    page.table(&segments(screen, &report.subject, &report.segments));
    page.finish()
}

fn sizes(page: &mut Page, screen: Screen, report: &Stats) {
    let sizes = &report.sizes;
    page.title(if report.subject.word_bytes > 1.0 {
        "Sizes in words, without headers"
    } else {
        "Sizes in bytes"
    });
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.2}"));
    row(
        page,
        "mean",
        &format!(
            "{}, standard deviation {}, variance {}",
            number(sizes.mean),
            number(sizes.sd),
            number(sizes.variance)
        ),
    );
    let Quantiles { p50, p90, p99 } = sizes.quantiles;
    let whole = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.0}"));
    row(
        page,
        "quantiles",
        &format!(
            "50 % {}, 90 % {}, 99 % {}, maximum {}",
            whole(p50),
            whole(p90),
            whole(p99),
            count(sizes.max)
        ),
    );
    row(
        page,
        &format!("over {}", sizes.large_limit),
        &format!(
            "{} % of blocks, {} % of bytes",
            number(sizes.large_blocks_percent),
            number(sizes.large_bytes_percent)
        ),
    );
    page.gap();
    let bins = if report.linear {
        &sizes.linear
    } else {
        &sizes.log
    };
    page.table(&histogram(screen, bins, |bin| {
        if report.linear || bin.high - bin.low <= 1.0 {
            format!("{}", bin.low)
        } else {
            format!("{} - {}", bin.low, bin.high - 1.0)
        }
    }));
}

fn lifetimes(page: &mut Page, screen: Screen, report: &Stats) {
    let lifetimes = &report.lifetimes;
    page.title("Lifetimes");
    row(
        page,
        "live at end",
        &format!(
            "{} blocks, {}; counted as living longer than observed",
            estimated_count(lifetimes.alive.blocks),
            bytes(lifetimes.alive.bytes.value)
        ),
    );
    let quantiles = |Quantiles { p50, p90, p99 }: Quantiles, show: &dyn Fn(f64) -> String| {
        let one = |value: Option<f64>| value.map_or_else(|| "longer".to_owned(), show);
        format!("50 % {}, 90 % {}, 99 % {}", one(p50), one(p90), one(p99))
    };
    row(page, "in time", &quantiles(lifetimes.seconds, &seconds));
    row(
        page,
        "in allocation",
        &format!("{} allocated meanwhile", quantiles(lifetimes.bytes, &bytes)),
    );
    if let (Some(mean), Some(max)) = (lifetimes.mean, lifetimes.max) {
        row(
            page,
            "of dead blocks",
            &format!("mean {}, maximum {}", seconds(mean), seconds(max)),
        );
    }
    page.gap();
    let bins = if report.linear {
        &lifetimes.linear
    } else {
        &lifetimes.log
    };
    page.table(&histogram(screen, bins, |bin| {
        format!("< {}", seconds(bin.high))
    }));
    if report.subject.tells.promotions {
        page.note("A lifetime ends when the garbage collector finds the block dead.");
    }
}

fn row(page: &mut Page, label: &str, value: &str) {
    page.row(label, &Line::plain(value));
}

fn histogram(screen: Screen, bins: &[Bin], name: impl Fn(&Bin) -> String) -> Table {
    let most = bins.iter().map(|bin| bin.blocks).fold(0.0, f64::max);
    let all_bytes: f64 = bins.iter().map(|bin| bin.bytes).sum();
    let mut table = Table::new(
        screen,
        &[
            ("", Align::Right),
            ("blocks", Align::Right),
            ("bytes", Align::Right),
            ("%", Align::Right),
            ("", Align::Left),
        ],
        4,
    );
    // A bar is drawn for the room there is: shortened, it would lie.
    let width = screen.width().saturating_sub(48).clamp(8, 32);
    let last = bins.iter().rposition(|bin| bin.sampled > 0).unwrap_or(0);
    for bin in &bins[..bins.len().min(last + 1)] {
        let style = if bin.sampled == 0 {
            Style::Faint
        } else {
            Style::Plain
        };
        table.row(vec![
            (name(bin), style),
            (count_short(bin.blocks), style),
            (bytes(bin.bytes), style),
            (percent_number(bin.bytes, all_bytes), style),
            (bar(bin.blocks / most, width), style),
        ]);
    }
    table
}

fn segments(screen: Screen, subject: &Subject, segments: &[Segment]) -> Table {
    let mean = if subject.word_bytes > 1.0 {
        "mean words"
    } else {
        "mean bytes"
    };
    let mut table = Table::new(
        screen,
        &[
            ("from", Align::Right),
            ("to", Align::Right),
            ("allocated", Align::Right),
            ("per second", Align::Right),
            ("", Align::Left),
            (mean, Align::Right),
            ("sd", Align::Right),
            ("% large", Align::Right),
            ("% promoted", Align::Right),
            ("live at end", Align::Right),
        ],
        4,
    )
    .droppable(&[6, 4, 7, 5, 8]);
    let promotes = segments
        .iter()
        .any(|segment| segment.promoted_percent.is_some());
    let rate = |segment: &Segment| segment.allocation_rate.map_or(0.0, |rate| rate.value);
    let fastest = segments.iter().map(rate).fold(0.0, f64::max);
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.1}"));
    for segment in segments {
        let cell = |text: String| (text, Style::Plain);
        table.row(vec![
            cell(seconds(segment.from)),
            cell(seconds(segment.to)),
            cell(estimated_bytes(segment.allocated.bytes)),
            cell(format!("{}/s", bytes(rate(segment)))),
            cell(bar(rate(segment) / fastest, 8)),
            cell(number(segment.mean_size)),
            cell(number(segment.sd_size)),
            cell(number(segment.large_percent)),
            cell(if promotes {
                number(segment.promoted_percent)
            } else {
                String::new()
            }),
            cell(bytes(segment.live_at_end)),
        ]);
    }
    table
}
