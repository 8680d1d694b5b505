//! The size of the major heap.

use hashbrown::HashMap;
use heapline_model::CollectionKind;
use serde::{Deserialize, Serialize};

use super::lane::LaneWork;
use super::{Span, seconds, series};
use crate::store::Collections;

/// The size of the major heap, that of all domains together. It is known at the end of each collection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct GcHeap {
    /// Words of the heap when it was largest.
    pub max_words: u64,
    /// When that was, in seconds since the start.
    pub max_time: f64,
    /// Words of the heap at the end.
    pub end_words: u64,
    /// The part of them that is free.
    pub end_free_words: u64,
}

/// Words of the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeapSize {
    pub(super) heap: u64,
    pub(super) free: u64,
}

/// The size of the heap, and its size at the end of each interval of a series. `None` if it is not known.
pub(super) fn heap(
    collections: &Collections,
    lanes: &[LaneWork],
    span: Span,
    points: usize,
) -> (Option<GcHeap>, Option<Vec<Option<HeapSize>>>) {
    let ended: HashMap<u16, u64> = lanes
        .iter()
        .filter_map(|lane| Some((lane.lane, lane.ended?)))
        .collect();
    let mut sizes: HashMap<u16, HeapSize> = HashMap::new();
    let mut all = HeapSize::default();
    let mut series: Vec<Option<HeapSize>> = vec![None; points];
    let mut largest: Option<(HeapSize, u64)> = None;
    let mut known: Option<HeapSize> = None;
    let mut next = 0;
    for collection in collections.in_order() {
        let time = collection.end();
        if time > span.to {
            break;
        }
        let Some(counters) = collection.counters else {
            continue;
        };
        if time >= span.from {
            let place = series::place(span, points, time);
            for interval in &mut series[next.min(place)..place] {
                *interval = known;
            }
            next = next.max(place);
        }
        let size = HeapSize {
            heap: counters.heap_words,
            free: counters.free_words.min(counters.heap_words),
        };
        let before = sizes.insert(collection.lane, size).unwrap_or_default();
        all = all.replaced(before, size);
        known = Some(all);
        if time >= span.from && largest.is_none_or(|(most, _)| all.heap > most.heap) {
            largest = Some((all, time));
        }
        // The heap of a domain that ends goes to the others, which count it then.
        let is_last = collection.kind == CollectionKind::Reading
            && ended.get(&collection.lane) == Some(&time)
            && time < span.end;
        if is_last && sizes.len() > 1 {
            sizes.remove(&collection.lane);
            all = all.replaced(size, HeapSize::default());
            known = Some(all);
        }
    }
    for interval in &mut series[next..] {
        *interval = known;
    }
    // Runtimes that do not tell have no heap.
    let heap = largest
        .filter(|(most, _)| most.heap > 0)
        .map(|(most, time)| {
            let end = known.unwrap_or_default();
            GcHeap {
                max_words: most.heap,
                max_time: seconds(time),
                end_words: end.heap,
                end_free_words: end.free,
            }
        });
    let series = heap.is_some().then_some(series);
    (heap, series)
}

impl HeapSize {
    /// The sum with a part of it replaced.
    fn replaced(self, before: Self, after: Self) -> Self {
        let replaced =
            |sum: u64, before: u64, after: u64| sum.saturating_sub(before).saturating_add(after);
        Self {
            heap: replaced(self.heap, before.heap, after.heap),
            free: replaced(self.free, before.free, after.free),
        }
    }
}
