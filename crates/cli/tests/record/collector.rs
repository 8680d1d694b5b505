//! The work of the garbage collector is recorded, with counters that are exact.

use std::collections::BTreeMap;
use std::path::Path;

use heapline_trace::{
    Alloc, Collection, CollectionKind, CollectorCounters, Locations, Mark, Options, Reader, Visitor,
};

use crate::attach::{Running, attach_until};
use crate::run::{Program, Recording};
use crate::runtime_events::{Span, read, with_events};
use crate::toolchain::{Compiler, compilers, with_domains};
use crate::trace::Trace;

/// One of the counters.
type Counter = fn(&CollectorCounters) -> u64;

/// Words that a program allocates between its last look at the counters and its end.
const AFTERWARDS: u64 = 2000;

/// The work of the collector in a trace, by domain.
#[derive(Default)]
struct Collections(BTreeMap<u16, Vec<Collection>>);

impl Visitor for Collections {
    fn alloc(&mut self, _: &Alloc<'_>, _: &Locations) {}
    fn promote(&mut self, _: Mark, _: &Locations) {}
    fn collect(&mut self, _: Mark, _: &Locations) {}
    fn collection(&mut self, work: &Collection) {
        self.0.entry(work.domain).or_default().push(*work);
    }
}

impl Collections {
    /// Those of a trace, in which each has counters and its place.
    #[track_caller]
    fn read(trace: &Path) -> Self {
        let mut found = Self::default();
        let mut reader = Reader::open(trace, Options::new().strict(true)).unwrap();
        while reader.visit_packet(&mut found).unwrap().is_some() {}
        for work in found.0.values() {
            assert!(work.is_sorted_by_key(end), "not in the order of their ends");
            assert!(work.iter().all(|work| work.counters.is_some()), "{work:?}");
            for pair in work.windows(2) {
                let [before, after] = [pair[0], pair[1]];
                // What has others inside of it ends after them.
                let is_outside = matches!(
                    after.kind,
                    CollectionKind::Finalisers | CollectionKind::Forced | CollectionKind::Slice
                ) && after.start <= before.start;
                assert!(is_outside || end(&before) <= after.start, "{pair:?}");
            }
        }
        found
    }

    fn of(&self, domain: u16, kind: CollectionKind) -> Vec<Collection> {
        let work = self.0[&domain].iter().copied();
        work.filter(|work| work.kind == kind).collect()
    }

    fn count(&self, domain: u16, kind: CollectionKind) -> u64 {
        self.of(domain, kind).len() as u64
    }

    fn first(&self, domain: u16) -> (CollectionKind, CollectorCounters) {
        let first = self.0[&domain].first().unwrap();
        (first.kind, first.counters.unwrap())
    }

    fn last(&self, domain: u16) -> (CollectionKind, CollectorCounters) {
        let last = self.0[&domain].last().unwrap();
        (last.kind, last.counters.unwrap())
    }

