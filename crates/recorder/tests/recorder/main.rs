//! What is told to a recorder is in the trace, whatever happens to the program.
//!
//! Traces are read back strictly: any flaw is an error.

mod follow;
mod live;
mod overlay;
mod pauses;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Barrier;

use heapline_recorder::gaps::Unit;
use heapline_recorder::tail::{self, Ending, State};
use heapline_recorder::{
    Block, Frame, FrameSink, Options, Reading, Recorder, Source, TaggedCode, contained,
};
use heapline_testkit::OwnedEvent;
use heapline_trace::{Event, Flaw, FlawKind, Reader};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

const BLOCK: Block = Block {
    length: 3,
    samples: 1,
    source: Source::Minor,
};

fn options(trace: &Path) -> Options {
    Options {
        trace: trace.to_owned(),
        supervised: true,
        sample_rate: 1e-3,
        unit: Unit::Word,
        context: Some("a test".to_owned()),
        runtime_params: "v=0".to_owned(),
        max_size: None,
        max_allocated: None,
        seed: None,
        stack_depth: None,
        first_id: 0,
    }
}

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.ctf");
    (folder, trace)
}

fn name(code: u64, frames: &mut FrameSink<'_>) {
    frames.push(Frame {
        file: b"test.ml",
        name: format!("Test.f{code}").as_bytes(),
        line: u32::try_from(code).unwrap(),
        start_char: 1,
        end_char: 2,
    });
}

/// Records a block whose stack depends on `n`, and returns its id.
fn alloc(recorder: &Recorder, domain: usize, n: u64) -> u64 {
    try_alloc(recorder, domain, n).expect("it is recorded")
}

/// The same if it is recorded, as the agent does it: fast if possible.
fn try_alloc(recorder: &Recorder, domain: usize, n: u64) -> Option<u64> {
    let stack = [n % 97, n % 13, n % 5].map(TaggedCode::new);
    match recorder.lane(domain) {
        Some(lane) => match lane.try_alloc(Reading::now(), BLOCK, &stack) {
            Ok(id) => Some(id),
            Err(pending) => recorder.finish(pending?, BLOCK, &stack, name),
        },
        None => recorder.alloc(domain, BLOCK, &stack, name),
    }
}

fn promote(recorder: &Recorder, domain: usize, id: u64) {
    let lane = recorder.lane(domain);
    if !lane.is_some_and(|lane| lane.try_promote(Reading::now(), id)) {
        recorder.promote(domain, id);
    }
}

fn collect(recorder: &Recorder, domain: usize, id: u64) {
    let lane = recorder.lane(domain);
    if !lane.is_some_and(|lane| lane.try_collect(Reading::now(), id)) {
        recorder.collect(domain, id);
    }
}

/// What a trace holds: blocks by domain, promotions, collections.
#[derive(Debug, Default, PartialEq, Eq)]
struct Content {
    blocks: Vec<(u16, u64)>,
    promoted: Vec<u64>,
    collected: Vec<u64>,
    /// The innermost function of each block.
    sites: Vec<String>,
}

fn read(trace: &Path) -> Content {
    let options = heapline_trace::Options::new().strict(true);
    let mut reader = Reader::open(trace, options).unwrap();
    let mut content = Content::default();
    reader
        .for_each(|event, locations| match event {
            Event::Alloc(alloc) => {
                content.blocks.push((alloc.domain, alloc.id));
                let site = alloc.stack.site().unwrap();
                let frame = locations.frames(site).next_back().unwrap();
                content.sites.push(frame.name_lossy().into_owned());
            }
            Event::Promote(mark) => content.promoted.push(mark.id),
            Event::Collect(mark) => content.collected.push(mark.id),
        })
        .unwrap();
    let ended_early = |flaw: &Flaw| matches!(flaw.kind, FlawKind::EndedEarly(_));
    assert!(reader.damage().flaws().iter().all(ended_early));
    // The plain reader checks all that memtrace's does.
    let mut bytes = Vec::new();
    heapline_trace::open(trace)
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    let second = heapline_testkit::plain::read(&bytes).unwrap();
    let is_alloc = |event: &&OwnedEvent| matches!(event, OwnedEvent::Alloc { .. });
    let allocations = second.events.iter().filter(is_alloc);
    assert_eq!(allocations.count(), content.blocks.len());
    content
}

