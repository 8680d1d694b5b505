//! Reading while the program records, and after it was killed.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use heapline_recorder::{
    CollectionKind, CollectorCounters, CollectorWork, Phase, Reading, Recorder, TaggedCode, tail,
};
use heapline_trace::{Alloc, Collection, Event, Locations, Mark, Reader, Visitor};

use super::{BLOCK, collect, name, options, place, promote};

pub(super) const LANES: usize = 3;

/// Codes that blocks are allocated from: so many that packets of names are filled too.
const CODES: u64 = 20_000;

/// Blocks of a lane, all lanes together a million events.
pub(super) const BLOCKS: u64 = 170_000;

/// Records the `n`th block of a lane, and its death.
pub(super) fn step(recorder: &Recorder, lane: usize, n: u64) {
    let stack = [n % CODES, n % 13, n % 5].map(TaggedCode::new);
    let fast =
        recorder
            .lane(lane)
            .map(|lane| match lane.try_alloc(Reading::now(), BLOCK, &stack) {
                Ok(id) => Some(id),
                Err(pending) => {
                    pending.and_then(|pending| recorder.finish(pending, BLOCK, &stack, name))
                }
            });
    let id = fast.flatten();
    let id = id.unwrap_or_else(|| recorder.alloc(lane, BLOCK, &stack, name).unwrap());
    if n % 1000 == 999 {
        // An id of another lane makes a packet begin.
        promote(recorder, lane, id + 10_000_000);
    }
    collect(recorder, lane, id);
    if n % 7 == 6 {
        let now = Reading::now();
        recorder.collection(lane, &work(now, n));
    }
}

/// The work of the collector after the `n`th block of a lane.
fn work(now: Reading, n: u64) -> CollectorWork {
    CollectorWork {
        kind: if n.is_multiple_of(2) {
            CollectionKind::Minor
        } else {
            CollectionKind::Slice
        },
        began: now,
        ended: now,
        phase: n.is_multiple_of(3).then_some(Phase::Sweep),
        counters: (!n.is_multiple_of(5)).then(|| CollectorCounters {
            minor_words: n << 20,
            // It goes back now and then.
            heap_words: n * 7919 % 1000,
            ..CollectorCounters::default()
        }),
    }
}

/// Compares what was read of the collector in a lane with what was recorded.
pub(super) fn check_collections(lane: u16, found: &[Collection]) {
    for (number, (found, n)) in found.iter().zip((6..).step_by(7)).enumerate() {
        let expected = work(Reading::now(), n);
        assert_eq!(found.domain, lane);
        assert_eq!(found.kind, expected.kind, "{number}");
        assert_eq!(found.length, 0);
        assert_eq!(found.phase, expected.phase);
        assert_eq!(found.counters, expected.counters, "{number}");
    }
    assert!(found.is_sorted_by_key(|work| work.start));
}

/// Keeps the work of the collector, by lane.
#[derive(Default)]
struct Collections([Vec<Collection>; LANES]);

impl Visitor for Collections {
    fn alloc(&mut self, _: &Alloc<'_>, _: &Locations) {}
    fn promote(&mut self, _: Mark, _: &Locations) {}
    fn collect(&mut self, _: Mark, _: &Locations) {}
    fn collection(&mut self, work: &Collection) {
        self.0[usize::from(work.domain)].push(*work);
    }
}

/// Reads the work of the collector, which is that of so many blocks.
fn check_collections_of(trace: &Path, blocks: [u64; LANES]) {
    let mut reader = Reader::open(trace, heapline_trace::Options::new()).unwrap();
    let mut found = Collections::default();
    while reader.visit_packet(&mut found).unwrap().is_some() {}
    for ((lane, found), blocks) in (0..).zip(&found.0).zip(blocks) {
        assert_eq!(found.len() as u64, blocks / 7);
        check_collections(lane, found);
    }
}

/// Reads a trace, which has no flaw and tells of each lane what it did first. Returns how many
/// blocks each lane has.
fn read_prefix(trace: &Path) -> [u64; LANES] {
    let options = heapline_trace::Options::new().strict(true);
    let mut reader = Reader::open(trace, options).unwrap();
    let mut blocks = [0; LANES];
    let mut collected = [0; LANES];
    let mut promoted = [0; LANES];
    let mut last = [None; LANES];
    reader
        .for_each(|event, locations| {
            let lane = usize::from(event.domain());
            match event {
                Event::Alloc(alloc) => {
                    assert_eq!(blocks[lane], collected[lane], "one is not collected");
                    let frame = locations.frames(alloc.stack.site().unwrap()).next_back();
                    let expected = blocks[lane] % CODES;
                    assert_eq!(frame.unwrap().name, format!("Test.f{expected}").as_bytes());
                    blocks[lane] += 1;
                    last[lane] = Some(alloc.id);
                }
                Event::Promote(mark) => {
                    promoted[lane] += 1;
                    assert_eq!(last[lane], Some(mark.id - 10_000_000));
                }
                Event::Collect(mark) => {
                    collected[lane] += 1;
                    assert_eq!(last[lane], Some(mark.id));
                }
            }
        })
        .unwrap();
    assert!(reader.damage().is_empty());
    for lane in 0..LANES {
        assert!(blocks[lane] - collected[lane] <= 1, "at most one lives");
        assert!(collected[lane] / 1000 <= promoted[lane]);
        assert!(promoted[lane] <= blocks[lane] / 1000);
    }
    blocks
}

/// Records a million events, and looks at them meanwhile: everything is there that was recorded before a
/// look, and nothing that is recorded after it. `look` returns how many blocks each lane has.
pub(super) fn look_while_recording(recorder: &Recorder, mut look: impl FnMut() -> [u64; LANES]) {
    let done = [const { AtomicU64::new(0) }; LANES];
    let so_far = || {
        let counts = done.iter().map(|done| done.load(Ordering::SeqCst));
        counts.collect::<Vec<u64>>()
    };
    thread::scope(|scope| {
        for (lane, done) in done.iter().enumerate() {
            scope.spawn(move || {
                for n in 0..BLOCKS {
                    step(recorder, lane, n);
                    done.store(n + 1, Ordering::SeqCst);
                }
            });
        }
        let mut looks = 0;
        loop {
            let before = so_far();
            let blocks = look();
            let after = so_far();
            for lane in 0..LANES {
                assert!(before[lane] <= blocks[lane], "something is missing");
                assert!(blocks[lane] <= after[lane] + 1, "there is too much");
            }
            looks += 1;
            if before == [BLOCKS; LANES] {
                assert!(looks > 1);
                break;
            }
        }
    });
}

#[test]
fn a_recording_is_read_at_any_moment() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    look_while_recording(recorder, || read_prefix(&trace));
    recorder.stop();
    assert_eq!(read_prefix(&trace), [BLOCKS; LANES]);
    check_collections_of(&trace, [BLOCKS; LANES]);
    tail::finish(&trace).unwrap().unwrap();
    assert_eq!(read_prefix(&trace), [BLOCKS; LANES]);
    check_collections_of(&trace, [BLOCKS; LANES]);
}

