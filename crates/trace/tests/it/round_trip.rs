//! The writer keeps all events: read, write, read gives equal events, and the plain reader,
//! which checks all that memtrace's does, accepts it.

use std::collections::BTreeMap;

use heapline_testkit::{
    OwnedEvent, OwnedFrame, OwnedTrace, fixtures, generate, plain, property_config,
};
use heapline_trace::{
    Block, Encoder, Event, Frame, FrameSink, MAX_WRITTEN_PACKET, OMITTED_FRAMES, Options, Reader,
    Source, TaggedCode, Writer, write_info,
};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A block like any other.
const BLOCK: Block = Block {
    length: 2,
    samples: 1,
    source: Source::Minor,
};

fn rewrite(bytes: &[u8]) -> Vec<u8> {
    let mut reader = Reader::new(bytes, Options::new()).unwrap();
    let mut writer = Writer::new(Vec::new(), reader.info()).unwrap();
    reader
        .for_each(|event, locations| writer.event(&event, locations).unwrap())
        .unwrap();
    writer.finish().unwrap()
}

#[test]
fn traces_survive_being_rewritten() {
    for path in fixtures::traces() {
        if fixtures::is_damaged(&path) {
            continue;
        }
        let name = path.display();
        let original = std::fs::read(&path).unwrap();
        let rewritten = rewrite(&original);
        let before = OwnedTrace::read(&original, Options::new()).unwrap();
        let after = plain::read(&rewritten).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            before.comparable() == after.comparable(),
            "{name}: events changed"
        );
        // Locations that no stack uses are not written.
        for (code, frames) in &after.locations {
            assert_eq!(
                before.locations.get(code),
                Some(frames),
                "{name}: location {code:#x}"
            );
        }
        assert!(
            rewritten.len() as f64 <= 1.003 * original.len() as f64,
            "{name}: {} bytes became {}",
            original.len(),
            rewritten.len()
        );
    }
}

