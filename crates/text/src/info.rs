//! `info`: the contents and the condition of a trace.

use heapline_model::Damage;
use heapline_profile::reports::{Coarse, EventCounts, Gaps, Overview};
use heapline_profile::{Estimate, GcParams};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::page::Page;
use crate::screen::Context;
use crate::snapshots::snapshots;
use crate::styled::{Line, Style, Text};
use crate::summary::counted_by_runtime;
use crate::table::{Align, Table};
use crate::units::{
    bytes, count, estimated_bytes, estimated_count, percent, plural, program_name, rate, seconds,
};
use crate::{BY_LAST_SNAPSHOT, snapshots_only};

/// The file that a trace was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceFile<'a> {
    /// Its path, or what else to call it.
    pub name: &'a str,
    /// Its size in bytes, compressed as it may be, if it is known.
    pub size: Option<u64>,
}

/// Renders an overview of a trace.
#[must_use]
pub fn info(overview: &Overview, file: TraceFile<'_>, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    page.title(program_name(&overview.trace.executable_name));
    source(&mut page, overview, file);
    page.title("Memory");
    page.table(&memory(overview, context));
    if !overview.tells.sizes {
        page.note(snapshots_only(overview.bytes.live_at_end));
        snapshots(&mut page, overview, context);
        page.title("Damage");
        damage(&mut page, &overview.damage);
        return page.finish();
    }
    page.note(match (overview.is_exact, is_native(overview)) {
        (true, true) => "Every block was recorded, so the figures are exact.",
        (true, false) => {
            "Every block was recorded, so the figures are exact. Sizes include headers."
        }
        (false, true) => "Estimated from the samples. ± is the 95 % interval.",
        (false, false) => {
            "Estimated from the samples; sizes include headers. ± is the 95 % interval."
        }
    });
    if let Some(counted) = &overview.counted {
        page.note(&counted_by_runtime(counted));
    }
    page.title(if is_native(overview) {
        "Block sizes, in bytes"
    } else {
        "Block sizes, in words"
    });
    page.table(&sizes(overview, context));
    if !is_native(overview) {
        page.title("Garbage collector");
        match &overview.gc_params {
            Some(params) => gc_params(&mut page, params),
            None => page.note("The settings are not recorded."),
        }
    }
    page.title("Damage");
    damage(&mut page, &overview.damage);
    page.finish()
}

/// Returns true if the program has no garbage collector, but a sampled allocator.
fn is_native(overview: &Overview) -> bool {
    overview.trace.ocaml_runtime_params.is_none()
}

fn source(page: &mut Page, overview: &Overview, file: TraceFile<'_>) {
    let trace = &overview.trace;
    let mut row = |label: &str, value: String| page.row(label, &Line::plain(&value));
    let is_of_snapshots = !overview.tells.sizes;
    if !is_of_snapshots {
        let (program, pid, host) = (&trace.executable_name, trace.pid, &trace.host_name);
        row("Program", format!("{program} (pid {pid}) on {host}"));
    } else if !trace.executable_name.is_empty() {
        row("Program", trace.executable_name.clone());
    }
    if let Some(context) = &trace.context {
        row("Context", context.clone());
    }
    row(
        "Recorded",
        format!(
            "{}, for {}",
            date(trace.start_time),
            seconds(overview.duration)
        ),
    );
    row(
        "Trace",
        format!(
            "{}, {}: {} format {}, {}{}",
            file.name,
            bytes(file.size.unwrap_or(overview.trace_bytes) as f64),
            overview.format,
            overview.format_version,
            match trace.word_size {
                8 => String::new(),
                bits => format!("{bits}-bit, "),
            },
            plural(
                overview.packets,
                if is_of_snapshots { "value" } else { "packet" }
            )
        ),
    );
    if is_of_snapshots {
        let snapshots = plural(overview.snapshots.len() as u64, "snapshot");
        let events = plural(overview.marks.len() as u64, "event");
        return row("Contents", format!("{snapshots}, {events}"));
    }
    let lanes = if is_native(overview) {
        "Threads"
    } else {
        "Domains"
    };
    row(lanes, domains(&overview.domains));
    row("Sampling", sampling(overview));
    let events = &overview.events;
    row(
        "Events",
        if is_native(overview) {
            native_events(events)
        } else {
            ocaml_events(events)
        },
    );
    if events.unmatched > 0 {
        row(
            "",
            format!(
                "{} of them about blocks that are not in the trace",
                count(events.unmatched)
            ),
        );
    }
    row("Samples", count(overview.samples.total));
    if let Some(coarse) = &overview.coarse {
        row("History", history(coarse));
    }
    if let Some(gaps) = &overview.gaps {
        row("Gaps", missing(gaps));
    }
    if overview.has_cut_stacks {
        row(
            "Stacks",
            "cut when they were recorded (--stack-depth); <deeper calls> stands for the outer frames"
                .to_owned(),
        );
    }
}

