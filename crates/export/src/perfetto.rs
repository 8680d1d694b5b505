//! A trace for <https://ui.perfetto.dev>: the work of the garbage collector, and memory, on one time axis.
//!
//! The format is Chrome's JSON. Names of counters end with their units, because Perfetto makes them of the name of an event
//! and of that of its argument.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use heapline_model::{CollectorCounters, Phase};
use heapline_profile::Scope;
use serde::Serialize;
use serde_json::{Value, json};

use crate::curve;
use crate::names::{program, whole};
use crate::provenance;
use crate::spans::{self, Span, Spans};

/// Collections that are written. If there are more, the shortest are left out.
const MOST_SPANS: u64 = 1_000_000;

/// Intervals of counters.
const SLOTS: u64 = 2000;

/// An event of Chrome's format.
#[derive(Serialize)]
struct Event<'a> {
    /// `X` is a span, `C` a counter, `M` metadata.
    ph: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    pid: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u64>,
    /// Microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    args: Value,
}

/// The words of a span. Those that are not known are left out.
#[derive(Serialize)]
struct SpanDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    promoted_words: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heap_words: Option<u64>,
}

/// Writes a list of events.
struct Events<W: Write> {
    out: W,
    pid: u64,
    is_first: bool,
}

impl<W: Write> Events<W> {
    fn put(&mut self, event: &Event<'_>) -> io::Result<()> {
        let separator = if std::mem::take(&mut self.is_first) {
            "\n"
        } else {
            ",\n"
        };
        self.out.write_all(separator.as_bytes())?;
        serde_json::to_writer(&mut self.out, event)?;
        Ok(())
    }

    fn metadata(&mut self, name: &str, tid: Option<u64>, args: Value) -> io::Result<()> {
        let pid = self.pid;
        self.put(&Event {
            ph: "M",
            name,
            cat: None,
            pid,
            tid,
            ts: None,
            dur: None,
            args,
        })
    }

    fn counter(&mut self, name: &str, nanos: u64, args: Value) -> io::Result<()> {
        let pid = self.pid;
        self.put(&Event {
            ph: "C",
            name,
            cat: None,
            pid,
            tid: None,
            ts: Some(micros(nanos)),
            dur: None,
            args,
        })
    }

    fn span(&mut self, tid: u64, span: &Span) -> io::Result<()> {
        let details = SpanDetails {
            phase: span.phase.map(Phase::name),
            promoted_words: span.promoted_words,
            heap_words: span.heap_words,
        };
        let pid = self.pid;
        self.put(&Event {
            ph: "X",
            name: span.kind.name(),
            cat: Some("gc"),
            pid,
            tid: Some(tid),
            ts: Some(micros(span.start)),
            dur: Some(micros(span.length)),
            args: serde_json::to_value(details)?,
        })
    }
}

/// Nanoseconds in the unit of the format.
fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}

/// The track of a domain. The process has the number 0.
fn track(lane: u16) -> u64 {
    u64::from(lane) + 1
}

/// Writes a trace for Perfetto: the work of the garbage collector as spans, with a track for each domain; the size of the
/// major heap and the promotion rate as the runtime counts them; and the live memory in scope, which is estimated.
pub fn perfetto(scope: &Scope<'_>, out: &mut impl Write) -> io::Result<()> {
    let profile = scope.profile();
    let collections = profile.collections();
    let header = profile.header();
    let spans = Spans::new(collections, MOST_SPANS);
    let mut overlapping = 0;
    let mut out = BufWriter::new(out);
    out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    let mut events = Events {
        out: &mut out,
        pid: header.pid,
        is_first: true,
    };
    events.metadata("process_name", None, json!({ "name": program(header) }))?;
    for lane in collections.lanes() {
        let tid = track(lane);
        let name = json!({ "name": format!("Domain {lane}") });
        events.metadata("thread_name", Some(tid), name)?;
        let place = json!({ "sort_index": lane });
        events.metadata("thread_sort_index", Some(tid), place)?;
        let of_lane = spans.of_lane(lane);
        overlapping += of_lane.overlapping;
        for span in &of_lane.spans {
            events.span(tid, span)?;
        }
        heap(&mut events, scope, lane)?;
    }
    promotion_rate(&mut events, scope)?;
    live_memory(&mut events, scope)?;
    let mut about: BTreeMap<&str, Value> = provenance::facts(scope)
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    about.insert("live memory", provenance::sentence(scope).into());
    about.insert(
        "major heap, promotion rate",
        "Counted by the runtime in words: exact.".into(),
    );
    if spans.shorter > 0 {
        let least = spans.least;
        about.insert("collections left out", spans.shorter.into());
        about.insert("shorter than, in nanoseconds", least.into());
    }
    if overlapping > 0 {
        about.insert("overlapping collections left out", overlapping.into());
    }
    out.write_all(b"\n],\"otherData\":")?;
    serde_json::to_writer(&mut out, &about)?;
    out.write_all(b"}\n")?;
    out.flush()
}