/// One thing that a generated program does.
#[derive(Clone, Debug)]
enum Step {
    Alloc {
        domain: u16,
        pause: u64,
        length: u64,
        samples: u64,
        source: Source,
        keep: usize,
        push: Vec<u64>,
        repeat: usize,
    },
    Promote {
        domain: u16,
        pause: u64,
        of: usize,
    },
    Collect {
        domain: u16,
        pause: u64,
        of: usize,
    },
    /// Ids go on somewhere else, as they do when a domain takes a new piece of them.
    JumpIds(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let domain = 0..4_u16;
    // Up to longer than a packet may last.
    let pause = prop_oneof![8 => 0..50_u64, 1 => 0..40_000_000_u64];
    let number = prop_oneof![
        Just(0_u64),
        1..17_u64,
        17..300_u64,
        250..260_u64,
        65_530..65_540_u64,
        (1_u64 << 31) - 2..(1 << 31) + 2,
        Just(1_u64 << 40)
    ];
    let source = prop_oneof![
        4 => Just(Source::Minor),
        1 => Just(Source::Major),
        1 => Just(Source::External)
    ];
    let code = prop_oneof![8 => 1..50_u64, 1 => 1..1_u64 << 62];
    let alloc = (
        domain.clone(),
        pause.clone(),
        number.clone(),
        prop_oneof![4 => Just(1_u64), 1 => number],
        source,
        0..3000_usize,
        prop::collection::vec(code, 0..40),
        prop_oneof![8 => 1..3_usize, 1 => 1..100_usize],
    )
        .prop_map(
            |(domain, pause, length, samples, source, keep, push, repeat)| Step::Alloc {
                domain,
                pause,
                length,
                samples,
                source,
                keep,
                push,
                repeat,
            },
        );
    prop_oneof![
        6 => alloc,
        1 => (domain.clone(), pause.clone(), any::<usize>()).prop_map(|(domain, pause, of)| Step::Promote { domain, pause, of }),
        2 => (domain, pause, any::<usize>()).prop_map(|(domain, pause, of)| Step::Collect { domain, pause, of }),
        1 => (0..1_000_000_u64).prop_map(Step::JumpIds),
    ]
}

/// The frames of a code: any number of frames, the lines and columns beyond what fits.
fn frames_of(code: u64) -> Vec<OwnedFrame> {
    (0..code % 5)
        .map(|i| OwnedFrame {
            file: format!("file{}.ml", code % 60).into_bytes(),
            name: format!("M.f{}", (code + i) % 200).into_bytes(),
            line: u32::try_from(code % 3_000_000).unwrap(),
            start_char: u16::try_from(code % 5000).unwrap(),
            end_char: u16::try_from((code + 7) % 5000).unwrap(),
        })
        .collect()
}

fn resolve(code: u64, sink: &mut FrameSink<'_>) {
    for frame in frames_of(code) {
        sink.push(Frame {
            file: &frame.file,
            name: &frame.name,
            line: frame.line,
            start_char: frame.start_char,
            end_char: frame.end_char,
        });
    }
}

fn clamped(mut frame: OwnedFrame) -> OwnedFrame {
    frame.line = frame.line.min(0xf_ffff);
    frame.start_char = frame.start_char.min(0xff);
    frame.end_char = frame.end_char.min(0x3ff);
    frame
}

/// Runs the steps; returns the trace and what it should hold.
fn run(steps: &[Step]) -> (Vec<u8>, OwnedTrace) {
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    let mut expected = OwnedTrace::default();
    let mut stacks: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
    let mut ids = Vec::new();
    let (mut next_id, mut time) = (0_u64, 0_u64);
    for step in steps {
        match step {
            Step::JumpIds(by) => next_id += by,
            Step::Alloc {
                domain,
                pause,
                length,
                samples,
                source,
                keep,
                push,
                repeat,
            } => {
                time += pause;
                let stack = stacks.entry(*domain).or_default();
                stack.truncate(*keep);
                for _ in 0..*repeat {
                    stack.extend(push);
                }
                let block = Block {
                    length: *length,
                    samples: *samples,
                    source: *source,
                };
                writer
                    .alloc(*domain, time, next_id, block, stack, resolve)
                    .unwrap();
                expected.events.push(OwnedEvent::Alloc {
                    time,
                    id: next_id,
                    domain: *domain,
                    length: *length,
                    samples: *samples,
                    source: *source,
                    stack: stack.clone(),
                    common_prefix: 0,
                });
                for &code in &*stack {
                    let frames = frames_of(code).into_iter().map(clamped).collect();
                    expected.locations.insert(code, frames);
                }
                ids.push(next_id);
                next_id += 1;
            }
            Step::Promote { domain, pause, of } if !ids.is_empty() => {
                time += pause;
                let id = ids[of % ids.len()];
                writer.promote(*domain, time, id).unwrap();
                expected.events.push(OwnedEvent::Promote {
                    time,
                    id,
                    domain: *domain,
                });
            }
            Step::Collect { domain, pause, of } if !ids.is_empty() => {
                time += pause;
                let id = ids[of % ids.len()];
                writer.collect(*domain, time, id).unwrap();
                expected.events.push(OwnedEvent::Collect {
                    time,
                    id,
                    domain: *domain,
                });
            }
            _ => {}
        }
    }
    (writer.finish().unwrap(), expected)
}

proptest! {
    #![proptest_config(property_config(300))]

    #[test]
    fn any_program_survives(steps in prop::collection::vec(step(), 0..120)) {
        let (bytes, expected) = run(&steps);
        let plain = plain::read(&bytes).map_err(TestCaseError::fail)?;
        prop_assert!(plain.comparable() == expected.events);
        prop_assert_eq!(&plain.locations, &expected.locations);
        let strict = OwnedTrace::read(&bytes, Options::new().strict(true)).unwrap();
        prop_assert!(plain == strict);
    }
}

/// As a recorder does it.
#[test]
fn what_is_tried_first_is_written_the_same() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let info = generate::info();
    let mut bytes = Vec::new();
    write_info(&info, &mut bytes).unwrap();
    let mut encoder = Encoder::new(info.pid, 0, info.start_time);
    let mut expected = Vec::new();
    let mut stack = Vec::new();
    let (mut time, mut allocations, mut tried) = (0, 0, 0);
    for _ in 0..60_000 {
        time += random.next_u64() % 50;
        let now = info.start_time + time;
        if allocations > 0 && random.next_u64().is_multiple_of(2) {
            // Mostly one of the last blocks.
            let id =
                allocations - 1 - (random.next_u64() >> (random.next_u64() % 64)) % allocations;
            if encoder.try_collect(now, id) {
                tried += 1;
            } else {
                encoder.collect(now, id, &mut bytes).unwrap();
            }
            expected.push(OwnedEvent::Collect {
                time,
                id,
                domain: 0,
            });
            continue;
        }
        // Now and then all of the stack changes, also to one that is hundreds of frames deep.
        let many = random.next_u64().is_multiple_of(50);
        let change = |n: u64| usize::try_from(n % if many { 400 } else { 5 }).unwrap();
        stack.truncate(stack.len().saturating_sub(change(random.next_u64())));
        for _ in 0..change(random.next_u64()) {
            stack.push(1 + random.next_u64() % 3000);
        }
        if stack.len() > 1000 {
            stack.clear();
        }
        let block = Block {
            length: 1 + random.next_u64() % 17,
            samples: 1 + u64::from(random.next_u64().is_multiple_of(20)),
            source: Source::Minor,
        };
        let tagged: Vec<TaggedCode> = stack.iter().rev().copied().map(TaggedCode::new).collect();
        match encoder.try_alloc(now, u64::MAX, block, &tagged) {
            Ok(()) => tried += 1,
            Err(pending) => pending
                .finish(now, allocations, block, &tagged, resolve, &mut bytes)
                .unwrap(),
        }
        expected.push(OwnedEvent::Alloc {
            time,
            id: allocations,
            domain: 0,
            length: block.length,
            samples: block.samples,
            source: block.source,
            stack: stack.clone(),
            common_prefix: 0,
        });
        allocations += 1;
    }
    encoder.flush(&mut bytes).unwrap();
    assert!(tried > 40_000, "only {tried} were taken fast");
    let expected = OwnedTrace {
        events: expected,
        ..OwnedTrace::default()
    };
    let plain = plain::read(&bytes).unwrap();
    assert!(plain.comparable() == expected.comparable());
    let strict = OwnedTrace::read(&bytes, Options::new().strict(true)).unwrap();
    assert!(strict.comparable() == expected.comparable());
    for (code, frames) in &strict.locations {
        let named: Vec<OwnedFrame> = frames_of(*code).into_iter().map(clamped).collect();
        assert_eq!(frames, &named);
    }
}

