//! Every block is what the program asked for, and is known from its birth to its death, whatever
//! the program does with it.

mod common;

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::cell::RefCell;
use std::sync::mpsc;
use std::thread;

use common::{Event, alone, logged};
use heapline::{Options, Profiler, StartError};

#[global_allocator]
static ALLOC: heapline::Alloc = heapline::Alloc::system();

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// Rates at which the same must hold: all blocks are sampled, some are, hardly any.
const RATES: [f64; 4] = [1.0, 0.3, 0.01, 1e-5];

#[test]
fn at_rate_one_every_block_is_seen_and_its_death_too() {
    let _alone = alone();
    let (profiler, log) = logged(Options::rate(1.0));
    let block = vec![7_u8; 1234];
    let other = Box::new([1_u64; 99]);
    assert_eq!(
        log.of(&[1234, 792]),
        [(Event::Alloc, 1234), (Event::Alloc, 792)]
    );
    drop(block);
    assert_eq!(log.of(&[1234])[1..], [(Event::Free, 1234)]);
    drop(other);
    assert_eq!(log.of(&[792])[1..], [(Event::Free, 792)]);
    drop(profiler);
}

#[test]
fn a_block_is_hit_once_for_each_byte_at_rate_one() {
    let _alone = alone();
    let profiler = Profiler::watch(Options::rate(1.0)).unwrap();
    for size in [1, 8, 9, 1000, 65_536, 1 << 20] {
        // SAFETY: the size is not 0.
        let block = unsafe { alloc(layout(size, 1)) };
        let mut hits = Vec::new();
        profiler.for_each_live(|block, ()| {
            if block.size == size {
                hits.push(block.hits);
            }
        });
        assert_eq!(hits, [size], "{size} bytes");
        // SAFETY: it was allocated just so.
        unsafe { dealloc(block, layout(size, 1)) };
    }
}

#[test]
fn blocks_have_their_size_alignment_and_content() {
    let _alone = alone();
    for rate in RATES {
        let profiler = Profiler::watch(Options::rate(rate).seed(1)).unwrap();
        let mut held = Vec::new();
        for round in 0..3000_usize {
            let size = 1 + round * 37 % 5000 + if round % 97 == 0 { 100_000 } else { 0 };
            let layout = layout(size, 1 << (round % 14));
            let zeroed = round % 3 == 0;
            // SAFETY: the size is not 0.
            let block = unsafe {
                if zeroed {
                    alloc_zeroed(layout)
                } else {
                    alloc(layout)
                }
            };
            assert!(!block.is_null() && block.addr().is_multiple_of(layout.align()));
            // SAFETY: it is as large, and zeroed blocks are initialised.
            unsafe {
                if zeroed {
                    let bytes = std::slice::from_raw_parts(block, size);
                    assert!(bytes.iter().all(|byte| *byte == 0));
                }
                block.write_bytes(round.to_le_bytes()[0], size);
            }
            held.push((block, layout, round));
            if held.len() > 50 {
                let (block, layout, round) = held.swap_remove(round % 50);
                // SAFETY: it was written to and is freed as it was allocated.
                unsafe {
                    let bytes = std::slice::from_raw_parts(block, layout.size());
                    assert!(bytes.iter().all(|byte| *byte == round.to_le_bytes()[0]));
                    dealloc(block, layout);
                }
            }
        }
        for (block, layout, _) in held {
            // SAFETY: as above.
            unsafe { dealloc(block, layout) };
        }
        drop(profiler);
    }
}

#[test]
fn blocks_keep_their_content_when_they_get_another_size() {
    let _alone = alone();
    for rate in RATES {
        let profiler = Profiler::watch(Options::rate(rate).seed(2)).unwrap();
        for align in [1, 8, 64, 8192] {
            let mut size = 24;
            // SAFETY: blocks are used with the layout that they have at the time.
            unsafe {
                let mut block = alloc(layout(size, align));
                block.write_bytes(5, size);
                let sizes = [
                    25,
                    4000,
                    70_000,
                    65_536,
                    65_535,
                    1 << 20,
                    3 << 20,
                    100_000,
                    60,
                    8,
                ];
                for new_size in sizes {
                    block = realloc(block, layout(size, align), new_size);
                    assert!(!block.is_null() && block.addr().is_multiple_of(align));
                    let kept = size.min(new_size).min(24);
                    let bytes = std::slice::from_raw_parts(block, kept);
                    assert!(bytes.iter().all(|byte| *byte == 5), "{size} to {new_size}");
                    size = new_size;
                    block.write_bytes(5, size.min(24));
                }
                dealloc(block, layout(size, align));
            }
        }
        drop(profiler);
    }
}

