//! `heapline info`.

use std::fmt::Write;

use clap::ValueEnum;
use heapline_export::identify;
use heapline_profile::{Estimate, GcParams, Overview};
use heapline_trace::{Damage, Options};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::draw::{BAD, FAINT, Page};
use crate::input::{Input, warn_of_left_out};
use crate::output::{to_stdout, to_stdout_styled};
use crate::units::{
    bytes, count, estimated_bytes, estimated_count, percent, printable, rate, seconds,
};

/// Show what a trace is, what is in it, and what is wrong with it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline info trace.ctf
  heapline info trace.ctf.zst --json | jq .bytes.allocated
  heapline info trace.ctf --format memtrace")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// How to show it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Print JSON
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// As memtrace's identify
    Memtrace,
}

#[derive(Serialize)]
struct WithFile<'a> {
    file: String,
    file_size: Option<u64>,
    #[serde(flatten)]
    overview: &'a Overview,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        // What memtrace's identify leaves out, it must leave out too.
        let options = Options::new()
            .stacks(false)
            .partial_packets(self.format != Format::Memtrace);
        let mut reader = self.input.open(options)?;
        let overview = Overview::read(&mut reader).map_err(|error| self.input.error(error))?;
        let file = self.input.trace.display().to_string();
        let file_size = self.input.file_size();
        if self.json {
            let json = WithFile {
                file,
                file_size,
                overview: &overview,
            };
            let mut text = serde_json::to_vec_pretty(&json)?;
            text.push(b'\n');
            return to_stdout(&text);
        }
        match self.format {
            Format::Text => to_stdout_styled(&text(&overview, &self.input.name(), file_size)),
            Format::Memtrace => {
                self.input.warn_of(&overview.damage);
                warn_of_left_out(&overview.damage);
                let size = file_size.unwrap_or(overview.trace_bytes);
                to_stdout(identify(&overview, &file, size).as_bytes())
            }
        }
    }
}

/// The report for people.
fn text(overview: &Overview, file: &str, file_size: Option<u64>) -> String {
    let mut page = Page::default();
    let trace = &overview.trace;
    let program = trace.executable_name.rsplit('/').next().unwrap_or_default();
    page.title(&printable(program));
    page.row(
        "Program",
        format_args!(
            "{} (pid {}) on {}",
            printable(&trace.executable_name),
            trace.pid,
            printable(&trace.host_name)
        ),
    );
    if let Some(context) = &trace.context {
        page.row("Context", format_args!("{}", printable(context)));
    }
    page.row(
        "Recorded",
        format_args!(
            "{}, for {}",
            date(trace.start_time),
            seconds(overview.duration)
        ),
    );
    page.row(
        "Trace",
        format_args!(
            "{file}, {}: memtrace format {}, {}-bit, {} packets",
            bytes(file_size.unwrap_or(overview.trace_bytes) as f64),
            overview.format_version,
            trace.word_size,
            count(overview.packets)
        ),
    );
    page.row("Domains", format_args!("{}", domains(&overview.domains)));
    page.row("Sampling", format_args!("{}", sampling(overview)));
    let events = &overview.events;
    page.row(
        "Events",
        format_args!(
            "{} allocations ({} minor, {} major, {} external), {} promotions, {} collections",
            count(events.allocations()),
            count(events.minor),
            count(events.major),
            count(events.external),
            count(events.promotions),
            count(events.collections)
        ),
    );
    if events.unmatched > 0 {
        page.row(
            "",
            format_args!(
                "{} of them about blocks that the trace does not have",
                count(events.unmatched)
            ),
        );
    }
    page.row("Samples", format_args!("{}", count(overview.samples.total)));

    page.title("Memory");
    memory(&mut page, overview);
    page.title("Blocks by size, in words");
    sizes(&mut page, overview);
    page.title("Garbage collector");
    gc_params(&mut page, &overview.gc_params);
    page.title("Damage");
    damage(&mut page, &overview.damage);
    page.finish()
}