    /// The sum of a counter over all domains. In 5.3, those of a domain begin anew when another one gets its number.
    fn total(&self, counter: Counter) -> u64 {
        let of_domain = |work: &Vec<Collection>| {
            let mut before = 0;
            let mut total = 0;
            for work in work {
                let now = counter(&work.counters.unwrap());
                total += now.checked_sub(before).unwrap_or(now);
                before = now;
            }
            total
        };
        self.0.values().map(of_domain).sum()
    }
}

fn end(work: &Collection) -> u64 {
    work.start + work.length
}

/// A counter that the runtime prints at the end of the program.
fn printed(recording: &Recording, name: &str) -> Option<u64> {
    let lines = recording.ended.stderr.lines();
    let mut found = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.next().map(|number| number.parse().unwrap())
}

/// Records a program that prints its counters at its end.
fn record_with_statistics(program: &Program) -> Recording {
    let program = program.clone().env("OCAMLRUNPARAM", "v=0x400");
    let (plain, _) = program.plain();
    let recording = program.record(&["--rate", "1e-4"]);
    assert_eq!(recording.ended.stdout, plain.stdout);
    assert_eq!(recording.ended.status, plain.status);
    recording
}

#[test]
fn counters_are_those_that_the_runtime_prints() {
    for compiler in compilers("counters_are_those_that_the_runtime_prints") {
        let version = &compiler.version;
        let recording = record_with_statistics(&Program::new(compiler.program("collector")));
        let found = Collections::read(&recording.trace);
        assert_eq!(found.0.len(), 1);
        let (kind, first) = found.first(0);
        assert_eq!(kind, CollectionKind::Reading);
        assert_eq!(first.minor_collections, 0);
        assert_eq!(first.promoted_words, 0);
        let (kind, last) = found.last(0);
        assert_eq!(kind, CollectionKind::Reading);
        let expected = [
            ("minor_words", last.minor_words),
            ("promoted_words", last.promoted_words),
            ("major_words", last.major_words),
            ("minor_collections", last.minor_collections),
            ("major_collections", last.major_collections),
            ("heap_words", last.heap_words),
            ("forced_major_collections", last.forced_major_collections),
        ];
        for (name, ours) in expected {
            // 4.11 does not count forced collections.
            let printed = printed(&recording, name);
            assert!(printed.is_some() || version.starts_with("4.11"), "{name}");
            assert_eq!(ours, printed.unwrap_or(ours), "{name} ({version})");
        }
        assert!(last.free_words < last.heap_words);
        // Gc.compact; OCaml 4 compacts by itself too.
        assert!(last.compactions >= 1, "{version}");
        assert!(compiler.is_5() || Some(last.compactions) == printed(&recording, "compactions"));

        assert_eq!(
            found.count(0, CollectionKind::Minor),
            last.minor_collections
        );
        // Three in Gc.full_major and Gc.compact of OCaml 5, and one in Gc.major.
        let forced = if compiler.is_5() { 10 } else { 4 };
        assert_eq!(found.count(0, CollectionKind::Forced), forced, "{version}");
        assert_eq!(last.forced_major_collections, 3);
        assert!(found.count(0, CollectionKind::Slice) > 10);
        assert!(found.count(0, CollectionKind::Finalisers) > 1);
        assert_eq!(found.count(0, CollectionKind::Reading), 2);
    }
}

/// The program asks shortly before its end.
#[test]
fn counters_are_those_that_the_program_gets() {
    for compiler in compilers("counters_are_those_that_the_program_gets") {
        let program = Program::new(compiler.program("collector"));
        let recording = program.record(&["--rate", "1e-4"]);
        let truth = |name: &str| -> Vec<u64> {
            let line = recording.truth(name);
            line.split(' ').map(|word| word.parse().unwrap()).collect()
        };
        let (_, last) = Collections::read(&recording.trace).last(0);
        let words = [last.minor_words, last.promoted_words, last.major_words];
        for (ours, theirs) in words.into_iter().zip(truth("words ")) {
            let more = ours.checked_sub(theirs);
            assert!(
                more.is_some_and(|more| more < AFTERWARDS),
                "{ours}, {theirs}"
            );
        }
        let collections = [
            last.minor_collections,
            last.major_collections,
            last.compactions,
        ];
        assert_eq!(collections.as_slice(), truth("collections "));
    }
}

#[test]
fn the_words_of_all_domains_are_counted() {
    for compiler in with_domains("the_words_of_all_domains_are_counted") {
        let recording =
            record_with_statistics(&Program::new(compiler.program("ocaml5/collections")));
        let found = Collections::read(&recording.trace);
        assert_eq!(found.0.len(), 3);
        let words = found.total(|counters| counters.minor_words);
        let told: u64 = recording.truth("words ").parse().unwrap();
        // There are seven domains.
        let more = words.checked_sub(told);
        assert!(
            more.is_some_and(|more| more < 7 * AFTERWARDS),
            "{words}, {told}"
        );
        for (domain, work) in &found.0 {
            assert_eq!(work[0].kind, CollectionKind::Reading, "{domain}");
            // Beginning and end of the program, or of three domains.
            let readings = if *domain == 0 { 2 } else { 6 };
            assert_eq!(found.count(*domain, CollectionKind::Reading), readings);
        }
        // In 5.4 and 5.5 the runtime forgets domains that have ended.
        if compiler.version.starts_with("5.3") {
            let totals: [(&str, Counter); 3] = [
                ("minor_words", |counters| counters.minor_words),
                ("promoted_words", |counters| counters.promoted_words),
                ("major_words", |counters| counters.major_words),
            ];
            for (name, counter) in totals {
                assert_eq!(Some(found.total(counter)), printed(&recording, name));
            }
        }
    }
}

/// The names of the runtime, and ours.
const EVENTS: [(&str, CollectionKind); 3] = [
    ("EV_MINOR", CollectionKind::Minor),
    ("EV_MAJOR_SLICE", CollectionKind::Slice),
    ("EV_MAJOR_FINISH_CYCLE", CollectionKind::Forced),
];

/// In each domain there are the same pieces of work, of the same length.
#[test]
fn the_runtime_tells_of_the_same_work() {
    for compiler in with_domains("the_runtime_tells_of_the_same_work") {
        let collector = Program::new(compiler.program("collector"));
        let domains = Program::new(compiler.program("ocaml5/collections")).args(&["ordinary"]);
        for program in [collector, domains] {
            let folder = tempfile::tempdir().unwrap();
            let program = with_events(program, folder.path());
            let recording = program.record(&["--rate", "1e-4"]);
            let found = Collections::read(&recording.trace);
            let mut theirs = read(compiler, folder.path(), &EVENTS.map(|(name, _)| name));
            for domain in found.0.keys() {
                leave_out_forced(&mut theirs, *domain);
                for (name, kind) in EVENTS {
                    let theirs = theirs.remove(&(*domain, name)).unwrap_or_default();
                    compare(compiler, &found.of(*domain, kind), &theirs, name);
                }
            }
            assert!(theirs.is_empty(), "{theirs:?}");
        }
    }
}

/// We record the slices of a collection that the program has asked for as one.
fn leave_out_forced(spans: &mut crate::runtime_events::Spans, domain: u16) {
    let forced = spans.get(&(domain, "EV_MAJOR_FINISH_CYCLE")).cloned();
    let forced = forced.unwrap_or_default();
    if let Some(slices) = spans.get_mut(&(domain, "EV_MAJOR_SLICE")) {
        slices.retain(|slice| !forced.iter().any(|forced| forced.has(*slice)));
    }
}

fn compare(compiler: &Compiler, ours: &[Collection], theirs: &[Span], name: &str) {
    let version = &compiler.version;
    assert_eq!(ours.len(), theirs.len(), "{name} ({version})");
    // What the recorder does at the end is inside of theirs, and somebody else may run then. Theirs of forced collections
    // have the beginning of the next cycle too.
    let is_close = |(ours, theirs): &(&Collection, &Span)| {
        let less = theirs.length().saturating_sub(ours.length);
        less <= theirs.length() / 20 || less < 20_000
    };
    let pairs = || ours.iter().zip(theirs);
    for (ours, theirs) in pairs() {
        assert!(
            ours.length <= theirs.length(),
            "{name}: {ours:?} {theirs:?}"
        );
    }
    if name != "EV_MAJOR_FINISH_CYCLE" {
        let close = pairs().filter(is_close).count();
        assert!(
            close * 10 >= ours.len() * 9,
            "{name} ({version}): {close} of {}",
            ours.len()
        );
    }
}

/// The runtime does not say that such finalisers have ended.
#[test]
fn finalisers_may_raise() {
    for compiler in compilers("finalisers_may_raise") {
        let recording = record_with_statistics(&Program::new(compiler.program("finalisers_raise")));
        let found = Collections::read(&recording.trace);
        let (_, last) = found.last(0);
        assert_eq!(
            found.count(0, CollectionKind::Minor),
            last.minor_collections
        );
        let printed = printed(&recording, "forced_major_collections");
        assert_eq!(
            last.forced_major_collections,
            printed.unwrap_or(last.forced_major_collections)
        );
        assert!(found.count(0, CollectionKind::Finalisers) > 0);
    }
}

#[test]
fn counters_are_read_however_a_program_ends() {
    for compiler in compilers("counters_are_read_however_a_program_ends") {
        for way in ["return", "exit", "at_exit", "raise", "thread"] {
            let program = Program::new(compiler.program("exits")).args(&[way]);
            let recording = program.record(&["--rate", "1e-3"]);
            let found = Collections::read(&recording.trace);
            let (kind, last) = found.last(0);
            let what = format!("{way} ({})", compiler.version);
            assert_eq!(kind, CollectionKind::Reading, "{what}");
            assert_eq!(
                found.count(0, CollectionKind::Minor),
                last.minor_collections,
                "{what}"
            );
        }
    }
}

/// A program that allocates less than a minor heap: the runtime is asked at the end.
#[test]
fn a_program_without_collections_has_counters() {
    for compiler in compilers("a_program_without_collections_has_counters") {
        let recording = record_with_statistics(&Program::new(compiler.program("little")));
        let found = Collections::read(&recording.trace);
        let (_, last) = found.last(0);
        assert_eq!(last.minor_collections, 0);
        assert_eq!(Some(last.minor_words), printed(&recording, "minor_words"));
        assert_eq!(Some(last.major_words), printed(&recording, "major_words"));
        assert_eq!(found.count(0, CollectionKind::Reading), 2);
    }
}

/// One recording after the other: each has each collection once.
#[test]
fn programs_that_run_are_recorded_with_counters() {
    for compiler in compilers("programs_that_run_are_recorded_with_counters") {
        let program = compiler.program("steady");
        for start in [Running::start, Running::start_waiting] {
            let running = start(&program, &[]);
            let found = running.attach(&["--explain"]);
            let found = String::from_utf8(found.stdout).unwrap();
            let line = found.lines().last().unwrap();
            assert!(
                line.starts_with("counters of the collector: to be verified"),
                "{found}"
            );
            for n in 0..3 {
                let trace = running.folder.path().join(format!("{n}.ctf"));
                let options = ["--rate", "1e-3", "-o", trace.to_str().unwrap(), "--force"];
                let is_enough = |trace: &Trace| trace.allocations.len() > 2_000;
                attach_until(&trace, is_enough, |period| {
                    running.attach(&[&["--for", period], &options[..]].concat())
                });
                let found = Collections::read(&trace);
                let (kind, first) = found.first(0);
                assert_eq!(kind, CollectionKind::Reading);
                let (_, last) = found.last(0);
                assert_eq!(
                    found.count(0, CollectionKind::Minor),
                    last.minor_collections - first.minor_collections,
                    "recording {n} (OCaml {})",
                    compiler.version
                );
                assert!(last.minor_words > first.minor_words);
            }
            let found = running.attach(&["--explain"]);
            let found = String::from_utf8(found.stdout).unwrap();
            assert!(found.contains("heap, collections: verified"), "{found}");
            assert!(running.finish().status.success());
        }
    }
}
