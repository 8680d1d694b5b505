//! Readers lay the tail over the trace, and change neither.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use heapline_recorder::tail::{self, Ending};
use heapline_recorder::{Options, Recorder};
use heapline_trace::tail::layout::{LaneWord, MAX_LANES, PAGE, SLOT, Word, slot};
use heapline_trace::{MAX_WRITTEN_PACKET, Snapshot, TailProblem, whole_packet};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{alloc, collect, options, place, read, try_alloc};

/// All that a reader could change.
fn state(trace: &Path) -> [(Vec<u8>, SystemTime); 2] {
    [trace.to_owned(), tail::path(trace)].map(|path| {
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        (fs::read(&path).unwrap(), modified)
    })
}

#[test]
fn reading_changes_nothing_and_loses_nothing() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    let mut blocks = 0;
    for count in [0, 1, 2, 100, 2500, 2600, 2700, 5000, 20_011] {
        while blocks < count {
            let id = alloc(recorder, 0, blocks);
            collect(recorder, 0, id);
            blocks += 1;
        }
        let before = state(&trace);
        for _ in 0..2 {
            let content = read(&trace);
            assert_eq!(content.blocks.len() as u64, count);
            assert_eq!(content.collected.len() as u64, count);
        }
        assert_eq!(state(&trace), before);
    }
    // What readers saw is what the completed file has.
    let seen = read(&trace);
    recorder.abandon();
    tail::finish(&trace).unwrap().unwrap();
    assert_eq!(read(&trace), seen);
}

#[test]
fn a_header_may_be_ahead_of_its_packet() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    for n in 0..100 {
        alloc(recorder, 0, n);
    }
    recorder.abandon();
    let seen = read(&trace);
    // The last id and time are stored before the size: the program may be killed in between.
    let mut bytes = fs::read(tail::path(&trace)).unwrap();
    let header = 2 * PAGE;
    for (field, ahead) in [(60, 1), (16, 1000)] {
        let at = header + field;
        let value = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        set(&mut bytes, at, value + ahead);
    }
    fs::remove_file(tail::path(&trace)).unwrap();
    fs::write(tail::path(&trace), bytes).unwrap();
    assert_eq!(read(&trace), seen);
    tail::finish(&trace).unwrap().unwrap();
    assert_eq!(read(&trace), seen);
}

#[test]
fn a_snapshot_stays_as_it_is() {
    let (folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    for n in 0..3000 {
        alloc(recorder, 0, n);
    }
    let snapshot = Snapshot::open(&trace).unwrap();
    let bytes = |snapshot: &Snapshot| {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut snapshot.reader(), &mut bytes).unwrap();
        bytes
    };
    let first = bytes(&snapshot);
    assert_eq!(first.len() as u64, snapshot.size());
    for n in 0..30_000 {
        alloc(recorder, usize::from(n % 3 == 0), n);
    }
    assert_eq!(bytes(&snapshot), first, "events came later");
    recorder.stop();
    tail::finish(&trace).unwrap();
    assert_eq!(bytes(&snapshot), first, "it was completed");
    fs::remove_dir_all(folder.path()).unwrap();
    assert_eq!(bytes(&snapshot), first, "it was removed");
}