#[test]
fn what_is_recorded_is_read_back() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    for n in 0..30_000 {
        let id = alloc(recorder, 0, n);
        assert_eq!(id, n);
        if n % 3 == 0 {
            promote(recorder, 0, id);
        }
        if n % 2 == 0 {
            collect(recorder, 0, id);
        }
    }
    recorder.stop();
    let outcome = tail::finish(&trace).unwrap().unwrap();
    assert_eq!(outcome.state, State::Ended);
    assert_eq!((outcome.blocks, outcome.recovered), (30_000, 0));
    assert!(outcome.early_end.is_none());
    assert!(!tail::path(&trace).exists());
    let content = read(&trace);
    assert_eq!(content.blocks.len(), 30_000);
    assert_eq!(content.promoted.len(), 10_000);
    assert_eq!(content.collected.len(), 15_000);
    assert_eq!(content.sites[1234], format!("Test.f{}", 1234 % 97));
}

#[test]
fn nothing_is_lost_when_the_program_ends_without_a_word() {
    // Whether it ends after few events or many, with a packet just written or nearly full.
    for count in [0, 1, 2, 100, 2500, 2600, 2700, 5000, 20_011] {
        let (_folder, trace) = place();
        let recorder = Recorder::start(&options(&trace)).unwrap();
        for n in 0..count {
            let id = alloc(recorder, 0, n);
            collect(recorder, 0, id);
        }
        // As if it had been killed: nobody stops the recorder.
        let before = std::fs::read(&trace).unwrap();
        let outcome = tail::finish(&trace).unwrap().unwrap();
        assert_eq!(outcome.state, State::Recording);
        let after = std::fs::read(&trace).unwrap();
        assert!(after.starts_with(&before), "what was written stays");
        let content = read(&trace);
        assert_eq!(content.blocks.len() as u64, count);
        assert_eq!(content.collected.len() as u64, count);
        recorder.abandon();
    }
}

#[test]
fn finishing_twice_does_nothing() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    alloc(recorder, 0, 1);
    recorder.abandon();
    assert_eq!(tail::finish(&trace).unwrap().unwrap().recovered, 2);
    assert!(tail::finish(&trace).unwrap().is_none());
    assert_eq!(read(&trace).blocks.len(), 1);
}

#[test]
fn the_tail_of_a_process_that_runs_is_left_alone() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    alloc(recorder, 0, 1);
    assert!(tail::finish_if_ended(&trace).unwrap().is_none());
    alloc(recorder, 0, 2);
    recorder.stop();
    // What has ended is complete though its process runs.
    tail::finish_if_ended(&trace).unwrap().unwrap();
    assert_eq!(read(&trace).blocks.len(), 2);
}

#[test]
fn a_file_that_is_no_tail_is_refused() {
    let (_folder, trace) = place();
    std::fs::write(&trace, b"").unwrap();
    for bytes in [&b""[..], b"heaptail", &[7; 5000]] {
        std::fs::write(tail::path(&trace), bytes).unwrap();
        let error = tail::finish(&trace).unwrap_err();
        assert!(error.to_string().contains("not the tail of a trace"));
    }
}

#[test]
fn domains_record_at_the_same_time() {
    const DOMAINS: usize = 4;
    const BLOCKS: u64 = 25_000;
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    let barrier = Barrier::new(DOMAINS);
    std::thread::scope(|scope| {
        for domain in 0..DOMAINS {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                for n in 0..BLOCKS {
                    let id = alloc(recorder, domain, n);
                    // Another domain may find it dead.
                    if n % 7 == 0 {
                        recorder.promote(domain, id);
                    }
                    recorder.collect(domain, id);
                }
            });
        }
    });
    recorder.stop();
    let outcome = tail::finish(&trace).unwrap().unwrap();
    assert_eq!(outcome.lanes, DOMAINS as u64);
    let mut content = read(&trace);
    for domain in 0..4 {
        let of_it = content.blocks.iter().filter(|(d, _)| *d == domain);
        assert_eq!(of_it.count() as u64, BLOCKS);
    }
    let mut ids: Vec<u64> = content.blocks.iter().map(|(_, id)| *id).collect();
    ids.sort_unstable();
    content.collected.sort_unstable();
    assert_eq!(ids, content.collected, "each dies once");
    ids.dedup();
    assert_eq!(ids.len() as u64, BLOCKS * DOMAINS as u64, "ids are unique");
}

