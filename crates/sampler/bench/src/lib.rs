//! The workloads that are run with each allocator, called from `main` of the programs.

use std::collections::BTreeMap;
use std::hint::black_box;

/// Blocks that are freed at once: nothing but the allocator is measured.
pub fn pairs(rounds: u64) {
    for n in 0..rounds {
        drop(black_box(Box::new([n; 8])));
    }
}

/// [`pairs`] in the program itself: there the compiler may inline the allocator's code into the
/// loop, and knows the size.
#[macro_export]
macro_rules! inlined_pairs {
    ($rounds:expr) => {
        for n in 0..$rounds {
            drop(std::hint::black_box(Box::new([n; 8])));
        }
    };
}

/// A program that allocates a lot, and does something with it: a map of texts and numbers, of which
/// some thousand are alive. A round has three or four allocations.
pub fn work(rounds: u64) -> usize {
    let mut map: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut random = 1_u64;
    let mut sum = 0;
    for n in 0..rounds {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let key = format!("{:x}-{}", random >> 50, n % 7);
        let numbers = (0..random >> 58).collect();
        if let Some(old) = map.insert(key, numbers) {
            sum += old.len();
        }
        if map.len() > 5000
            && let Some((key, numbers)) = map.pop_first()
        {
            sum += key.len() + numbers.iter().filter(|n| **n % 3 == 0).count();
        }
    }
    black_box(sum)
}

/// The processor's time that this process has had, in nanoseconds.
pub fn cpu_nanos() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it is a place for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Runs what the arguments say: a workload, and how often. Prints the time that it took.
#[macro_export]
macro_rules! run {
    () => {{
        let arguments: Vec<String> = std::env::args().collect();
        let rounds: u64 = arguments[2].parse().expect("a number of rounds");
        let start = $crate::cpu_nanos();
        match arguments[1].as_str() {
            "pairs" => $crate::pairs(rounds),
            "inlined" => $crate::inlined_pairs!(rounds),
            "work" => drop($crate::work(rounds)),
            other => panic!("{other}?"),
        }
        println!("{}", $crate::cpu_nanos() - start);
    }};
}