#[test]
fn a_program_that_is_killed_loses_nothing() {
    for round in 0_u64..40 {
        let (_folder, trace) = place();
        let mut child = command("endless", &trace)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Its first lines are the test framework's.
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("recording")));
        // From the first events to well after the first packets.
        heapline_testkit::pass_time(Duration::from_micros(round * round * 97));
        if round % 2 == 0 {
            // Reading it meanwhile must not matter.
            read_prefix(&trace);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let before = [fs::read(&trace), fs::read(tail::path(&trace))].map(Result::unwrap);
        let blocks = read_prefix(&trace);
        let done = fs::read(trace.with_extension("count")).unwrap();
        for (lane, count) in done.as_chunks().0.iter().enumerate() {
            let count = u64::from_le_bytes(*count);
            assert!(count <= blocks[lane], "{count} were recorded: {blocks:?}");
        }
        assert_eq!(read_prefix(&trace), blocks);
        let after = [fs::read(&trace), fs::read(tail::path(&trace))].map(Result::unwrap);
        assert!(before == after, "reading has changed something");
        tail::finish_if_ended(&trace)
            .unwrap()
            .expect("it has ended");
        assert_eq!(read_prefix(&trace), blocks);
    }
}

/// Records until it is killed, and says how much for each lane.
fn endless(trace: &Path) {
    let recorder = Recorder::start(&options(trace)).unwrap();
    let count = File::create(trace.with_extension("count")).unwrap();
    for lane in 0..LANES {
        step(recorder, lane, 0);
        count
            .write_all_at(&1_u64.to_le_bytes(), lane as u64 * 8)
            .unwrap();
    }
    std::io::stdout().write_all(b"recording\n").unwrap();
    thread::scope(|scope| {
        for lane in 0..LANES {
            let count = &count;
            scope.spawn(move || {
                for n in 1_u64.. {
                    step(recorder, lane, n);
                    if n % 16 == 0 {
                        let done = (n + 1).to_le_bytes();
                        count.write_all_at(&done, lane as u64 * 8).unwrap();
                    }
                }
            });
        }
    });
}

/// A process that does what [`in_a_child`] says.
pub(super) fn command(what: &str, trace: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "live::in_a_child", "--nocapture"])
        .env("HEAPLINE_TEST_CHILD", what)
        .env("HEAPLINE_TEST_TRACE", trace);
    command
}

pub(super) fn child(what: &str, trace: &Path) -> Output {
    command(what, trace).output().unwrap()
}

/// Does nothing unless another test has started it.
#[test]
fn in_a_child() {
    let Some(what) = std::env::var_os("HEAPLINE_TEST_CHILD") else {
        return;
    };
    let trace = std::env::var_os("HEAPLINE_TEST_TRACE").unwrap();
    match what.to_str() {
        Some("endless") => endless(Path::new(&trace)),
        Some("steady") => super::follow::steady(Path::new(&trace)),
        Some("disk_full") => super::overlay::disk_full(Path::new(&trace)),
        _ => panic!("what is {}?", what.display()),
    }
}