#[test]
fn a_domain_may_tell_the_fate_of_anothers_block() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    let first = alloc(recorder, 1, 1);
    let second = alloc(recorder, 2, 2);
    promote(recorder, 1, second);
    collect(recorder, 1, second);
    promote(recorder, 0, first);
    collect(recorder, 0, first);
    recorder.stop();
    tail::finish(&trace).unwrap();
    let content = read(&trace);
    assert_eq!(content.promoted.len(), 2);
    assert_eq!(content.collected.len(), 2);
}

#[test]
fn a_recording_that_is_stopped_ignores_what_comes_later() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    let id = alloc(recorder, 0, 1);
    recorder.stop();
    promote(recorder, 0, id);
    collect(recorder, 0, id);
    assert!(
        recorder
            .alloc(0, BLOCK, &[TaggedCode::new(1)], name)
            .is_none()
    );
    recorder.stop();
    tail::finish(&trace).unwrap();
    let content = read(&trace);
    assert_eq!((content.blocks.len(), content.collected.len()), (1, 0));
}

#[test]
fn without_a_supervisor_no_tail_is_left() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&Options {
        supervised: false,
        ..options(&trace)
    })
    .unwrap();
    alloc(recorder, 0, 1);
    assert!(tail::path(&trace).exists());
    recorder.stop();
    assert!(!tail::path(&trace).exists());
    assert_eq!(read(&trace).blocks.len(), 1);
}

#[test]
fn a_limit_keeps_the_ends_of_all_blocks_that_are_recorded() {
    let limit = 600_000;
    let (_folder, trace) = place();
    let recorder = Recorder::start(&Options {
        max_size: Some(limit),
        max_allocated: None,
        ..options(&trace)
    })
    .unwrap();
    let mut ids = Vec::new();
    for n in 0..200_000 {
        let stack = [n % 97, n % 13, n % 5].map(TaggedCode::new);
        ids.extend(recorder.alloc(0, BLOCK, &stack, name));
    }
    for id in &ids {
        recorder.promote(0, *id);
        recorder.collect(0, *id);
    }
    recorder.stop();
    let outcome = tail::finish(&trace).unwrap().unwrap();
    assert_eq!(outcome.early_end.unwrap().reason, Ending::Full);
    let len = std::fs::metadata(&trace).unwrap().len();
    assert!(len <= limit, "{len} is more than {limit}");
    assert!(len > limit / 3, "{len} leaves most of {limit} unused");
    let content = read(&trace);
    assert_eq!(content.blocks.len(), ids.len());
    assert_eq!(content.collected.len(), ids.len());
    assert_eq!(content.promoted.len(), ids.len());
}

#[test]
fn a_recorder_in_a_forked_process_knows_its_own_blocks() {
    let (_folder, trace) = place();
    let parent = Recorder::start(&options(&trace)).unwrap();
    let old = alloc(parent, 0, 1);
    parent.abandon();
    let (_folder, trace) = place();
    let child = Recorder::start(&Options {
        first_id: parent.next_id(),
        ..options(&trace)
    })
    .unwrap();
    let new = alloc(child, 0, 2);
    assert!(new > old);
    collect(child, 0, old);
    collect(child, 0, new);
    child.stop();
    tail::finish(&trace).unwrap();
    let content = read(&trace);
    assert_eq!(content.blocks, [(0, 0)]);
    assert_eq!(content.collected, [0]);
}

#[test]
fn a_block_that_is_half_written_is_completed_though_no_more_are_taken() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&Options {
        max_size: Some(1 << 20),
        max_allocated: None,
        ..options(&trace)
    })
    .unwrap();
    alloc(recorder, 0, 0);
    alloc(recorder, 0, 0);
    let new = [TaggedCode::new(500), TaggedCode::new(501)];
    let lane = recorder.lane(0).unwrap();
    let pending = lane.try_alloc(Reading::now(), BLOCK, &new);
    let pending = pending.unwrap_err().expect("nobody else has the lane");
    // Another domain uses up the room.
    while try_alloc(recorder, 1, 0).is_some() {}
    let id = recorder
        .finish(pending, BLOCK, &new, name)
        .expect("it is taken");
    assert!(recorder.alloc(0, BLOCK, &new, name).is_none());
    collect(recorder, 0, id);
    recorder.stop();
    tail::finish(&trace).unwrap();
    let content = read(&trace);
    assert_eq!(
        content
            .sites
            .iter()
            .filter(|site| *site == "Test.f500")
            .count(),
        1
    );
    assert_eq!(content.collected, [id]);
}

