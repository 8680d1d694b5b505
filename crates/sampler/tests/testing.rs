//! Assertions on memory: what they count, and what they say.

use std::hint::black_box;
use std::panic::catch_unwind;

use heapline::testing::{measure, measure_all_threads};

#[global_allocator]
static ALLOC: heapline::Alloc = heapline::Alloc::system();

#[inline(never)]
fn three_blocks() -> Vec<u8> {
    let first = black_box(vec![1_u8; 100]);
    let second = black_box(vec![2_u8; 1000]);
    drop(first);
    drop(black_box(vec![3_u8; 50]));
    second
}

#[test]
fn every_byte_is_counted() {
    let (block, usage) = measure(three_blocks);
    assert_eq!((usage.total.bytes, usage.total.blocks), (1150, 3));
    assert_eq!((usage.peak.bytes, usage.peak.blocks), (1100, 2));
    assert_eq!((usage.alive.bytes, usage.alive.blocks), (1000, 1));
    drop(block);
    let ((), usage) = measure(|| drop(three_blocks()));
    usage.assert_total(1150).assert_peak(1100).assert_no_leaks();
}

#[test]
fn a_block_that_grows_is_counted_at_each_size_but_is_one_at_the_peak() {
    let ((), usage) = measure(|| {
        let mut numbers: Vec<u8> = Vec::with_capacity(10);
        black_box(&mut numbers).reserve_exact(100);
        black_box(&mut numbers).reserve_exact(1000);
    });
    assert_eq!((usage.total.bytes, usage.total.blocks), (1110, 3));
    assert_eq!(usage.peak.blocks, 1);
    usage.assert_no_leaks();
}

fn message(check: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let error = catch_unwind(check).unwrap_err();
    let fixed = error.downcast_ref::<&str>().map(|said| (*said).to_owned());
    fixed.unwrap_or_else(|| error.downcast_ref::<String>().unwrap().clone())
}

#[test]
fn a_measurement_inside_of_another_is_refused_and_not_waited_for() {
    for all_threads in [false, true] {
        let said = message(move || {
            measure(|| {
                if all_threads {
                    measure_all_threads(|| ())
                } else {
                    measure(|| ())
                }
            });
        });
        assert!(
            said.contains("inside of a closure that is being measured"),
            "{said}"
        );
        // The next one is not affected.
        measure(|| drop(three_blocks())).1.assert_total(1150);
    }
}

#[test]
fn a_failure_shows_where_the_memory_is_from() {
    let (kept, usage) = measure(three_blocks);
    let said = message(|| drop(usage.assert_total(1000).clone()));
    assert!(said.starts_with("1150 bytes in 3 blocks were allocated; at most 1000 bytes"));
    assert!(said.contains("1000 bytes in 1 blocks"), "{said}");
    assert!(
        said.contains("three_blocks (") && said.contains("testing.rs:14)"),
        "{said}"
    );
    let said = message(|| drop(usage.assert_peak(10).clone()));
    assert!(said.contains("were alive at the peak"), "{said}");
    let said = message(|| drop(usage.assert_no_leaks().clone()));
    assert!(
        said.contains("1000 bytes in 1 blocks were alive at the end"),
        "{said}"
    );
    drop(kept);
}

#[inline(never)]
fn another_place() {
    drop(black_box(vec![1_u8; 77]));
}

#[test]
fn sites_can_be_asked_for() {
    let ((), usage) = measure(|| {
        drop(three_blocks());
        another_place();
    });
    assert_eq!(usage.total.bytes, 1227);
    assert_eq!(usage.inside("another_place").total.bytes, 77);
    assert_eq!(usage.inside("three_blocks").total.bytes, 1150);
    assert_eq!(usage.inside("testing.rs:13").total.bytes, 100);
    assert_eq!(usage.inside("nowhere").total.blocks, 0);
    usage.inside("another_place").assert_peak(0);
}

#[test]
fn other_threads_count_only_if_they_are_asked_for() {
    let in_thread = || {
        let thread = std::thread::spawn(|| drop(black_box(vec![1_u8; 123_456])));
        thread.join().unwrap();
    };
    let ((), usage) = measure(in_thread);
    assert!(usage.total.bytes < 100_000, "{}", usage.total);
    let ((), usage) = measure_all_threads(in_thread);
    assert!(usage.total.bytes >= 123_456, "{}", usage.total);
}

#[test]
fn a_panic_in_between_ends_the_measurement() {
    let result = catch_unwind(|| measure(|| panic!("as it happens")));
    assert!(result.is_err());
    let ((), usage) = measure(another_place);
    assert_eq!(usage.total.bytes, 77);
}