#[test]
fn an_allocation_that_is_not_finished_is_not_taken_for_another() {
    let info = generate::info();
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(info.pid, 0, info.start_time);
    let block = Block {
        length: 1,
        samples: 1,
        source: Source::Minor,
    };
    let (known, new) = ([TaggedCode::new(1)], [TaggedCode::new(2)]);
    encoder
        .alloc(info.start_time, 0, block, &known, resolve, &mut bytes)
        .unwrap();
    let pending = encoder.try_alloc(info.start_time, u64::MAX, block, &new);
    let detached = pending.unwrap_err().detach();
    assert!(encoder.is_half_done());
    let other = encoder.alloc(info.start_time, 1, block, &known, resolve, &mut bytes);
    assert!(other.is_err());
    let pending = encoder.attach(detached);
    pending
        .finish(info.start_time, 1, block, &new, resolve, &mut bytes)
        .unwrap();
    assert_eq!(encoder.next_id(), 2);
}

#[test]
fn stacks_of_thousands_of_frames_are_kept_whole() {
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    // Recursion through three functions, 100,000 frames deep; and 3,000 different frames.
    let recursive: Vec<u64> = (0..100_000).map(|i| 16 + i % 3).collect();
    let straight: Vec<u64> = (0..3000).map(|i| 1000 + i).collect();
    for (id, stack) in [&recursive, &straight, &recursive, &straight]
        .into_iter()
        .enumerate()
    {
        writer
            .alloc(0, 10, id as u64, BLOCK, stack, resolve)
            .unwrap();
    }
    assert_eq!(writer.shortened_stacks(), 0);
    let bytes = writer.finish().unwrap();
    let trace = plain::read(&bytes).unwrap();
    for (event, expected) in trace
        .events
        .iter()
        .zip([&recursive, &straight, &recursive, &straight])
    {
        let OwnedEvent::Alloc { stack, .. } = event else {
            panic!("not an allocation");
        };
        assert!(stack == expected);
    }
}