/// Nanoseconds of an interval of counters of the collector.
fn slot(scope: &Scope<'_>) -> u64 {
    (scope.profile().collections().end() / SLOTS).max(1)
}

/// The size of the major heap of a domain, or of the program if the runtime has one for all: that at the end of each
/// interval, when it was read.
fn heap(events: &mut Events<impl Write>, scope: &Scope<'_>, lane: u16) -> io::Result<()> {
    let name = format!("major heap, domain {lane},");
    let slot = slot(scope);
    let mut last: Option<(u64, u64, u64)> = None;
    let mut shown = None;
    let mut put = |reading: Option<(u64, u64, u64)>| match reading {
        Some((time, used, free)) if shown != Some((used, free)) => {
            shown = Some((used, free));
            let words = json!({ "used words": used, "free words": free });
            events.counter(&name, time, words)
        }
        _ => Ok(()),
    };
    for one in scope.profile().collections().of_lane(lane) {
        let Some(counters) = one.counters else {
            continue;
        };
        if counters.heap_words == 0 {
            continue;
        }
        let time = one.end();
        if last.is_some_and(|(before, ..)| before / slot != time / slot) {
            put(last)?;
        }
        let free = counters.free_words.min(counters.heap_words);
        last = Some((time, counters.heap_words - free, free));
    }
    put(last)
}

/// Words that all domains promote per second, in each interval.
fn promotion_rate(events: &mut Events<impl Write>, scope: &Scope<'_>) -> io::Result<()> {
    let collections = scope.profile().collections();
    let slot = slot(scope);
    let mut promoted: BTreeMap<u64, u64> = BTreeMap::new();
    for lane in collections.lanes() {
        let mut before: Option<CollectorCounters> = None;
        for one in collections.of_lane(lane) {
            let Some(counters) = one.counters else {
                continue;
            };
            let words = before.and_then(|before| spans::promoted(&before, &counters));
            before = Some(counters);
            if let Some(words) = words {
                let sum = promoted.entry(one.end() / slot).or_default();
                *sum = sum.saturating_add(words);
            }
        }
    }
    let mut next = None;
    let per_second = |words: u64| whole(words as f64 / (slot as f64 / 1e9));
    for (place, words) in promoted {
        if let Some(next) = next.filter(|&next| next < place) {
            events.counter("promotion rate,", next * slot, json!({ "words/s": 0 }))?;
        }
        let rate = json!({ "words/s": per_second(words) });
        events.counter("promotion rate,", place * slot, rate)?;
        next = Some(place + 1);
    }
    match next {
        Some(next) => {
            let end = next.saturating_mul(slot);
            events.counter("promotion rate,", end, json!({ "words/s": 0 }))
        }
        None => Ok(()),
    }
}

fn live_memory(events: &mut Events<impl Write>, scope: &Scope<'_>) -> io::Result<()> {
    let name = "live memory, estimated,";
    let mut live = 0.0;
    events.counter(name, 0, json!({ "bytes": 0 }))?;
    for (time, change, _) in curve::changes(scope) {
        live += change;
        let bytes = json!({ "bytes": whole(live) });
        events.counter(name, time.saturating_mul(1000), bytes)?;
    }
    Ok(())
}
