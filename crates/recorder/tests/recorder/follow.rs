//! Recordings are followed while they grow: at any moment a reader has all of it, once.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use heapline_formats::{Follower, Options, Reader};
use heapline_model::{Batch, Collection, EventKind, GrowingSource, LocationId, Source};
use heapline_profile::query::TimePoint;
use heapline_profile::reports::{self, HotspotOptions};
use heapline_profile::{Estimator, LiveProfile, Profile, Query, Scope, StoreOptions};
use heapline_recorder::{Recorder, tail};
use heapline_testkit::Killed;
use heapline_trace::MAX_WRITTEN_PACKET;
use heapline_trace::tail::layout::{PAGE, SLOT, Word};

use super::live::{BLOCKS, LANES, command, look_while_recording, step};
use super::{alloc, collect, options, place, promote};

/// Any flaw is an error.
fn strict() -> Options {
    Options {
        strict: true,
        ..Options::default()
    }
}

/// An event, and the stack of a birth.
type Told = (u64, u64, EventKind, Vec<String>);

/// The events of each lane, in order.
#[derive(Debug, Default, PartialEq)]
struct Events {
    lanes: BTreeMap<u16, Vec<Told>>,
    names: BTreeMap<LocationId, String>,
    stacks: BTreeMap<u16, Vec<LocationId>>,
    collections: BTreeMap<u16, Vec<Collection>>,
}

impl Events {
    fn add_all(&mut self, source: &mut dyn Source) {
        let mut batch = Batch::default();
        while source.next_batch(&mut batch).unwrap() {
            self.add(&batch);
            batch.clear();
        }
    }

    fn add(&mut self, batch: &Batch) {
        for definition in batch.definitions() {
            assert!(definition.is_named, "names come before they are used");
            let frame = definition.frames().last().unwrap();
            let name = String::from_utf8_lossy(frame.name).into_owned();
            self.names.insert(definition.id, name);
        }
        for work in batch.collections() {
            let lane = self.collections.entry(work.lane).or_default();
            lane.push(*work);
        }
        let mut frames = batch.frames();
        let mut births = batch.births().iter();
        for event in batch.events() {
            let mut stack = Vec::new();
            if event.kind == EventKind::Birth {
                let birth = births.next().unwrap();
                let (new, rest) = frames.split_at(birth.new as usize);
                frames = rest;
                let last = self.stacks.entry(event.lane).or_default();
                last.truncate(birth.shared as usize);
                last.extend_from_slice(new);
                stack = last.iter().map(|id| self.names[id].clone()).collect();
            }
            let told = (event.time, event.block, event.kind, stack);
            self.lanes.entry(event.lane).or_default().push(told);
        }
    }

    fn blocks(&self) -> [u64; LANES] {
        let mut blocks = [0; LANES];
        for (lane, events) in &self.lanes {
            let births = events.iter().filter(|event| event.2 == EventKind::Birth);
            blocks[usize::from(*lane)] = births.count() as u64;
        }
        blocks
    }
}

#[test]
fn a_million_events_are_followed_at_any_moment() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    let mut follower = Follower::open(&trace, strict()).unwrap();
    assert!(follower.is_recording());
    let mut events = Events::default();
    look_while_recording(recorder, || {
        follower.refresh().unwrap();
        events.add_all(&mut follower);
        assert!(!follower.has_ended());
        events.blocks()
    });
    recorder.stop();
    follower.refresh().unwrap();
    events.add_all(&mut follower);
    assert!(follower.has_ended());
    assert!(follower.damage().is_empty());
    let size = follower.size();
    // The finished trace says the same, in one piece.
    tail::finish(&trace).unwrap().unwrap();
    let mut reader = Reader::open(&trace, strict()).unwrap();
    let mut expected = Events::default();
    expected.add_all(&mut reader);
    assert_eq!(expected.blocks(), [BLOCKS; LANES]);
    assert!(events.lanes == expected.lanes, "a lane differs");
    let collections: usize = expected.collections.values().map(Vec::len).sum();
    assert_eq!(collections as u64, LANES as u64 * (BLOCKS / 7));
    assert!(events.collections == expected.collections);
    assert_eq!(size, reader.size());
}

/// All that is known of the blocks that are alive at a time, without what comes later.
fn alive(profile: &Profile, time: TimePoint, until: u64) -> Vec<String> {
    let scope = Scope::new(profile, &Query::live_at(time), Estimator::default());
    let mut blocks = Vec::new();
    scope.for_each_block(|block| {
        let names = scope.stack(block.stack).into_iter();
        let names = names.map(|frame| profile.symbols().function(frame).name.clone());
        let promoted = block.promoted.filter(|time| *time <= until);
        blocks.push(format!(
            "{} {promoted:?} {} {} {:?}",
            block.allocated,
            block.size,
            block.lane,
            names.collect::<Vec<_>>()
        ));
    });
    blocks.sort_unstable();
    blocks
}

