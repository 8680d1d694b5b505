//! A trace that another process frees takes no more than its room on disk, and the program never waits.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use heapline_recorder::tail::{self, Ending};
use heapline_recorder::{Options, Recorder};
use heapline_trace::tail::{Pause, Tail};
use rustix::fs::{FallocateFlags, fallocate};

use super::{collect, options, place, try_alloc};

const ROOM: u64 = 1 << 20;

/// Tries to record a block until it succeeds or has failed often.
fn alloc_at_last(recorder: &Recorder) -> Option<u64> {
    (0..1000).find_map(|n| try_alloc(recorder, 0, n))
}

/// There is nobody who could free anything but this thread: if the recorder waited, it would be in vain.
#[test]
fn new_blocks_are_not_recorded_until_there_is_room_again() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&Options {
        max_allocated: Some(ROOM),
        ..options(&trace)
    })
    .unwrap();
    let pause = || {
        let mut tail = File::open(tail::path(&trace)).unwrap();
        Tail::read(&mut tail).unwrap().pause()
    };
    let mut ids = Vec::new();
    let mut last_end = 0;
    let mut freed = 0;
    for _ in 0..3 {
        let known = pause();
        while let Some(id) = try_alloc(recorder, 0, ids.len() as u64) {
            ids.push(id);
        }
        assert!(recorder.is_recording());
        let now = pause().unwrap();
        assert_eq!(now.end, None);
        assert!(now.start >= last_end && Some(now) != known);
        assert_eq!(alloc_at_last(recorder), None);
        // What becomes of blocks is recorded meanwhile.
        for id in ids.drain(..ids.len() / 2) {
            collect(recorder, 0, id);
        }
        let file = File::options().write(true).open(&trace).unwrap();
        let data = file.metadata().unwrap();
        assert!(data.blocks() * 512 <= ROOM);
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let end = data.len() / 4096 * 4096;
        fallocate(&file, how, freed, end - freed).unwrap();
        freed = end;
        ids.extend(alloc_at_last(recorder));
        let Some(Pause {
            start,
            end: Some(end),
        }) = pause()
        else {
            panic!("the pause is over");
        };
        assert!(start == now.start && end >= start);
        last_end = end;
    }
    recorder.stop();
    assert!(try_alloc(recorder, 0, 1).is_none());
    let mut tail = File::open(tail::path(&trace)).unwrap();
    assert_eq!(
        Tail::read(&mut tail).unwrap().pause().unwrap().end,
        Some(last_end)
    );
}

/// A pause is no end, but without room for the ends of blocks there is nothing left to do.
#[test]
fn a_recording_ends_if_nothing_is_freed() {
    let (_folder, trace) = place();
    let recorder = Recorder::start(&Options {
        max_allocated: Some(ROOM),
        ..options(&trace)
    })
    .unwrap();
    let mut ids = Vec::new();
    while let Some(id) = try_alloc(recorder, 0, ids.len() as u64) {
        ids.push(id);
    }
    // Far more than there is room for: each is said to die again and again.
    for id in ids.iter().cycle().take(2_000_000) {
        collect(recorder, 0, *id);
    }
    assert!(!recorder.is_recording());
    assert!(alloc_at_last(recorder).is_none());
    recorder.stop();
    let outcome = tail::finish(&trace).unwrap().unwrap();
    assert_eq!(outcome.early_end.unwrap().reason, Ending::Full);
}
