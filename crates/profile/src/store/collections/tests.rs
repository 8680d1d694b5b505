use heapline_model::Collection;
use proptest::prelude::*;

use super::super::stored::memory;
use super::*;

fn counters() -> impl Strategy<Value = CollectorCounters> {
    any::<[u64; 9]>().prop_map(|values| {
        let mut counters = CollectorCounters::default();
        for (field, value) in COUNTERS.into_iter().zip(values) {
            *field(&mut counters) = value;
        }
        counters
    })
}

fn collection() -> impl Strategy<Value = Collection> {
    let phase = prop::option::of(prop::sample::select(&PHASES[..]));
    let times = (any::<u32>(), 0..30_u32).prop_map(|(time, shift)| u64::from(time) << shift);
    (
        0..3_u16,
        prop::sample::select(&KINDS[..]),
        times.clone(),
        times,
        phase,
        prop::option::of(counters()),
    )
        .prop_map(|(lane, kind, start, length, phase, counters)| Collection {
            lane,
            kind,
            start,
            length,
            phase,
            counters,
        })
}

fn all(collections: &Collections) -> Vec<Collection> {
    let lanes = collections.lanes();
    lanes.flat_map(|lane| collections.of_lane(lane)).collect()
}

/// The collections of a long run: a minor collection each millisecond, and a slice after it.
fn long_run(pairs: u64) -> Collections {
    let mut collections = Collections::default();
    for i in 0..pairs {
        let counters = CollectorCounters {
            minor_words: i * 262_144,
            promoted_words: i * 9_000 + i % 977,
            major_words: i * 9_500 + i % 977,
            heap_words: 40_000_000 + i % 1000 * 512,
            free_words: 1_000_000 + i % 3777,
            minor_collections: i,
            major_collections: i / 200,
            ..CollectorCounters::default()
        };
        let minor = Collection {
            lane: 0,
            kind: CollectionKind::Minor,
            start: i * 1_000_000,
            length: 100_000 + i * 7919 % 50_000,
            phase: None,
            counters: Some(counters),
        };
        let slice = Collection {
            kind: CollectionKind::Slice,
            start: minor.end() + 500,
            length: 200_000 + i * 104_729 % 90_000,
            phase: Some(Phase::Mark),
            ..minor
        };
        collections.append(&[minor, slice]);
    }
    collections
}

proptest! {
    #[test]
    fn collections_come_back_from_chunks(mut found in prop::collection::vec(collection(), 1..200)) {
        for one in &mut found {
            one.lane = 0;
        }
        found.sort_by_key(Collection::end);
        let bytes = encode(&found);
        let len = u32::try_from(found.len()).unwrap();
        prop_assert_eq!(decode(&bytes, len, 0), Some(found));
        for cut in 0..bytes.len() {
            prop_assert_eq!(decode(&bytes[..cut], len, 0), None);
        }
    }

    #[test]
    fn any_bytes_are_collections_or_none(bytes in prop::collection::vec(any::<u8>(), 0..300), len in any::<u32>()) {
        decode(&bytes, len, 0);
        decode(&bytes, len % 100, 0);
    }

    /// Those that are a little late are put in order.
    #[test]
    fn any_collections_are_in_the_order_of_their_ends(found in prop::collection::vec(collection(), 0..300)) {
        let mut collections = Collections::default();
        collections.append(&found);
        prop_assert_eq!(collections.len() + collections.refused(), found.len() as u64);
        prop_assert_eq!(collections.refused(), 0);
        for lane in collections.lanes() {
            prop_assert!(collections.of_lane(lane).is_sorted_by_key(|one| one.end()));
        }
        let in_order: Vec<_> = collections.in_order().collect();
        prop_assert_eq!(in_order.len(), found.len());
        prop_assert!(in_order.is_sorted_by_key(Collection::end));
        let last = found.iter().map(Collection::end).max().unwrap_or(0);
        prop_assert_eq!(collections.end(), last);
    }
}

#[test]
fn a_collection_takes_less_than_40_bytes() {
    let collections = long_run(50_000);
    let packed = collections.len() - collections.lanes[0].recent.len() as u64;
    let each = collections.memory as f64 / packed as f64;
    assert!(each < 32.0, "{each}");
}

#[test]
fn collections_after_a_time_are_found_without_the_others() {
    let collections = long_run(5_000);
    for time in [0, 1, 3_000_000_000, collections.end(), u64::MAX] {
        let expected: Vec<_> = collections
            .of_lane(0)
            .filter(|one| one.end() >= time)
            .collect();
        let found: Vec<_> = collections.of_lane_from(0, time).collect();
        assert_eq!(found, expected, "{time}");
    }
    assert_eq!(collections.of_lane(7).count(), 0);
}

#[test]
fn collections_with_impossible_times_are_counted_and_left_out() {
    let mut collections = long_run(5_000);
    let before = all(&collections);
    let never = Collection {
        start: u64::MAX,
        ..before[1]
    };
    collections.append(&[before[0], never]);
    assert_eq!(collections.refused(), 2);
    assert_eq!(all(&collections), before);
}

#[test]
fn collections_that_do_not_fit_in_memory_are_read_from_a_storage() {
    let mut collections = long_run(20_000);
    let before = all(&collections);
    let limit = MemoryLimit {
        bytes: 1 << 20,
        create: memory::create(),
    };
    collections.spill(&limit).unwrap();
    assert_eq!(collections.memory, 0);
    collections.append(&[*before.last().unwrap()]);
    collections.spill(&limit).unwrap();
    let mut expected = before;
    expected.push(*expected.last().unwrap());
    assert_eq!(all(&collections), expected);
    assert_eq!(collections.failure(), None);

    let storage: Arc<dyn Storage> = Arc::new(memory::MemoryStorage::default());
    let stored = collections.write(&*storage).unwrap();
    assert!(stored.is_sound(u64::MAX) && !stored.is_sound(1000));
    let opened = stored.open(&storage);
    assert_eq!(all(&opened), expected);
    assert_eq!(
        (opened.len(), opened.end()),
        (collections.len(), collections.end())
    );
}

#[test]
fn damaged_chunks_are_a_failure_and_not_wrong_collections() {
    let collections = long_run(2_000);
    let storage = Arc::new(memory::MemoryStorage::default());
    let stored = collections.write(&*storage).unwrap();
    storage.0.lock().unwrap()[100] ^= 1;
    let shared: Arc<dyn Storage> = storage;
    let opened = stored.open(&shared);
    assert!(opened.of_lane(0).count() < 4_000);
    assert_eq!(opened.failure(), Some("the data is damaged"));
}
