//! Windows of a run that grows.

use crate::common;

use common::{all, pprof, request, sums};
use heapline_model::{
    Batch, Birth, Capabilities, Damage, Frame, Header, InputSize, LocationId, Runtime, Scheme,
    Space,
};
use heapline_profile::{Store, StoreOptions};
use heapline_push::{HeapProfile, Protocol, Windows};

const SECOND: u64 = 1_000_000_000;

fn header() -> Header {
    Header {
        format: "test",
        format_version: 1,
        runtime: Runtime::Native,
        program: "/bin/demo".into(),
        host: "here".into(),
        pid: 1,
        seed: None,
        start_time: 1_800_000_000_000_000,
        first_lane: 0,
        context: None,
        word_bytes: 1,
        scheme: Scheme::PerUnit {
            rate: 1e-3,
            unit_bytes: 1,
        },
        tells: Capabilities {
            lifetimes: true,
            promotions: false,
            gc_parameters: false,
            lanes: true,
            sizes: true,
        },
    }
}

/// The blocks of a second. Few have whole numbers as their weights.
fn blocks(second: u64, batch: &mut Batch) {
    for n in 0..7 {
        let (id, time) = (second * 7 + n, second * 1_000_000 + n);
        let birth = Birth {
            size: 100 + 13 * n,
            samples: 1,
            space: Space::Native,
            ..Birth::default()
        };
        let stack = [LocationId(u32::try_from(n % 3).unwrap())];
        batch.birth(time, 0, id, birth, stack.into_iter());
    }
    if let Some(before) = second.checked_sub(1) {
        batch.death(second * 1_000_000 + 10, 0, before * 7 + 2);
    }
}

/// The profile as Pyroscope gets it: its times, and the sum of each column.
fn sent(profile: &HeapProfile) -> ([u64; 2], Vec<i64>) {
    let sent = pprof(&request(Protocol::Pyroscope, profile).body);
    let times = [sent.time_nanos, sent.duration_nanos].map(|time| time.try_into().unwrap());
    let sums = sums(&sent).into_iter();
    (times, sums.map(|(_, sum)| sum).collect())
}

#[test]
fn windows_sum_up_to_the_whole_exactly() {
    let header = header();
    let start = header.start_time * 1000;
    let mut store = Store::new(header, StoreOptions::default());
    let (mut windows, mut batch) = (Windows::default(), Batch::default());
    for (n, name) in (0..).zip([&b"a"[..], b"b", b"c"]) {
        let frame = Frame {
            name,
            ..Frame::UNKNOWN
        };
        batch.define(LocationId(n), 0x40 + u64::from(n), [frame]);
    }
    let (mut allocated, mut rounded) = ([0, 0], [0.0, 0.0]);
    let seconds = 20;
    for second in 0..seconds {
        blocks(second, &mut batch);
        store.append(&batch);
        batch.clear();
        let profile = store.snapshot(Damage::default(), InputSize::default());
        let until = start + (second + 1) * SECOND;
        let window = windows.next(&all(&profile), profile.end(), Some(until));
        let ([time, duration], sums) = sent(&window);
        assert_eq!((time, duration), (start + second * SECOND, SECOND));
        for column in 0..2 {
            assert!(sums[column] > 0);
            allocated[column] += sums[column];
            rounded[column] += window.total(column).value.round();
        }

        let (_, whole) = sent(&Windows::default().next(&all(&profile), profile.end(), None));
        assert_eq!(allocated[..], whole[..2], "allocated");
        assert_eq!(sums[2..], whole[2..], "live");
        assert!(second == 0 || whole[1] > whole[3]);
    }
    // Rounding each window would have lost or added something.
    #[expect(clippy::cast_possible_truncation, reason = "they are small")]
    let rounded = rounded.map(|sum| sum as i64);
    assert_ne!(rounded, allocated);
}

#[test]
fn nothing_new_is_a_window_of_live_memory() {
    let mut store = Store::new(header(), StoreOptions::default());
    let (mut windows, mut batch) = (Windows::default(), Batch::default());
    blocks(0, &mut batch);
    store.append(&batch);
    let profile = store.snapshot(Damage::default(), InputSize::default());
    let mut next = || sent(&windows.next(&all(&profile), profile.end(), None)).1;
    let (first, second) = (next(), next());
    assert_eq!(first[..2], first[2..], "everything lives");
    assert_eq!(second, [0, 0, first[2], first[3]]);
}
