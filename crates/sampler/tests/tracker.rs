//! Closures: what they are told, and what they may do.

mod common;

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::alone;
use heapline::{Options, Profiler, Tracker};

#[global_allocator]
static ALLOC: heapline::Alloc = heapline::Alloc::system();

#[inline(never)]
fn a_place_of_its_own(size: usize) -> Vec<u8> {
    black_box(vec![1; size])
}

#[test]
fn the_stack_begins_where_the_program_asked_for_memory() {
    let _alone = alone();
    let profiler = Profiler::watch(Options::rate(1.0)).unwrap();
    let block = a_place_of_its_own(4567);
    let sites = profiler.live();
    let site = sites.iter().find(|site| (site.bytes - 4567.0).abs() < 0.1);
    let frames = site.unwrap().stack.frames();
    assert!(
        frames[0].function.ends_with("a_place_of_its_own"),
        "{frames:?}"
    );
    assert!(
        frames[0].file.ends_with("tests/tracker.rs") && frames[0].line == 17,
        "{frames:?}"
    );
    let names: Vec<_> = frames.iter().map(|frame| frame.function.as_str()).collect();
    let test = "the_stack_begins_where_the_program_asked_for_memory";
    assert!(names[1].contains(test), "{names:?}");
    drop(block);
}

/// The standard library allocates in functions that the C library's unwinder calls.
#[test]
fn the_memory_of_a_backtrace_belongs_to_the_function_that_captures_it() {
    let _alone = alone();
    let profiler = Profiler::watch(Options::rate(1.0)).unwrap();
    let backtrace = black_box(std::backtrace::Backtrace::force_capture());
    let sites = profiler.live();
    let test = "the_memory_of_a_backtrace_belongs_to_the_function_that_captures_it";
    // Threads of other tests may start meanwhile, which allocates as well.
    let mut ours = 0;
    for site in sites {
        let frames = site.stack.frames();
        if frames.iter().any(|frame| frame.function.contains(test)) {
            ours += 1;
            assert!(frames[0].function.contains(test), "{frames:?}");
        }
    }
    assert!(ours > 0);
    drop(backtrace);
}

/// Tests are built with line tables only, where inlined functions have no paths.
#[test]
fn functions_of_the_same_name_are_told_apart() {
    struct First(Vec<u8>);
    struct Second(Vec<u8>);
    impl First {
        #[expect(clippy::inline_always, reason = "it must be inlined at any level")]
        #[inline(always)]
        fn new(size: usize) -> Self {
            Self(black_box(vec![1; size]))
        }
    }
    impl Second {
        #[expect(clippy::inline_always, reason = "it must be inlined at any level")]
        #[inline(always)]
        fn new(size: usize) -> Self {
            Self(black_box(vec![1; size]))
        }
    }
    let _alone = alone();
    let profiler = Profiler::watch(Options::rate(1.0)).unwrap();
    let blocks = (First::new(2345), Second::new(3456));
    let sites = profiler.live();
    let name = |size: f64| {
        let site = sites.iter().find(|site| (site.bytes - size).abs() < 0.1);
        site.unwrap().stack.frames()[0].function.clone()
    };
    let names = [name(2345.0), name(3456.0)];
    assert_ne!(names[0], names[1]);
    for name in &names {
        assert!(name.contains("tests/tracker.rs::new:"), "{names:?}");
    }
    assert_eq!(blocks.0.0.len() + blocks.1.0.len(), 5801);
}

#[test]
fn what_is_alive_is_told_by_stack_the_most_first() {
    let _alone = alone();
    let profiler = Profiler::watch(Options::rate(1.0)).unwrap();
    let many: Vec<Vec<u8>> = (0..10).map(|_| a_place_of_its_own(1000)).collect();
    let one = black_box(vec![1_u8; 3000]);
    let sites = profiler.live();
    assert!(sites.is_sorted_by(|a, b| a.bytes >= b.bytes));
    assert!((sites[0].bytes - 10_000.0).abs() < 0.1 && sites[0].sampled == 10);
    assert!((sites[0].blocks - 10.0).abs() < 1e-6);
    assert!((sites[1].bytes - 3000.0).abs() < 0.1);
    drop((many, one));
}

