//! Lists of single blocks of programs whose truth is known.

use heapline_formats::{Options, Reader};
use heapline_profile::query::Pattern;
use heapline_profile::reports::{BlockSort, Blocks, BlocksOptions, blocks};
use heapline_profile::{Estimator, Profile, Query, Scope, StoreOptions};
use heapline_testkit::lives::{self, Life};
use heapline_testkit::property_config;
use proptest::prelude::*;

fn load(lives: &[Life], rate: f64, seed: u64) -> Profile {
    let bytes = std::io::Cursor::new(lives::trace(lives, rate, seed));
    let mut reader = Reader::new(bytes, Options::default()).unwrap();
    Profile::load(&mut reader, StoreOptions::default()).unwrap()
}

fn list(profile: &Profile, query: &str, options: &BlocksOptions) -> Blocks {
    let query = Query::parse(query).unwrap();
    blocks(&Scope::new(profile, &query, Estimator::default()), options)
}

#[test]
fn a_block_has_its_size_life_and_stack() {
    let lives = [
        Life {
            domain: 3,
            ..Life::new(
                88,
                1000,
                &["Main.run", "Stdlib.List.map", "Cache.add@cache.ml"],
            )
        }
        .promoted(2000)
        .until(5000),
        Life::new(32, 4000, &["Main.run"]),
    ];
    let profile = load(&lives, 1.0, 0);
    let all = list(&profile, "", &BlocksOptions::default());
    assert_eq!((all.rows.len(), all.hidden_rows), (2, 0));
    let block = &all.rows[0];
    assert_eq!((block.number, block.size, block.bytes.value), (0, 80, 88.0));
    assert_eq!(
        (block.samples, block.sampled_blocks, block.domain),
        (11, 1, 3)
    );
    assert_eq!((block.allocated, block.promoted), (0.001, Some(0.002)));
    assert_eq!((block.collected, block.lifetime), (Some(0.005), 0.004));
    assert_eq!((block.heap, block.is_live), ("minor", false));
    let names: Vec<&str> = block.stack.iter().map(|frame| &*frame.name).collect();
    assert_eq!(names, ["Cache.add", "Stdlib.List.map", "Main.run"]);
    assert_eq!(block.stack[0].place.as_deref(), Some("cache.ml:1:0-1"));
    let rest = &all.rows[1];
    assert_eq!(
        (rest.collected, rest.lifetime, rest.is_live),
        (None, 0.001, true)
    );

    // Of a heap, only the part of the life on it.
    let major = list(&profile, "heap = major", &BlocksOptions::default());
    assert_eq!(major.rows.len(), 1);
    assert_eq!(
        (major.rows[0].lifetime, major.rows[0].allocated),
        (0.003, 0.001)
    );
    let hidden = BlocksOptions {
        hide: vec![Pattern::glob("Stdlib.*")],
        ..BlocksOptions::default()
    };
    assert_eq!(list(&profile, "", &hidden).rows[0].stack.len(), 2);
}

proptest! {
    #![proptest_config(property_config(64))]

    /// Each order is that of all blocks, however many are shown, and the bytes of all rows are the total.
    #[test]
    fn the_first_blocks_are_those_of_the_whole_list(
        given in proptest::collection::vec((2_u64..400, 1_u64..300, proptest::option::of(1_u64..300)), 0..200),
        rows in 0_usize..30,
        seed: u64,
    ) {
        let lives: Vec<Life> = given
            .iter()
            .map(|&(words, birth, lifetime)| Life {
                death: lifetime.map(|lifetime| birth + lifetime),
                ..Life::new(words * 8, birth, &["M.f"])
            })
            .collect();
        let profile = load(&lives, 0.02, seed);
        for sort in [BlockSort::Size, BlockSort::Weight, BlockSort::Age, BlockSort::Birth] {
            let all = list(&profile, "", &BlocksOptions { sort, rows: 1000, ..BlocksOptions::default() });
            prop_assert_eq!(all.hidden_rows, 0);
            prop_assert_eq!(all.rows.len(), profile.len());
            for pair in all.rows.windows(2) {
                let (a, b) = (&pair[0], &pair[1]);
                let is_before = match sort {
                    BlockSort::Size => a.size >= b.size,
                    BlockSort::Weight => a.bytes.value >= b.bytes.value,
                    BlockSort::Age => a.lifetime >= b.lifetime,
                    BlockSort::Birth => a.allocated <= b.allocated,
                };
                prop_assert!(is_before, "{sort:?}: {a:?} {b:?}");
            }
            let sum: f64 = all.rows.iter().map(|row| row.bytes.value).sum();
            prop_assert!((sum - all.total.bytes.value).abs() <= 1e-9 * sum);
            let few = list(&profile, "", &BlocksOptions { sort, rows, ..BlocksOptions::default() });
            let shown = rows.min(all.rows.len());
            prop_assert_eq!(&few.rows[..], &all.rows[..shown]);
            prop_assert_eq!(few.hidden_rows, all.rows.len() - shown);
        }
    }
}