/// A length from the network, say. There is no memory for it, and no time for a loop over its hits.
#[test]
fn requests_of_any_size_fail_at_once_and_are_no_allocations() {
    let _alone = alone();
    for rate in [1.0, 0.9, 0.01, 1e-5] {
        let (profiler, log) = logged(Options::rate(rate));
        let mut small = vec![1_u8; 100];
        let mut large = vec![1_u8; 1 << 20];
        let sizes = [1 << 50, 1 << 58, isize::MAX.unsigned_abs() - 7];
        for size in sizes {
            // SAFETY: the sizes are not 0; the blocks are of the layouts that they are given with.
            unsafe {
                assert!(alloc(layout(size, 8)).is_null());
                assert!(alloc_zeroed(layout(size, 8)).is_null());
                assert!(realloc(small.as_mut_ptr(), layout(100, 1), size).is_null());
                assert!(realloc(large.as_mut_ptr(), layout(1 << 20, 1), size).is_null());
            }
        }
        assert_eq!(log.of(&sizes), []);
        assert!(small.iter().chain(&large).all(|byte| *byte == 1));
        drop((small, large));
        if rate >= 1.0 {
            for size in [100, 1 << 20] {
                let life = [(Event::Alloc, size), (Event::Free, size)];
                assert_eq!(log.of(&[size]), life, "is still known after the failure");
            }
        }
        drop(profiler);
    }
}

#[test]
fn what_is_known_of_a_block_goes_with_it_when_it_gets_another_size() {
    let _alone = alone();
    let (profiler, log) = logged(Options::rate(1.0));
    let mut numbers: Vec<u8> = Vec::with_capacity(111);
    numbers.push(1);
    numbers.reserve_exact(2222);
    numbers.reserve_exact(222_222);
    numbers.shrink_to(333);
    drop(numbers);
    let events = log.of(&[111, 2223, 222_223, 333]);
    let realloc = |before, size| (Event::Realloc { before }, size);
    assert_eq!(
        events,
        [
            (Event::Alloc, 111),
            realloc(111, 2223),
            realloc(2223, 222_223),
            realloc(222_223, 333),
            (Event::Free, 333),
        ]
    );
    drop(profiler);
}

#[test]
fn over_aligned_blocks_are_sampled_too() {
    let _alone = alone();
    let (profiler, log) = logged(Options::rate(1.0));
    for align in [16, 64, 4096, 1 << 16, 1 << 18] {
        for size in [77_usize, 77_777] {
            // SAFETY: the size is not 0, and it is freed as it was allocated.
            unsafe {
                let block = alloc(layout(size, align));
                assert_eq!(block.addr() % align, 0);
                block.write_bytes(1, size);
                dealloc(block, layout(size, align));
            }
        }
    }
    let events = log.of(&[77, 77_777]);
    assert_eq!(events.len(), 20);
    drop(profiler);
}

#[test]
fn types_without_a_size_are_no_blocks() {
    let _alone = alone();
    let (profiler, log) = logged(Options::rate(1.0));
    let nothing = Box::new(());
    let empty: Vec<u64> = Vec::new();
    drop((nothing, empty));
    assert_eq!(log.of(&[0]), []);
    drop(profiler);
}

#[test]
fn blocks_that_another_thread_frees_are_recognised() {
    let _alone = alone();
    let (profiler, log) = logged(Options::rate(1.0));
    let (sender, receiver) = mpsc::channel::<Vec<u8>>();
    let other = thread::spawn(move || receiver.into_iter().for_each(drop));
    for _ in 0..100 {
        sender.send(vec![0; 4321]).unwrap();
        sender.send(vec![0; 123_456]).unwrap();
    }
    drop(sender);
    other.join().unwrap();
    let events = log.of(&[4321, 123_456]);
    assert_eq!(events.len(), 400);
    assert!(!log.alive().contains_key(&4321) && !log.alive().contains_key(&123_456));
    drop(profiler);
}

