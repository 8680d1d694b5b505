//! Benchmarks of Heapline, run by `cargo xtask bench`.
//!
//! Times are the best of several runs, since the machine may be busy; what a run costs in
//! instructions is counted by valgrind around [`measured`].
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it is a program that prints a table"
)]

mod heaps;
mod questions;

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use heapline_export::dump::{Format, dump};
use heapline_profile::reports::{HotspotOptions, hotspots};
use heapline_profile::{Estimator, Profile, Query, Scope, StoreOptions, reports};
use heapline_testkit::generate::{Program, random_stacks};
use heapline_trace::{Event, Options, Reader, Writer};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The measured operations.
const OPERATIONS: [(&str, Operation); 9] = [
    ("decode", |trace| decode(trace, true)),
    ("decode, no stacks", |trace| decode(trace, false)),
    ("decode and encode", encode),
    ("info", info),
    ("load", |trace| load(trace).map(|_| 0)),
    ("load and hotspots", load_and_hotspots),
    ("dump memtrace", |trace| text(trace, Format::Memtrace)),
    ("dump csv", |trace| text(trace, Format::Csv)),
    ("dump jsonl", |trace| text(trace, Format::JsonLines)),
];

/// Takes a trace; returns how many bytes it made.
type Operation = fn(&[u8]) -> Outcome<u64>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        // For valgrind: one operation, once, on a trace that takes it seconds.
        ["--count", operation] => {
            let trace = program(100_000).trace();
            let found = OPERATIONS.iter().find(|(name, _)| *name == operation);
            let (_, operation) = found.ok_or("no such operation")?;
            measured(*operation, &trace)?;
            println!("{}", events(&trace)?);
            Ok(())
        }
        // For the cost of recording: blocks in a trace.
        ["--blocks", path] => {
            let trace = std::fs::read(path)?;
            println!("{}", overview(&trace)?.events.allocations());
            Ok(())
        }
        // A heap snapshot, or millions of blocks.
        ["--heap", which] => heaps::table(which),
        ["--list"] => {
            for (name, _) in OPERATIONS {
                println!("{name}");
            }
            Ok(())
        }
        [] => {
            let trace = random_stacks(1_000_000, 1);
            table("a million allocations with random stacks", &trace)
        }
        [path] => {
            let trace = decompressed(path)?;
            table(path, &trace)?;
            questions::table(&load(&trace)?)
        }
        _ => Err("usage: heapline-bench [TRACE]".into()),
    }
}

fn program(allocations: usize) -> Program {
    Program {
        allocations,
        ..Program::default()
    }
}

/// A trace in memory, so that decompression is not measured.
fn decompressed(path: &str) -> Outcome<Vec<u8>> {
    let mut trace = Vec::new();
    heapline_trace::open_decompressed(path)?.read_to_end(&mut trace)?;
    Ok(trace)
}

fn table(name: &str, trace: &[u8]) -> Outcome {
    let megabytes = trace.len() as f64 / 1e6;
    let events = events(trace)? as f64;
    println!("{name}: {megabytes:.1} MB, {events} events\n");
    println!(
        "{:<20} {:>9} {:>10} {:>9} {:>12}",
        "", "ms", "MB/s", "ns/event", "MB/s made"
    );
    for (name, operation) in OPERATIONS {
        let mut best = Duration::MAX;
        let mut made = 0;
        let begun = Instant::now();
        // At least three times, and for two seconds.
        for run in 0.. {
            if run >= 3 && begun.elapsed() > Duration::from_secs(2) {
                break;
            }
            let started = Instant::now();
            made = measured(operation, trace)?;
            best = best.min(started.elapsed());
        }
        let seconds = best.as_secs_f64();
        let speed = match made {
            0 => String::new(),
            made => format!("{:.0}", made as f64 / 1e6 / seconds),
        };
        println!(
            "{name:<20} {:>9.1} {:>10.0} {:>9.1} {speed:>12}",
            seconds * 1e3,
            megabytes / seconds,
            seconds * 1e9 / events
        );
    }
    Ok(())
}

/// The function whose instructions valgrind counts.
#[inline(never)]
fn measured(operation: Operation, trace: &[u8]) -> Outcome<u64> {
    operation(black_box(trace))
}

fn events(trace: &[u8]) -> Outcome<u64> {
    let mut events = 0;
    Reader::new(trace, Options::new().stacks(false))?.for_each(|_, _| events += 1)?;
    Ok(events)
}

fn decode(trace: &[u8], stacks: bool) -> Outcome<u64> {
    let mut reader = Reader::new(trace, Options::new().stacks(stacks))?;
    let (mut words, mut frames, mut ids) = (0, 0, 0);
    reader.for_each(|event, _| match event {
        Event::Alloc(alloc) => {
            words += alloc.length;
            frames += alloc.stack.new_frames().len();
        }
        Event::Promote(mark) | Event::Collect(mark) => ids ^= mark.id,
    })?;
    black_box((words, frames, ids));
    Ok(0)
}

fn encode(trace: &[u8]) -> Outcome<u64> {
    let mut reader = Reader::new(trace, Options::new())?;
    let mut writer = Writer::new(io::sink(), reader.info())?;
    let mut result = Ok(());
    reader.for_each(|event, locations| {
        if result.is_ok() {
            result = writer.event(&event, locations);
        }
    })?;
    result?;
    writer.finish()?;
    Ok(0)
}

fn info(trace: &[u8]) -> Outcome<u64> {
    black_box(overview(trace)?);
    Ok(0)
}

fn overview(trace: &[u8]) -> Outcome<reports::Overview> {
    Ok(reports::info(&load_with(trace, false)?))
}

fn load(trace: &[u8]) -> Outcome<Profile> {
    load_with(trace, true)
}

fn load_with(trace: &[u8], stacks: bool) -> Outcome<Profile> {
    let options = heapline_formats::Options {
        stacks,
        ..heapline_formats::Options::default()
    };
    let mut reader = heapline_formats::Reader::new(io::Cursor::new(trace.to_vec()), options)?;
    Ok(Profile::load(&mut reader, StoreOptions::default())?)
}

fn load_and_hotspots(trace: &[u8]) -> Outcome<u64> {
    let profile = load(trace)?;
    let scope = Scope::new(&profile, &Query::default(), Estimator::default());
    black_box(hotspots(&scope, &HotspotOptions::default()));
    Ok(0)
}

fn text(trace: &[u8], format: Format) -> Outcome<u64> {
    /// Counts what is written, and forgets it.
    struct Counter(u64);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(black_box(bytes).len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut reader = Reader::new(trace, Options::new())?;
    let mut out = Counter(0);
    dump(&mut reader, format, &mut out)?;
    Ok(out.0)
}