fn hotspots(profile: &Profile, time: TimePoint) -> String {
    let scope = Scope::new(profile, &Query::live_at(time), Estimator::default());
    let options = HotspotOptions {
        rows: 1000,
        ..HotspotOptions::default()
    };
    let report = reports::hotspots(&scope, &options);
    // Blocks that come in another order give sums that are rounded otherwise.
    let mut rows: Vec<String> = report
        .rows
        .iter()
        .map(|row| {
            let own = row.own.allocated;
            let (bytes, samples) = (own.bytes, own.samples);
            format!(
                "{} {:.6e} ± {:.6e} {samples}",
                row.label.name, bytes.value, bytes.error
            )
        })
        .collect();
    rows.sort_unstable();
    rows.join("\n")
}

#[test]
fn what_is_alive_now_is_what_the_finished_trace_says_for_that_moment() {
    const ROUNDS: u64 = 12;
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    let source = Follower::open(&trace, strict()).unwrap();
    let mut live = LiveProfile::new(source, StoreOptions::default());
    let mut seen = Vec::new();
    let (at_rest, go_on) = (Barrier::new(LANES + 1), Barrier::new(LANES + 1));
    thread::scope(|scope| {
        for lane in 0..LANES {
            let (at_rest, go_on) = (&at_rest, &go_on);
            scope.spawn(move || {
                let mut kept = Vec::new();
                for round in 0..ROUNDS {
                    // From less than a packet to several.
                    for n in 0..round * round * 97 {
                        let id = alloc(recorder, lane, n);
                        if n % 3 == 0 {
                            promote(recorder, lane, id);
                        }
                        match n % 5 {
                            0 => kept.push(id),
                            1 if n % 2 == 0 => collect(recorder, lane, kept.swap_remove(0)),
                            _ => collect(recorder, lane, id),
                        }
                    }
                    at_rest.wait();
                    go_on.wait();
                }
            });
        }
        for _ in 0..ROUNDS {
            at_rest.wait();
            if let Some(profile) = live.refresh().unwrap() {
                let now = profile.micros(profile.end());
                seen.push((
                    profile.epoch(),
                    now,
                    alive(&profile, TimePoint::End, now),
                    hotspots(&profile, TimePoint::End),
                ));
            }
            assert!(live.refresh().unwrap().is_none(), "nothing has happened");
            // Nothing of the next round is in the same microsecond.
            heapline_testkit::pass_time(Duration::from_millis(1));
            go_on.wait();
        }
    });
    recorder.stop();
    let last = live.refresh().unwrap().expect("its end is news");
    assert!(live.has_ended());
    tail::finish(&trace).unwrap().unwrap();
    let mut reader = Reader::open(&trace, strict()).unwrap();
    let finished = Profile::load(&mut reader, StoreOptions::default()).unwrap();
    assert_eq!(last.events(), finished.events());
    assert_eq!(seen.len() as u64, ROUNDS, "each was seen");
    assert!(seen.is_sorted_by(|a, b| a.0 < b.0), "epochs grow");
    let mut most = 0;
    for (_, time, blocks, rows) in &seen[1..] {
        let at = TimePoint::Micros(*time);
        assert_eq!(*blocks, alive(&finished, at.clone(), *time));
        assert_eq!(*rows, hotspots(&finished, at));
        most = most.max(blocks.len());
    }
    assert!(most > 5000, "enough lives on: {most}");
}