#[test]
fn threads_may_end_before_their_blocks_do_and_others_take_their_place() {
    let _alone = alone();
    let (profiler, log) = logged(Options::rate(1.0));
    let kept: Vec<Vec<u8>> = (0..50)
        .map(|_| thread::spawn(|| vec![1; 5432]).join().unwrap())
        .collect();
    let mut threads = Vec::new();
    profiler.for_each_live(|block, _| {
        if block.size == 5432 {
            threads.push(block.thread);
        }
    });
    assert_eq!(threads.len(), 50);
    assert!(
        threads.iter().all(|thread| *thread < 20),
        "numbers are used again: {threads:?}"
    );
    drop(kept);
    assert_eq!(log.of(&[5432]).len(), 100);
    drop(profiler);
}

/// Frees and allocates blocks when its thread ends.
struct AtTheEnd(RefCell<Vec<u8>>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        *self.0.borrow_mut() = vec![0; 6543];
        self.0.borrow_mut().reserve_exact(60_000);
    }
}

thread_local! {
    static LAST: AtTheEnd = const { AtTheEnd(RefCell::new(Vec::new())) };
    static LATER: AtTheEnd = const { AtTheEnd(RefCell::new(Vec::new())) };
}

#[test]
fn destructors_of_thread_local_variables_may_allocate_and_free() {
    let _alone = alone();
    for rate in RATES {
        let (profiler, log) = logged(Options::rate(rate).seed(3));
        for _ in 0..20 {
            let thread = thread::spawn(|| {
                LAST.with(|last| *last.0.borrow_mut() = vec![0; 7654]);
                let large = vec![0_u8; 200_000];
                LATER.with(|later| *later.0.borrow_mut() = large);
            });
            thread.join().unwrap();
        }
        let alive = log.alive();
        for size in [7654, 6543, 200_000, 60_000] {
            assert_eq!(alive.get(&size), None, "{size} bytes at rate {rate}");
        }
        drop(profiler);
    }
}

#[test]
fn blocks_outlive_the_profiler() {
    let _alone = alone();
    let (profiler, log) = logged(Options::rate(1.0));
    let block = vec![3_u8; 2345];
    let large = vec![3_u8; 234_567];
    drop(profiler);
    assert!(block.iter().chain(&large).all(|byte| *byte == 3));
    drop((block, large));
    assert_eq!(
        log.of(&[2345]),
        [(Event::Alloc, 2345)],
        "nobody is called any more"
    );
    // And there can be another one.
    let (profiler, log) = logged(Options::rate(1.0));
    drop(vec![1_u8; 2345]);
    assert_eq!(log.of(&[2345]).len(), 2);
    drop(profiler);
}

#[test]
fn the_rate_can_be_changed() {
    let _alone = alone();
    let (profiler, log) = logged(Options::rate(1e-9).seed(4));
    drop(vec![1_u8; 3456]);
    assert_eq!(log.of(&[3456]), []);
    profiler.set_rate(1.0).unwrap();
    drop(vec![1_u8; 3456]);
    assert_eq!(log.of(&[3456]).len(), 2);
    profiler.set_rate(1e-9).unwrap();
    drop(vec![1_u8; 3456]);
    assert_eq!(log.of(&[3456]).len(), 2);
    assert!(matches!(profiler.set_rate(0.0), Err(StartError::Rate(_))));
}

#[test]
fn one_profiler_at_a_time_and_only_with_a_rate() {
    let _alone = alone();
    let profiler = Profiler::watch(Options::every(1 << 19)).unwrap();
    assert!(matches!(
        Profiler::watch(Options::rate(0.5)),
        Err(StartError::Running)
    ));
    drop(profiler);
    for rate in [0.0, -1.0, 1.5, f64::NAN] {
        let refused = Profiler::watch(Options::rate(rate));
        assert!(matches!(refused, Err(StartError::Rate(_))), "{rate}");
    }
    assert!(Profiler::watch(Options::rate(0.5)).is_ok());
}

#[test]
fn threads_that_are_there_already_are_sampled_soon() {
    let _alone = alone();
    let (to_thread, commands) = mpsc::channel::<()>();
    let (done, answers) = mpsc::channel::<()>();
    let other = thread::spawn(move || {
        drop(vec![0_u8; 10]);
        for () in commands {
            drop(vec![0_u8; 66_000]);
            drop(vec![0_u8; 8765]);
            done.send(()).unwrap();
        }
    });
    let (profiler, log) = logged(Options::rate(1.0));
    to_thread.send(()).unwrap();
    answers.recv().unwrap();
    assert_eq!(log.of(&[8765]).len(), 2);
    drop(to_thread);
    other.join().unwrap();
    drop(profiler);
}