#[test]
fn a_link_leads_to_the_tail() {
    let (folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    alloc(recorder, 0, 1);
    let link = folder.path().join("latest.ctf");
    std::os::unix::fs::symlink(&trace, &link).unwrap();
    assert_eq!(read(&link).blocks.len(), 1);
    recorder.stop();
}

/// How a trace is read that has a tail which is not its own.
fn assert_ignored(trace: &Path, blocks: usize) {
    let snapshot = Snapshot::open(trace).unwrap();
    let problem = snapshot.problem().expect("a problem");
    assert!(matches!(problem, TailProblem::OtherRecording { .. }));
    assert!(
        problem
            .to_string()
            .ends_with("belongs to another recording; remove it")
    );
    assert_eq!(read(trace).blocks.len(), blocks);
    let before = state(trace);
    assert!(tail::finish(trace).unwrap().is_none());
    assert_eq!(state(trace), before, "finishing leaves it alone too");
}

#[test]
fn the_tail_of_another_recording_is_ignored() {
    let (_old_folder, old) = place();
    let recorder = Recorder::start(&options(&old)).unwrap();
    alloc(recorder, 0, 1);
    alloc(recorder, 0, 2);
    recorder.abandon();
    // Of the same process, under the same name, a moment later.
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    alloc(recorder, 0, 1);
    recorder.stop();
    tail::finish(&trace).unwrap();
    fs::copy(tail::path(&old), tail::path(&trace)).unwrap();
    assert_ignored(&trace, 1);
}

#[test]
fn a_copy_of_the_trace_that_was_written_anew_does_not_get_its_tail() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    for n in 0..4000 {
        alloc(recorder, 0, n);
    }
    recorder.abandon();
    // As `heapline cut` does it: same process, same start.
    let mut reader = heapline_trace::Reader::open(&trace, heapline_trace::Options::new()).unwrap();
    let mut writer = heapline_trace::Writer::new(Vec::new(), reader.info()).unwrap();
    reader
        .for_each(|event, locations| writer.event(&event, locations).unwrap())
        .unwrap();
    fs::write(&trace, writer.finish().unwrap()).unwrap();
    assert_ignored(&trace, 4000);
}

#[test]
fn a_tail_that_is_something_else_is_ignored() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&Options {
        supervised: false,
        ..options(&trace)
    })
    .unwrap();
    alloc(recorder, 0, 1);
    recorder.stop();
    for bytes in [&b""[..], b"heaptail", &[7; 5000]] {
        fs::write(tail::path(&trace), bytes).unwrap();
        let snapshot = Snapshot::open(&trace).unwrap();
        assert!(matches!(
            snapshot.problem(),
            Some(TailProblem::Unreadable { .. })
        ));
        assert_eq!(read(&trace).blocks.len(), 1);
    }
}

#[test]
fn a_second_recording_of_the_same_name_leaves_the_first_ones_memory_alone() {
    let (_folder, trace) = place();
    let first = Recorder::start(&options(&trace)).unwrap();
    alloc(first, 0, 1);
    let refused = Recorder::start(&options(&trace)).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy);
    // Nothing keeps users from removing files.
    fs::remove_file(&trace).unwrap();
    fs::remove_file(tail::path(&trace)).unwrap();
    let second = Recorder::start(&options(&trace)).unwrap();
    alloc(second, 0, 1);
    // Writing to a page that was cut off would be a signal.
    for n in 0..10_000 {
        alloc(first, 0, n);
    }
    assert!(
        try_alloc(first, 1, 1).is_none(),
        "there is no room for a lane"
    );
    first.stop();
    alloc(second, 1, 2);
    assert_eq!(read(&trace).blocks.len(), 2);
    second.stop();
}