/// The part of the run that the recording has summed up.
pub(crate) fn history(coarse: &Coarse) -> String {
    let intervals = plural(coarse.intervals as u64, "interval");
    let (shortest, longest) = (seconds(coarse.shortest), seconds(coarse.longest));
    let lengths = if shortest == longest {
        longest
    } else {
        format!("{shortest} to {longest}")
    };
    format!(
        "blocks that died before {} are summed up in {intervals} of {lengths} (--keep); within an interval \
         only means are known",
        seconds(coarse.until)
    )
}

/// The times in which new blocks were not recorded.
pub(crate) fn missing(gaps: &Gaps) -> String {
    format!(
        "new blocks were not recorded {} for {} in all, between {} and {}: heapline record could not keep up; \
         use a lower --rate or a larger --keep",
        match gaps.count {
            1 => "once,".to_owned(),
            n => format!("{n} times,"),
        },
        seconds(gaps.seconds),
        seconds(gaps.first),
        seconds(gaps.last)
    )
}

fn native_events(events: &EventCounts) -> String {
    format!(
        "{} allocations, {} frees",
        count(events.allocations()),
        count(events.collections)
    )
}

fn ocaml_events(events: &EventCounts) -> String {
    format!(
        "{} allocations ({} minor, {} major, {} external), {} promotions, {} collections",
        count(events.allocations()),
        count(events.minor),
        count(events.major),
        count(events.external),
        count(events.promotions),
        count(events.collections)
    )
}

fn memory(overview: &Overview, context: &Context<'_>) -> Table {
    let mut amounts = overview.bytes;
    let mut promoted_percent = overview.promoted_percent;
    if let Some(counted) = &overview.counted {
        amounts.allocated = counted.allocated;
        amounts.minor = Estimate::exact(counted.minor);
        amounts.major = Estimate::exact(counted.direct);
        amounts.promoted = Estimate::exact(counted.promoted);
        promoted_percent = (counted.minor > 0.0).then(|| 100.0 * counted.promoted / counted.minor);
    }
    let per_second = |estimate: Estimate| {
        if overview.duration > 0.0 {
            format!("{}/s", bytes(estimate.per(overview.duration).value))
        } else {
            String::new()
        }
    };
    let blocks = format!("in {} blocks", estimated_count(overview.blocks_allocated));
    let promoted = match promoted_percent {
        Some(share) => format!("{share:.1} % of minor heap allocations"),
        None => String::new(),
    };
    let mut rows = vec![("Allocated", amounts.allocated, blocks)];
    if !overview.tells.sizes {
        rows[0].2 = String::new();
        let note = if amounts.collected.value.is_nan() {
            ""
        } else {
            BY_LAST_SNAPSHOT
        };
        rows.push(("Freed", amounts.collected, note.to_owned()));
    } else if is_native(overview) {
        rows.push(("Freed", amounts.collected, String::new()));
    } else {
        rows.extend([
            ("  minor heap", amounts.minor, String::new()),
            ("  major heap", amounts.major, String::new()),
            ("  external", amounts.external, String::new()),
            ("Promoted", amounts.promoted, promoted),
            ("Collected", amounts.collected, String::new()),
        ]);
    }
    rows.push(("Live at end", amounts.live_at_end, String::new()));
    let mut table = labelled(context);
    for (label, estimate, note) in rows {
        let rate = match label {
            "Live at end" => String::new(),
            // The time until the last snapshot is shorter.
            "Freed" if !overview.tells.sizes => String::new(),
            _ => per_second(estimate),
        };
        table.row(vec![
            (label.to_owned(), Style::Label),
            (estimated_bytes(estimate), Style::Plain),
            (rate, Style::Plain),
            (note, Style::Plain),
        ]);
    }
    table
}

fn sizes(overview: &Overview, context: &Context<'_>) -> Table {
    let total = overview.bytes.allocated.value;
    let total_blocks = overview.blocks_allocated.value;
    let mut table = labelled(context);
    let mut lower = 0;
    for class in &overview.size_classes {
        let label = match class.max_words {
            Some(max) => format!("{lower} - {max}"),
            None => format!("{lower} or more"),
        };
        lower = class.max_words.map_or(lower, |max| max + 1);
        table.row(vec![
            (label, Style::Label),
            (
                format!("{} of bytes", percent(class.bytes.value, total)),
                Style::Plain,
            ),
            (
                format!("{} of blocks", percent(class.blocks.value, total_blocks)),
                Style::Plain,
            ),
            (
                format!("{} sampled", count(class.sampled_blocks)),
                Style::Faint,
            ),
        ]);
    }
    let largest = overview
        .largest_words
        .saturating_mul(overview.trace.word_size / 8);
    table.row(vec![
        ("largest".to_owned(), Style::Label),
        (bytes(largest as f64), Style::Plain),
        (String::new(), Style::Plain),
        (String::new(), Style::Plain),
    ]);
    table
}