#[test]
fn a_stack_that_no_packet_can_hold_keeps_both_ends_and_says_so() {
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    let stack: Vec<u64> = (0..10_000).map(|i| 1000 + i).collect();
    writer.alloc(0, 10, 0, BLOCK, &stack, resolve).unwrap();
    assert_eq!(writer.shortened_stacks(), 1);
    let trace = plain::read(&writer.finish().unwrap()).unwrap();
    let OwnedEvent::Alloc { stack: kept, .. } = &trace.events[0] else {
        panic!("not an allocation");
    };
    let gap = kept
        .iter()
        .position(|&code| code == OMITTED_FRAMES)
        .unwrap();
    assert!(gap > 3000, "only {gap} outer frames were kept");
    assert_eq!(kept[..gap], stack[..gap]);
    assert_eq!(kept[gap + 1..], stack[stack.len() - 32..]);
    assert_eq!(
        trace.locations[&OMITTED_FRAMES][0].name,
        b"<frames omitted>"
    );
}

/// Found by fuzzing: a damaged trace may use a location before it names it.
#[test]
fn a_location_that_one_domain_could_not_name_stays_nameless() {
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    writer.alloc(0, 1, 0, BLOCK, &[7], |_, _| ()).unwrap();
    writer.alloc(1, 2, 1, BLOCK, &[7], resolve).unwrap();
    let trace = plain::read(&writer.finish().unwrap()).unwrap();
    assert_eq!(trace.locations[&7], []);
}

/// Found by fuzzing: no program has it, but an empty cache is full of it.
#[test]
fn the_location_zero_is_named_like_any_other() {
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    writer
        .alloc(0, 1, 0, BLOCK, &[0, 0, 7, 0], resolve)
        .unwrap();
    let trace = plain::read(&writer.finish().unwrap()).unwrap();
    assert_eq!(trace.locations.len(), 2);
}