/// Records until it is killed, slowly enough to be followed.
pub(super) fn steady(trace: &Path) {
    let recorder = Recorder::start(&options(trace)).unwrap();
    for lane in 0..LANES {
        step(recorder, lane, 0);
    }
    std::io::stdout().write_all(b"recording\n").unwrap();
    for n in 1.. {
        (0..LANES).for_each(|lane| step(recorder, lane, n));
        if n % 100 == 0 {
            heapline_testkit::pass_time(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_program_that_is_killed_has_ended() {
    let (_folder, trace) = place();
    let mut child = Killed(
        command("steady", &trace)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let child = &mut child.0;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("recording")));
    let mut follower = Follower::open(&trace, strict()).unwrap();
    let mut events = Events::default();
    for _ in 0..20 {
        follower.refresh().unwrap();
        events.add_all(&mut follower);
        assert!(!follower.has_ended());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    follower.refresh().unwrap();
    events.add_all(&mut follower);
    assert!(follower.has_ended());
    let before = events.blocks();
    follower.refresh().unwrap();
    events.add_all(&mut follower);
    assert_eq!(events.blocks(), before);
    let mut expected = Events::default();
    expected.add_all(&mut Follower::open(&trace, strict()).unwrap());
    assert!(events.lanes == expected.lanes, "a lane differs");
    assert!(tail::path(&trace).exists(), "a reader leaves it alone");
}

fn record(trace: &Path, blocks: u64) -> &'static Recorder {
    let recorder = Recorder::start(&options(trace)).unwrap();
    for n in 0..blocks {
        alloc(recorder, 0, n);
    }
    recorder
}

#[test]
fn another_recording_under_the_same_name_is_not_mixed_up_with_the_first() {
    let (_folder, trace) = place();
    let first = record(&trace, 5000);
    let mut follower = Follower::open(&trace, strict()).unwrap();
    let mut events = Events::default();
    follower.refresh().unwrap();
    events.add_all(&mut follower);
    alloc(first, 0, 1);
    first.stop();
    let second = record(&trace, 100);
    follower.refresh().unwrap();
    events.add_all(&mut follower);
    assert_eq!(events.blocks()[0], 5001);
    assert!(follower.has_ended());
    second.stop();
}

/// Reads everything that a source has now.
fn read_all(source: &mut dyn Source) -> Result<(), heapline_model::Error> {
    let mut batch = Batch::default();
    while source.next_batch(&mut batch)? {
        batch.clear();
    }
    Ok(())
}

#[test]
fn a_recording_that_is_truncated_is_an_error() {
    for len in [0, 10, 100, 40_000] {
        let (_folder, trace) = place();
        let recorder = record(&trace, 20_000);
        let mut follower = Follower::open(&trace, strict()).unwrap();
        read_all(&mut follower).unwrap();
        for n in 0..20_000 {
            alloc(recorder, 0, n);
        }
        File::options()
            .write(true)
            .open(&trace)
            .unwrap()
            .set_len(len)
            .unwrap();
        follower.refresh().unwrap();
        let error = read_all(&mut follower).expect_err("something is missing");
        assert!(
            error.to_string().contains("open it again"),
            "{len}: {error}"
        );
        recorder.stop();
    }
}

#[test]
fn a_trace_that_is_overwritten_is_an_error_not_nonsense() {
    let (_folder, trace) = place();
    let recorder = record(&trace, 3000);
    let mut follower = Follower::open(&trace, strict()).unwrap();
    read_all(&mut follower).unwrap();
    for n in 0..20_000 {
        alloc(recorder, 0, n);
    }
    recorder.stop();
    let mut bytes = fs::read(&trace).unwrap();
    let middle = bytes.len() / 2;
    bytes[300..middle].fill(0x55);
    fs::write(&trace, bytes).unwrap();
    follower.refresh().unwrap();
    let error = read_all(&mut follower).expect_err("it is noticed");
    let error = error.to_string();
    let is_said = error.contains("overwritten") || error.contains("damaged");
    assert!(is_said, "{error}");
}

#[test]
fn a_recording_that_ended_early_says_so_when_it_is_followed() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&heapline_recorder::Options {
        max_size: Some(1 << 20),
        max_allocated: None,
        ..options(&trace)
    })
    .unwrap();
    let mut live = LiveProfile::new(
        Follower::open(&trace, strict()).unwrap(),
        StoreOptions::default(),
    );
    live.refresh().unwrap();
    let mut n = 0;
    while super::try_alloc(recorder, 0, n).is_some() {
        n += 1;
    }
    recorder.stop();
    let profile = live.refresh().unwrap().unwrap();
    assert!(live.has_ended());
    let kinds: Vec<&str> = profile
        .damage()
        .flaws
        .iter()
        .map(|flaw| &*flaw.kind)
        .collect();
    assert_eq!(kinds, ["ended-early"]);
}

/// Files that anything may have been written to give errors, not panics, and end.
#[test]
fn a_damaged_recording_does_no_harm() {
    let (folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    for n in 0..3000 {
        for lane in 0..LANES {
            alloc(recorder, lane, n);
        }
    }
    let bytes = fs::read(&trace).unwrap();
    let mut tail_bytes = fs::read(tail::path(&trace)).unwrap();
    recorder.stop();
    // Nobody holds a lock on the copy: as if locks were not known.
    tail_bytes[Word::Locked as usize * 8] = 0;
    let copy = folder.path().join("copy.ctf");
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(state >> 33).unwrap() % below
    };
    let mut recordings = 0;
    for round in 0..400 {
        let (mut bytes, mut tail_bytes) = (bytes.clone(), tail_bytes.clone());
        for _ in 0..round % 7 {
            let (at, value) = (random(bytes.len() - 154), random(256));
            bytes[154 + at] = u8::try_from(value).unwrap();
            let (at, value) = (random(tail_bytes.len() - PAGE), random(256));
            tail_bytes[PAGE + at] = u8::try_from(value).unwrap();
            // The words of a lane, and the headers of its packets.
            let (lane, at) = (random(LANES), random(16 * 8));
            let places = [
                0,
                PAGE,
                PAGE + MAX_WRITTEN_PACKET,
                PAGE + 2 * MAX_WRITTEN_PACKET,
            ];
            let place = PAGE + lane * SLOT + places[random(places.len())] + at;
            tail_bytes[place] = u8::try_from(random(256)).unwrap();
        }
        fs::write(&copy, &bytes).unwrap();
        fs::write(tail::path(&copy), &tail_bytes).unwrap();
        let Ok(mut follower) = Follower::open(&copy, Options::default()) else {
            continue;
        };
        recordings += u64::from(follower.is_recording());
        let mut batch = Batch::default();
        for _ in 0..3 {
            let looked = follower.refresh();
            while looked.is_ok() && follower.next_batch(&mut batch).is_ok_and(|more| more) {
                batch.clear();
            }
        }
    }
    assert!(recordings > 300, "{recordings}");
}