/// A table of labels, two columns of figures, and notes that give way on narrow screens.
fn labelled(context: &Context<'_>) -> Table {
    Table::new(
        context.screen,
        &[
            ("", Align::Left),
            ("", Align::Right),
            ("", Align::Right),
            ("", Align::Left),
        ],
        0,
    )
    .droppable(&[3, 2])
}

fn gc_params(page: &mut Page, params: &GcParams) {
    /// Shown even if they have their defaults.
    const IMPORTANT: [&str; 5] = ["s", "o", "a", "i", "M"];
    let mut hidden = 0;
    for param in params.iter() {
        if param.is_default && !IMPORTANT.contains(&&*param.key) {
            hidden += 1;
            continue;
        }
        let mark = if param.is_default {
            ""
        } else {
            " (not the default)"
        };
        page.row(
            &format!("{}={}", param.key, param.value),
            &Line::plain(&param.meaning).with(mark, Style::Faint),
        );
    }
    if hidden > 0 {
        let verb = if hidden == 1 { "is" } else { "are" };
        let default = if hidden == 1 {
            "its default"
        } else {
            "their defaults"
        };
        page.note(&format!(
            "{} {verb} at {default} (see --json).",
            plural(hidden, "more setting")
        ));
    }
}

fn damage(page: &mut Page, damage: &Damage) {
    const SHOWN: usize = 10;
    if damage.is_empty() {
        return page.note("None found.");
    }
    for flaw in damage.flaws.iter().take(SHOWN) {
        let line = Line::plain("  ").with("!", Style::Bad);
        page.wrapped(&line.with(&format!(" {flaw}"), Style::Plain), 4);
    }
    let hidden = damage.count.saturating_sub(SHOWN as u64);
    if hidden > 0 {
        page.note(&format!(
            "... and {} more (--json lists the first 1,000)",
            count(hidden)
        ));
    }
    let losses = [
        (damage.lost_bytes, "byte", "lost"),
        (damage.lost_allocations, "allocation", "known to be lost"),
        (damage.uncertain_stacks, "stack", "possibly wrong in part"),
        (
            damage.uncertain_names,
            "location",
            "with a possibly wrong name",
        ),
    ];
    let losses: Vec<String> = losses
        .iter()
        .filter(|(n, ..)| *n > 0)
        .map(|(n, thing, what)| format!("{} {what}", plural(*n, thing)))
        .collect();
    if !losses.is_empty() {
        page.note(&format!("In total: {}.", losses.join(", ")));
    }
}

fn sampling(overview: &Overview) -> String {
    if overview.is_exact {
        return "rate 1: every allocation was recorded".to_owned();
    }
    let every = bytes(overview.bytes_per_sample);
    let text = format!("one sample per {every} allocated, on average");
    let seed = overview.trace.seed.map(|seed| format!("; seed {seed}"));
    let seed = seed.unwrap_or_default();
    if is_native(overview) {
        // Its rate is that of a byte, which nobody has asked for.
        return text + &seed;
    }
    format!("rate {}: {text}{seed}", rate(overview.trace.sample_rate))
}

fn domains(domains: &[u16]) -> String {
    const SHOWN: usize = 12;
    if domains.is_empty() {
        return "none recorded events".to_owned();
    }
    let mut ids: Vec<String> = domains
        .iter()
        .take(SHOWN)
        .map(ToString::to_string)
        .collect();
    if domains.len() > SHOWN {
        ids.push("...".to_owned());
    }
    let id = if domains.len() == 1 { "id" } else { "ids" };
    format!("{} ({id} {})", domains.len(), ids.join(", "))
}

pub(crate) fn date(microseconds: u64) -> String {
    if microseconds == 0 {
        return "at an unknown time".to_owned();
    }
    let time = i64::try_from(microseconds)
        .ok()
        .and_then(|us| Timestamp::from_microsecond(us).ok());
    match time {
        Some(time) => time
            .to_zoned(TimeZone::UTC)
            .strftime("%Y-%m-%d %H:%M:%S UTC")
            .to_string(),
        None => format!("{microseconds} µs after 1970-01-01"),
    }
}
