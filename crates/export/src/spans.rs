//! The work of the garbage collector, for formats that show it on a time axis.

use std::cmp::Reverse;

use heapline_model::{Collection, CollectionKind, CollectorCounters, Phase};
use heapline_profile::Collections;

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) kind: CollectionKind,
    pub(crate) phase: Option<Phase>,
    /// Nanoseconds since the start.
    pub(crate) start: u64,
    pub(crate) length: u64,
    /// Words promoted in it; `None` if that is not known.
    pub(crate) promoted_words: Option<u64>,
    /// Words of the major heap at its end; `None` if that is not known.
    pub(crate) heap_words: Option<u64>,
}

impl Span {
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }
}

/// The spans of a lane.
#[derive(Debug, Default)]
pub(crate) struct LaneSpans {
    /// In the order of their starts; each lies within those that have not ended when it starts.
    pub(crate) spans: Vec<Span>,
    /// Those that are left out because they overlap others in part. No collector does that; damaged files may.
    pub(crate) overlapping: u64,
}

/// The spans that are written: at most some number of them, because browsers show them.
#[derive(Debug)]
pub(crate) struct Spans<'a> {
    collections: &'a Collections,
    /// Those shorter than this are left out, in nanoseconds.
    pub(crate) least: u64,
    /// How many these are.
    pub(crate) shorter: u64,
}

fn is_work(collection: &Collection) -> bool {
    collection.kind != CollectionKind::Reading
}

impl<'a> Spans<'a> {
    /// At most `most` spans, or only those of the longest lengths.
    pub(crate) fn new(collections: &'a Collections, most: u64) -> Self {
        // By the number of bits of their lengths.
        let mut counts = [0_u64; 65];
        if collections.len() > most {
            for lane in collections.lanes() {
                for one in collections.of_lane(lane).filter(is_work) {
                    counts[(u64::BITS - one.length.leading_zeros()) as usize] += 1;
                }
            }
        }
        let mut kept: u64 = counts.iter().sum();
        let mut least = 0;
        let mut shorter = 0;
        for (bits, count) in counts[..64].iter().enumerate() {
            if kept <= most {
                break;
            }
            kept -= count;
            shorter += count;
            least = 1 << bits;
        }
        Self {
            collections,
            least,
            shorter,
        }
    }

    /// Those of a lane.
    pub(crate) fn of_lane(&self, lane: u16) -> LaneSpans {
        let mut before: Option<CollectorCounters> = None;
        let mut spans = Vec::new();
        for one in self.collections.of_lane(lane) {
            // Work inside of finalisers has ended before them, and its words are not theirs.
            let can_promote = one.kind != CollectionKind::Finalisers;
            let counters = before.zip(one.counters).filter(|_| can_promote);
            before = one.counters.or(before);
            if !is_work(&one) || one.length < self.least {
                continue;
            }
            spans.push(Span {
                kind: one.kind,
                phase: one.phase,
                start: one.start,
                length: one.length,
                promoted_words: counters.and_then(|(before, after)| promoted(&before, &after)),
                heap_words: one
                    .counters
                    .map(|counters| counters.heap_words)
                    .filter(|&words| words > 0),
            });
        }
        nested(spans)
    }
}

/// Words promoted from one reading of a lane's counters to the next; `None` if another domain has begun between them.
pub(crate) fn promoted(before: &CollectorCounters, after: &CollectorCounters) -> Option<u64> {
    let is_same = after.minor_words >= before.minor_words;
    let words = after.promoted_words.checked_sub(before.promoted_words);
    words.filter(|_| is_same)
}

/// Sorts spans, and leaves out those that overlap others in part.
fn nested(mut spans: Vec<Span>) -> LaneSpans {
    spans.sort_by_key(|span| (span.start, Reverse(span.end())));
    let mut open: Vec<u64> = Vec::new();
    let all = spans.len();
    spans.retain(|span| {
        while open.last().is_some_and(|&end| end <= span.start) {
            open.pop();
        }
        let fits = open.last().is_none_or(|&end| span.end() <= end);
        if fits {
            open.push(span.end());
        }
        fits
    });
    LaneSpans {
        overlapping: (all - spans.len()) as u64,
        spans,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, length: u64) -> Span {
        Span {
            kind: CollectionKind::Minor,
            phase: None,
            start,
            length,
            promoted_words: None,
            heap_words: None,
        }
    }

    #[test]
    fn what_encloses_comes_before_what_is_inside_and_what_crosses_is_left_out() {
        let inner = span(10, 5);
        let outer = span(10, 30);
        let after = span(40, 1);
        let found = nested(vec![inner, outer, span(30, 15), after]);
        assert_eq!(found.spans, [outer, inner, after]);
        assert_eq!(found.overlapping, 1);
    }
}
