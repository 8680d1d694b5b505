//! What ocaml-alloc-stats prints, as text.

use heapline_profile::reports::{AllocStats, EqualBins, Spread};

use crate::draw::Page;

/// All numbers of its two notebooks, with all their digits.
pub(super) fn text(report: &AllocStats) -> String {
    let mut page = Page::default();
    let sizes = &report.sizes;
    page.title("Sizes of major blocks, in words (main.ipynb)");
    page.line(format_args!("Read {} events", sizes.events));
    let counts: Vec<String> = sizes
        .counts
        .iter()
        .map(|(size, count)| format!("{size}:{count}"))
        .collect();
    page.row("sizes", format_args!("{}", counts.join(" ")));
    bins(&mut page, "0 <= sz < 32", &sizes.small);
    bins(&mut page, "32 <= sz < 256", &sizes.medium);
    bins(&mut page, "256 <= sz < 10000", &sizes.large);
    bins(&mut page, "sz > 10000", &sizes.huge);
    page.row("% large", format_args!("{}", or_none(sizes.large_percent)));
    spreads(&mut page, "all", &[sizes.all]);
    spreads(&mut page, "halves", &sizes.halves);
    spreads(&mut page, "tenths", &sizes.tenths);
    spreads(&mut page, "trimmed", &sizes.trimmed_halves);
    spreads(&mut page, "trimmed, large", &sizes.trimmed_large_halves);
    page.row(
        "large per tenth",
        format_args!("{}", joined(&sizes.large_per_tenth)),
    );

    let lifetimes = &report.lifetimes;
    page.title("Lifetimes of major blocks (lifetimes.ipynb)");
    page.line(format_args!("Read {} events", lifetimes.events));
    page.row("survivors", format_args!("{}", lifetimes.survivors));
    page.row(
        "longest, events",
        format_args!("{}", or_none(lifetimes.ticks_max)),
    );
    bins(&mut page, "events, 0 - 32", &lifetimes.ticks);
    page.row(
        "longest, µs",
        format_args!("{}", or_none(lifetimes.time_max)),
    );
    bins(&mut page, "µs", &lifetimes.time);
    page.gap();
    page.note("As that program computes them: sampled blocks count once, whatever they stand for;");
    page.note("what dies on the minor heap does not count, the rest only from its promotion on;");
    page.note("promotions and collections have the time of the last allocation before them.");
    page.note("Without --compat the numbers are right.");
    page.finish()
}

fn or_none<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

fn joined<T: ToString>(values: &[T]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    values.join(" ")
}

fn bins(page: &mut Page, name: &str, bins: &EqualBins) {
    page.row(name, format_args!("{}", joined(&bins.counts)));
}

fn spreads(page: &mut Page, name: &str, spreads: &[Spread]) {
    for (i, spread) in spreads.iter().enumerate() {
        page.row(
            if i == 0 { name } else { "" },
            format_args!(
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