fn set(tail: &mut [u8], at: usize, value: u64) {
    tail[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Makes a tail as heapline wrote it first.
fn downgrade(trace: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(tail::path(trace)).unwrap();
    set(&mut bytes, Word::Version as usize * 8, 1);
    for word in [Word::StartTime, Word::Locked] {
        set(&mut bytes, word as usize * 8, 0);
    }
    // It had no packet of collections.
    let mut lanes = bytes.split_off(PAGE);
    for lane in lanes.chunks_exact_mut(SLOT) {
        for word in [LaneWord::Domain, LaneWord::Written] {
            set(lane, word as usize * 8, 0);
        }
        bytes.extend_from_slice(&lane[..slot(1)]);
    }
    change(&mut bytes);
    // The recorder has the old one mapped.
    fs::remove_file(tail::path(trace)).unwrap();
    fs::write(tail::path(trace), bytes).unwrap();
}

#[test]
fn tails_of_version_1_are_read() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    for n in 0..6000 {
        alloc(recorder, usize::from(n % 2 == 0), n);
    }
    recorder.abandon();
    downgrade(&trace, |_| {});
    let content = read(&trace);
    assert_eq!(content.blocks.len(), 6000);
    tail::finish(&trace).unwrap().unwrap();
    assert_eq!(read(&trace), content);
}

#[test]
fn a_packet_that_version_1_was_writing_is_put_in_its_place() {
    for written in [0, 50, 1000] {
        let (_folder, trace) = place();
        let recorder = Recorder::start(&options(&trace)).unwrap();
        for n in 0..6000 {
            alloc(recorder, usize::from(n % 2 == 0), n);
        }
        recorder.abandon();
        // The second lane's packet is on its way; behind it is the first one's packet of names.
        let mut bytes = fs::read(&trace).unwrap();
        let place = bytes.len() as u64;
        downgrade(&trace, |tail| {
            let (first, second) = tail[PAGE..].split_at_mut(slot(1));
            set(second, LaneWord::Place as usize * 8, place + 1);
            set(second, LaneWord::Writing as usize * 8, 0);
            let packet = whole_packet(&second[PAGE..][..MAX_WRITTEN_PACKET]).unwrap();
            bytes.extend_from_slice(&packet[..written]);
            bytes.resize(usize::try_from(place).unwrap() + packet.len(), 0);
            let names = &mut first[PAGE + MAX_WRITTEN_PACKET..];
            if let Some(packet) = whole_packet(names) {
                bytes.extend_from_slice(packet);
                names[..4].fill(0);
            }
        });
        fs::write(&trace, bytes).unwrap();
        let content = read(&trace);
        assert_eq!(content.blocks.len(), 6000);
        tail::finish(&trace).unwrap().unwrap();
        assert_eq!(read(&trace), content);
    }
}

#[test]
fn what_a_full_disk_does_not_take_is_in_the_tail() {
    // The limit is the process's: a process of its own is needed.
    let (_folder, trace) = place();
    let child = super::live::child("disk_full", &trace);
    assert!(child.status.success(), "{child:?}");
    let recorded: usize = fs::read_to_string(trace.with_extension("count"))
        .unwrap()
        .parse()
        .unwrap();
    let content = read(&trace);
    assert_eq!(content.blocks.len(), recorded);
    let outcome = tail::finish(&trace).unwrap().unwrap();
    assert_eq!(outcome.early_end.unwrap().reason, Ending::Unwritable);
    assert!(outcome.left.is_none());
    assert_eq!(read(&trace), content);
}

/// Records until the file may not grow any more.
pub(super) fn disk_full(trace: &Path) {
    let recorder = Recorder::start(&options(trace)).unwrap();
    for lane in 0..3 {
        alloc(recorder, lane, 0);
    }
    let mut blocks: u64 = 3;
    let limit = Rlimit {
        // Far above the tail, which has its place already.
        current: Some(400_000),
        ..getrlimit(Resource::Fsize)
    };
    setrlimit(Resource::Fsize, limit).unwrap();
    for n in 1.. {
        let lane = usize::try_from(n % 3).unwrap();
        if try_alloc(recorder, lane, n).is_none() {
            break;
        }
        blocks += 1;
    }
    assert!(!recorder.is_recording());
    recorder.stop();
    let count = trace.with_extension("count");
    fs::write(count, blocks.to_string()).unwrap();
}

#[test]
fn a_tail_may_claim_anything() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&options(&trace)).unwrap();
    for n in 0..3000 {
        alloc(recorder, 0, n);
    }
    recorder.abandon();
    let original = fs::read(tail::path(&trace)).unwrap();
    fs::remove_file(tail::path(&trace)).unwrap();
    let words = (0..16).map(|word| word * 8);
    let lane = words.clone().map(|at| PAGE + at);
    let headers = [0, 1, 2].map(|packet| 2 * PAGE + packet * MAX_WRITTEN_PACKET);
    let headers = headers
        .iter()
        .flat_map(|at| (0..9).map(move |field| at + 8 * field));
    for at in words.chain(lane).chain(headers) {
        for value in [0, 1, 2, MAX_LANES as u64, u64::MAX, u64::MAX / 2, 1 << 32] {
            for version in [1, 2, 3] {
                let mut bytes = original.clone();
                set(&mut bytes, Word::Version as usize * 8, version);
                set(&mut bytes, at, value);
                fs::write(tail::path(&trace), bytes).unwrap();
                // It may say that nothing was written.
                let options = heapline_trace::Options::new();
                if let Ok(mut reader) = heapline_trace::Reader::open(&trace, options) {
                    reader.for_each(|_, _| ()).unwrap();
                }
            }
        }
    }
}