fn memory(page: &mut Page, overview: &Overview) {
    let amounts = &overview.bytes;
    let per_second = |estimate: Estimate| {
        if overview.duration > 0.0 {
            format!("{}/s", bytes(estimate.per(overview.duration).value))
        } else {
            String::new()
        }
    };
    let blocks = format!("in {} blocks", estimated_count(overview.blocks_allocated));
    let promoted = match overview.promoted_percent {
        Some(share) => format!("{share:.1} % of what was allocated on the minor heap"),
        None => String::new(),
    };
    let rows: [(&str, Estimate, String); 7] = [
        ("Allocated", amounts.allocated, blocks),
        ("  minor heap", amounts.minor, String::new()),
        ("  major heap", amounts.major, String::new()),
        ("  external", amounts.external, String::new()),
        ("Promoted", amounts.promoted, promoted),
        ("Collected", amounts.collected, String::new()),
        ("Live at end", amounts.live_at_end, String::new()),
    ];
    let cells: Vec<[String; 3]> = rows
        .iter()
        .map(|(label, estimate, note)| {
            let rate = if *label == "Live at end" {
                String::new()
            } else {
                per_second(*estimate)
            };
            [estimated_bytes(*estimate), rate, note.clone()]
        })
        .collect();
    let widths = [0, 1].map(|column| {
        cells
            .iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    });
    for ((label, ..), [amount, rate, note]) in rows.iter().zip(&cells) {
        page.row(
            label,
            format_args!("{amount:>0$}   {rate:>1$}   {note}", widths[0], widths[1]),
        );
    }
    page.note(if overview.is_exact {
        "Every block was recorded: these numbers are exact. Headers are counted."
    } else {
        "Estimated from the samples, headers counted; ± is the 95 % interval."
    });
}

fn sizes(page: &mut Page, overview: &Overview) {
    let total = overview.bytes.allocated.value;
    let total_blocks = overview.blocks_allocated.value;
    let mut lower = 0;
    for class in &overview.size_classes {
        let label = match class.max_words {
            Some(max) => format!("{lower} - {max}"),
            None => format!("{lower} or more"),
        };
        lower = class.max_words.map_or(lower, |max| max + 1);
        page.row(
            &label,
            format_args!(
                "{:>8} of bytes {:>8} of blocks   {FAINT}{} sampled{FAINT:#}",
                percent(class.bytes.value, total),
                percent(class.blocks.value, total_blocks),
                count(class.sampled_blocks)
            ),
        );
    }
    let largest = overview
        .largest_words
        .saturating_mul(overview.trace.word_bytes());
    page.row("largest", format_args!("{}", bytes(largest as f64)));
}

fn gc_params(page: &mut Page, params: &GcParams) {
    /// Worth knowing even where they are what they always are.
    const IMPORTANT: [&str; 5] = ["s", "o", "a", "i", "M"];
    if params.iter().next().is_none() {
        return page.note("Its settings were not recorded.");
    }
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
            format_args!("{}{FAINT}{mark}{FAINT:#}", param.meaning),
        );
    }
    if hidden > 0 {
        page.note(&format!(
            "The rest ({hidden}) is as by default; --json has it."
        ));
    }
}

fn damage(page: &mut Page, damage: &Damage) {
    const SHOWN: usize = 10;
    if damage.is_empty() {
        return page.note("None was found.");
    }
    for flaw in damage.flaws().iter().take(SHOWN) {
        page.line(format_args!("{BAD}!{BAD:#} {flaw}"));
    }
    let hidden = damage.count.saturating_sub(SHOWN as u64);
    if hidden > 0 {
        page.note(&format!(
            "... and {} more (--json lists the first 1,000)",
            count(hidden)
        ));
    }
    let mut lost = Vec::new();
    let mut add = |n: u64, thing: &str, what: &str| {
        if n > 0 {
            let s = if n == 1 { "" } else { "s" };
            lost.push(format!("{} {thing}{s} {what}", count(n)));
        }
    };
    add(damage.lost_bytes, "byte", "lost");
    add(damage.lost_allocations, "allocation", "known to be lost");
    add(
        damage.uncertain_stacks,
        "stack",
        "that may be wrong in part",
    );
    add(
        damage.uncertain_names,
        "location",
        "whose name may be wrong",
    );
    if !lost.is_empty() {
        page.note(&format!("In all: {}.", lost.join(", ")));
    }
}

fn sampling(overview: &Overview) -> String {
    if overview.is_exact {
        return "rate 1: every allocation was recorded".to_owned();
    }
    format!(
        "rate {}: one sample for every {} allocated, on average",
        rate(overview.trace.sample_rate),
        bytes(overview.bytes_per_sample)
    )
}

fn domains(domains: &[u16]) -> String {
    const SHOWN: usize = 12;
    let mut text = match domains.len() {
        0 => return "none wrote events".to_owned(),
        1 => "1: number".to_owned(),
        n => format!("{n}: numbers"),
    };
    for (i, domain) in domains.iter().take(SHOWN).enumerate() {
        let comma = if i > 0 { "," } else { "" };
        // Writing to a string does not fail.
        let _ = write!(text, "{comma} {domain}");
    }
    if domains.len() > SHOWN {
        text.push_str(", ...");
    }
    text
}

fn date(microseconds: u64) -> String {
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