#[test]
fn a_lane_is_for_one_block_at_a_time() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    alloc(recorder, 0, 0);
    let new = [TaggedCode::new(500)];
    let lane = recorder.lane(0).unwrap();
    let pending = lane.try_alloc(Reading::now(), BLOCK, &new).unwrap_err();
    // Nothing gets between the two halves of a block.
    assert!(matches!(
        lane.try_alloc(Reading::now(), BLOCK, &new),
        Err(None)
    ));
    assert!(!lane.try_collect(Reading::now(), 0));
    assert!(recorder.alloc(0, BLOCK, &new, name).is_none());
    let id = recorder
        .finish(pending.unwrap(), BLOCK, &new, name)
        .unwrap();
    assert_eq!(id, 1);
    assert!(lane.try_collect(Reading::now(), id));
    recorder.stop();
    // It is never given back.
    assert!(matches!(
        lane.try_alloc(Reading::now(), BLOCK, &new),
        Err(None)
    ));
    tail::finish(&trace).unwrap();
    assert_eq!(read(&trace).collected, [1]);
}

#[test]
fn a_trace_that_cannot_be_written_is_an_error_at_once() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Recorder::start(&options(folder.path())).is_err());
    assert!(Recorder::start(&options(&folder.path().join("no/such/folder.ctf"))).is_err());
}

#[test]
fn a_panic_ends_the_recording_not_the_program() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    alloc(recorder, 0, 1);
    let stack = [TaggedCode::new(99)];
    let id = contained(None, || {
        recorder.alloc(0, BLOCK, &stack, |_, _| panic!("a bug"))
    });
    assert!(id.is_none());
    assert!(!recorder.is_recording());
    recorder.stop();
    let outcome = tail::finish(&trace).unwrap().unwrap();
    assert_eq!(outcome.early_end.unwrap().reason, Ending::Bug);
    assert_eq!(read(&trace).blocks.len(), 1);
}

#[test]
fn a_file_that_takes_our_number_is_not_written_to() {
    // Programs close files that they do not know; the next one that they open may get the number.
    let (folder, trace) = place();
    let limits = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: limits.maximum,
        ..limits
    };
    // Otherwise ours is beyond what a program may have.
    setrlimit(Resource::Nofile, all).unwrap();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    let theirs = folder.path().join("theirs");
    let replacement = std::fs::File::create(&theirs).unwrap();
    let ours = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .flatten()
        .find(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == trace));
    let number: i32 = ours.unwrap().file_name().to_string_lossy().parse().unwrap();
    let replacement = std::os::fd::AsRawFd::as_raw_fd(&replacement);
    // SAFETY: what had the number is checked by its owner, before it is used.
    let replaced = unsafe { libc::dup2(replacement, number) };
    assert_eq!(replaced, number);
    for n in 0..10_000 {
        alloc(recorder, 0, n);
    }
    recorder.stop();
    tail::finish(&trace).unwrap();
    assert_eq!(std::fs::metadata(&theirs).unwrap().len(), 0);
    assert_eq!(read(&trace).blocks.len(), 10_000);
}

#[test]
fn recorders_that_are_freed_leave_nothing_behind() {
    let (_folder, trace) = place();
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let maps = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let name = trace.to_string_lossy().into_owned();
        maps.lines().filter(|line| line.contains(&name)).count()
    };
    let mut first_id = 0;
    for _ in 0..20 {
        let options = Options {
            first_id,
            ..options(&trace)
        };
        let recorder = Recorder::start(&options).unwrap();
        for domain in 0..3 {
            for n in 0..5_000 {
                let id = alloc(recorder, domain, n);
                recorder.promote(domain, id);
                recorder.collect(domain, id);
            }
        }
        recorder.stop();
        first_id = recorder.next_id();
        // SAFETY: nobody else has it.
        unsafe { Recorder::free(recorder) };
        tail::finish(&trace).unwrap().unwrap();
        let mut reader = Reader::open(&trace, heapline_trace::Options::new().strict(true)).unwrap();
        let mut blocks = 0;
        let count = |event: Event<'_>, _: &_| blocks += u32::from(matches!(event, Event::Alloc(_)));
        reader.for_each(count).unwrap();
        assert_eq!(blocks, 15_000);
        assert_eq!(maps(), 0);
    }
    assert!(descriptors() < 100);
}