#[test]
fn closures_may_allocate_and_free_and_are_not_sampled() {
    let _alone = alone();
    let calls = Arc::new(AtomicUsize::new(0));
    let kept: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let tracker = {
        let (calls, kept) = (calls.clone(), kept.clone());
        Tracker::new(move |block| {
            calls.fetch_add(1, Ordering::Relaxed);
            // Blocks of its own, kept beyond the closure; and blocks of the program's, freed in it.
            let mut kept = kept.lock().unwrap();
            kept.clear();
            kept.push(vec![1; 10_000]);
            Some(format!("{}", block.size))
        })
    };
    let profiler = Profiler::start(Options::rate(1.0), tracker).unwrap();
    calls.store(0, Ordering::Relaxed);
    for _ in 0..100 {
        drop(a_place_of_its_own(200));
        let block = a_place_of_its_own(300);
        // Freed in the closure for the next one.
        if let Ok(mut kept) = kept.try_lock() {
            kept.push(block);
        }
    }
    let calls = calls.load(Ordering::Relaxed);
    assert!((200..260).contains(&calls), "{calls}");
    drop(profiler);
    assert!(
        kept.lock()
            .unwrap()
            .iter()
            .all(|block| block.iter().all(|byte| *byte == 1))
    );
}

#[test]
fn a_panic_ends_in_the_closure() {
    let _alone = alone();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let tracker = Tracker::new(|block| {
        assert!(block.size != 777, "a mistake");
        Some(())
    });
    let tracker = tracker.on_free(|block, ()| assert!(block.size != 888, "another mistake"));
    let profiler = Profiler::start(Options::rate(1.0), tracker).unwrap();
    let blocks = [777, 888, 999].map(a_place_of_its_own);
    let mut sizes = Vec::with_capacity(100);
    profiler.for_each_live(|block, ()| sizes.push(block.size));
    drop(blocks);
    // And it goes on.
    let block = a_place_of_its_own(666);
    let mut count = 0;
    profiler.for_each_live(|block, ()| count += usize::from(block.size == 666));
    drop((profiler, block));
    std::panic::set_hook(hook);
    assert!(!sizes.contains(&777) && sizes.contains(&888) && sizes.contains(&999));
    assert_eq!(count, 1);
}

#[test]
fn blocks_that_a_closure_does_not_want_are_not_followed() {
    let _alone = alone();
    let freed = Arc::new(AtomicUsize::new(0));
    let count = freed.clone();
    let tracker = Tracker::new(|block| (block.size == 2222).then_some(7_u8));
    let tracker = tracker.on_free(move |_, seven| {
        assert_eq!(seven, 7);
        count.fetch_add(1, Ordering::Relaxed);
    });
    let profiler = Profiler::start(Options::rate(1.0), tracker).unwrap();
    drop([1111, 2222, 3333].map(a_place_of_its_own));
    assert_eq!(freed.load(Ordering::Relaxed), 1);
    drop(profiler);
}

#[test]
fn what_was_kept_is_dropped_with_the_profiler() {
    let _alone = alone();
    let kept = Arc::new(());
    let copy = kept.clone();
    let tracker = Tracker::new(move |_| Some(copy.clone()));
    let profiler = Profiler::start(Options::rate(1.0), tracker).unwrap();
    let block = a_place_of_its_own(100);
    assert!(Arc::strong_count(&kept) > 2);
    drop(profiler);
    drop(block);
    assert_eq!(Arc::strong_count(&kept), 1);
}

/// The sampler's memory is not the program's: what the C library's allocator has in use is what it
/// has without it.
#[test]
fn the_profiled_heap_has_nothing_of_the_samplers() {
    let _alone = alone();
    // SAFETY: it only counts.
    let in_use = || unsafe { libc::mallinfo2() }.uordblks;
    let profiler = Profiler::watch(Options::rate(1.0)).unwrap();
    let before = in_use();
    let blocks: [Vec<u8>; 200] = std::array::from_fn(|n| a_place_of_its_own(500 + n));
    let sites = profiler.live();
    black_box(
        sites
            .iter()
            .map(|site| site.stack.frames().len())
            .sum::<usize>(),
    );
    drop(sites);
    let grown = in_use().saturating_sub(before);
    drop(blocks);
    drop(profiler);
    // Sampled blocks are in places of ours too, and names take megabytes.
    assert!(grown < 100_000, "{grown} bytes more");
}
