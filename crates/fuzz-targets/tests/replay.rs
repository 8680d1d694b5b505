//! The fuzz targets on their seeds, intact and damaged in ways that are the same in each run.

use heapline_fuzz_targets::{TARGETS, seeds};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Damaged versions of each seed.
const VERSIONS: usize = 12;

/// Longer inputs take too long in a build without optimisation, and have nothing that shorter ones lack.
const MOST_BYTES: usize = 70_000;

fn damage(bytes: &mut Vec<u8>, random: &mut Xoshiro256PlusPlus) {
    for _ in 0..random.random_range(1..=8) {
        if bytes.is_empty() {
            return;
        }
        let place = random.random_range(0..bytes.len());
        match random.random_range(0..4) {
            0 => bytes.truncate(place),
            1 => bytes[place] ^= 1 << random.random_range(0..8),
            2 => bytes[place] = random.random(),
            _ => {
                let end = (place + random.random_range(1..64)).min(bytes.len());
                let copy = bytes[place..end].to_vec();
                let to = random.random_range(0..=bytes.len());
                bytes.splice(to..to, copy);
            }
        }
    }
}

fn replay(name: &str) {
    let (_, run) = TARGETS
        .into_iter()
        .find(|(target, _)| *target == name)
        .unwrap();
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "{name} has no seeds");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    for (_, mut seed) in seeds {
        seed.truncate(MOST_BYTES);
        run(&seed);
        for _ in 0..VERSIONS {
            let mut damaged = seed.clone();
            damage(&mut damaged, &mut random);
            run(&damaged);
        }
    }
}

macro_rules! tests {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn all_targets_are_replayed() {
            let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

tests!(budget definitions heap index keep locations profile reader round_trip spacetime sturgeon tail);