#[test]
fn packets_are_written_whole_and_small() {
    struct Sizes(Vec<usize>);
    impl std::io::Write for Sizes {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.push(bytes.len());
            assert!(
                bytes.starts_with(&[0xc1, 0x1f, 0xfc, 0xc1]),
                "not the start of a packet"
            );
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let bytes = generate::Program {
        allocations: 20_000,
        ..Default::default()
    }
    .trace();
    let mut reader = Reader::new(&bytes[..], Options::new()).unwrap();
    let mut writer = Writer::new(Sizes(Vec::new()), reader.info()).unwrap();
    reader
        .for_each(|event, locations| writer.event(&event, locations).unwrap())
        .unwrap();
    let Sizes(sizes) = writer.finish().unwrap();
    assert!(sizes.len() > 5);
    assert!(sizes.iter().all(|&size| size <= MAX_WRITTEN_PACKET));
    assert_eq!(sizes.iter().sum::<usize>(), bytes.len());
}

#[test]
fn long_names_and_many_inlined_frames_fit_into_packets() {
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    let stack: Vec<u64> = (1..100).collect();
    let long = "x".repeat(5000);
    writer
        .alloc(0, 10, 0, BLOCK, &stack, |code, frames| {
            for i in 0..code * 10 {
                frames.push(Frame {
                    file: format!("{code}-{i}-{long}").as_bytes(),
                    name: b"with\0a NUL",
                    line: 1,
                    start_char: 0,
                    end_char: 1,
                });
            }
        })
        .unwrap();
    let trace = plain::read(&writer.finish().unwrap()).unwrap();
    assert_eq!(trace.locations.len(), stack.len());
    let frame = &trace.locations[&1][0];
    assert!(frame.file.starts_with(b"1-0-xxx") && frame.file.len() == 1000);
    assert_eq!(frame.name, b"with");
}

#[test]
fn time_that_runs_backwards_is_written_standing_still() {
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    for (id, time) in [100, 50, 120].into_iter().enumerate() {
        writer
            .alloc(0, time, id as u64, BLOCK, &[], resolve)
            .unwrap();
    }
    let bytes = writer.finish().unwrap();
    let mut times = Vec::new();
    let mut reader = Reader::new(&bytes[..], Options::new().strict(true)).unwrap();
    reader
        .for_each(|event: Event<'_>, _| times.push(event.time()))
        .unwrap();
    assert_eq!(times, [100, 100, 120]);
}

#[test]
fn what_the_trace_says_of_itself_survives() {
    let mut info = generate::info();
    info.context = None;
    info.initial_domain = 7;
    let bytes = Writer::new(Vec::new(), &info).unwrap().finish().unwrap();
    assert_eq!(
        Reader::new(&bytes[..], Options::new()).unwrap().info(),
        &info
    );
}

/// Found in review: how many frames fit depended on what else was waiting to be written.
#[test]
fn locations_with_many_frames_are_the_same_in_all_domains() {
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    let many = |code: u64, frames: &mut FrameSink<'_>| {
        for i in 0..20 {
            frames.push(Frame {
                file: format!("{code}-{i}-{}", "x".repeat(900)).as_bytes(),
                name: b"M.f",
                line: 1,
                start_char: 0,
                end_char: 1,
            });
        }
    };
    writer.alloc(0, 1, 0, BLOCK, &[1, 2, 3, 4], many).unwrap();
    writer.alloc(1, 2, 1, BLOCK, &[4, 3], many).unwrap();
    writer.alloc(2, 3, 2, BLOCK, &[3, 1], many).unwrap();
    plain::read(&writer.finish().unwrap()).unwrap();
}

#[test]
fn a_writer_that_could_not_write_writes_no_more() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self
                .0
                .checked_sub(1)
                .ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut writer = Writer::new(Full(1), &generate::info()).unwrap();
    writer.alloc(0, 1, 0, BLOCK, &[1], resolve).unwrap();
    assert!(writer.flush().is_err());
    assert!(writer.alloc(0, 2, 1, BLOCK, &[1], resolve).is_err());
    assert!(writer.flush().is_err());
}

#[test]
fn traces_can_be_thinned_while_they_are_copied() {
    // Every third allocation, with its own stack, although stacks are changes to the one before.
    let bytes = generate::Program::default().trace();
    let mut reader = Reader::new(&bytes[..], Options::new()).unwrap();
    let mut writer = Writer::new(Vec::new(), reader.info()).unwrap();
    reader
        .for_each(|event, locations| {
            let Event::Alloc(alloc) = event else {
                return;
            };
            if alloc.id % 3 == 0 {
                writer.event(&event, locations).unwrap();
            } else {
                writer.follow(&alloc, |id| locations.code(id));
            }
        })
        .unwrap();
    let thinned = plain::read(&writer.finish().unwrap()).unwrap();
    let original = OwnedTrace::read(&bytes, Options::new()).unwrap();
    let kept = OwnedTrace {
        events: original
            .events
            .into_iter()
            .filter(|event| matches!(event, OwnedEvent::Alloc { id, .. } if id % 3 == 0))
            .collect(),
        ..original
    };
    assert!(thinned.comparable() == kept.comparable());
}
