//! `stats --compat alloc-stats`: the numbers of ocaml-alloc-stats.

use heapline_profile::reports::{AllocStats, EqualBins, Spread};

use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Line, Text};

/// Renders all numbers of its two notebooks, with all their digits.
#[must_use]
pub fn alloc_stats(report: &AllocStats, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    let sizes = &report.sizes;
    page.title("Sizes of major blocks, in words (main.ipynb)");
    page.line(&Line::plain(&format!("Read {} events", sizes.events)));
    let counts: Vec<String> = sizes
        .counts
        .iter()
        .map(|(size, count)| format!("{size}:{count}"))
        .collect();
    row(&mut page, "sizes", &counts.join(" "));
    bins(&mut page, "0 <= sz < 32", &sizes.small);
    bins(&mut page, "32 <= sz < 256", &sizes.medium);
    bins(&mut page, "256 <= sz < 10000", &sizes.large);
    bins(&mut page, "sz > 10000", &sizes.huge);
    row(&mut page, "% large", &or_none(sizes.large_percent));
    spreads(&mut page, "all", &[sizes.all]);
    spreads(&mut page, "halves", &sizes.halves);
    spreads(&mut page, "tenths", &sizes.tenths);
    spreads(&mut page, "trimmed", &sizes.trimmed_halves);
    spreads(&mut page, "trimmed, large", &sizes.trimmed_large_halves);
    row(
        &mut page,
        "large per tenth",
        &joined(&sizes.large_per_tenth),
    );

    let lifetimes = &report.lifetimes;
    page.title("Lifetimes of major blocks (lifetimes.ipynb)");
    page.line(&Line::plain(&format!("Read {} events", lifetimes.events)));
    row(&mut page, "survivors", &lifetimes.survivors.to_string());
    row(&mut page, "longest, events", &or_none(lifetimes.ticks_max));
    bins(&mut page, "events, 0 - 32", &lifetimes.ticks);
    row(&mut page, "longest, µs", &or_none(lifetimes.time_max));
    bins(&mut page, "µs", &lifetimes.time);
    page.gap();
    page.note(
        "As ocaml-alloc-stats computes them: every sampled block counts once, whatever its weight; \
         blocks that die on the minor heap are left out, others count from their promotion on; \
         promotions and collections have the time of the last allocation before them. Without \
         --compat, these biases are corrected.",
    );
    page.finish()
}

fn row(page: &mut Page, label: &str, value: &str) {
    page.row(label, &Line::plain(value));
}

fn or_none<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

fn joined<T: ToString>(values: &[T]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    values.join(" ")
}

fn bins(page: &mut Page, name: &str, bins: &EqualBins) {
    row(page, name, &joined(&bins.counts));
}

fn spreads(page: &mut Page, name: &str, spreads: &[Spread]) {
    for (i, spread) in spreads.iter().enumerate() {
        row(
            page,
            if i == 0 { name } else { "" },
            &format!(
                "count {}, mean {}, variance {}, sd {}, max {}",
                spread.count,
                or_none(spread.mean),
                or_none(spread.variance),
                or_none(spread.sd),
                or_none(spread.max)
            ),
        );
    }
}
