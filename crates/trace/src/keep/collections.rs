//! The work of the garbage collector in a long run: the latest pieces, and the counters before them.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use super::MAX_LANES;
use crate::{Collection, CollectionEncoder, CollectionKind, PacketSink};

/// The part of the budget that work of the collector may take: an eighth.
const SHARE: u64 = 8;

/// Bytes of a piece of work in the trace, at most on average.
const BYTES: u64 = 32;

#[derive(Debug, Default)]
pub(super) struct Collections {
    recent: VecDeque<Collection>,
    /// The counters of each domain at its beginning, and where the recent work begins: totals stay exact.
    readings: BTreeMap<u16, [Collection; 2]>,
}

impl Collections {
    pub(super) fn push(&mut self, work: &Collection, budget: u64) {
        self.recent.push_back(*work);
        let most = usize::try_from(budget / SHARE / BYTES).unwrap_or(usize::MAX);
        if self.recent.len() > most {
            // Half of it, so that few are moved each time.
            let dropped = self.recent.len() - most / 2;
            for work in self.recent.drain(..dropped) {
                let is_known = self.readings.contains_key(&work.domain);
                if work.counters.is_none() || self.readings.len() >= MAX_LANES && !is_known {
                    continue;
                }
                let reading = Collection {
                    kind: CollectionKind::Reading,
                    start: work.start.saturating_add(work.length),
                    length: 0,
                    ..work
                };
                let readings = self.readings.entry(work.domain);
                readings.or_insert([reading; 2])[1] = reading;
            }
        }
    }

    pub(super) fn write(&self, start_time: u64, sink: &mut impl PacketSink) -> io::Result<()> {
        let mut encoders: BTreeMap<u16, CollectionEncoder> = BTreeMap::new();
        let readings = self.readings.values().flat_map(|[first, last]| {
            let last = Some(last).filter(|last| *last != first);
            [first].into_iter().chain(last)
        });
        for work in readings.chain(&self.recent) {
            let is_known = encoders.contains_key(&work.domain);
            if encoders.len() >= MAX_LANES && !is_known {
                continue;
            }
            let encoder = encoders.entry(work.domain);
            let encoder =
                encoder.or_insert_with(|| CollectionEncoder::new(work.domain, start_time));
            encoder.push(work, sink)?;
        }
        for encoder in encoders.values_mut() {
            encoder.flush(sink)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CollectorCounters;
    use crate::format::{MAX_HEADER, PacketHeader};

    fn work(domain: u16, n: u64) -> Collection {
        Collection {
            domain,
            kind: CollectionKind::Minor,
            start: n * 1_000_000,
            length: 250_000,
            phase: None,
            counters: Some(CollectorCounters {
                minor_words: n * 262_144,
                minor_collections: n,
                ..CollectorCounters::default()
            }),
        }
    }

    #[test]
    fn the_latest_work_and_all_totals_are_kept_within_the_size() {
        const BUDGET: u64 = 400_000;
        let mut collections = Collections::default();
        for n in 1..=100_000 {
            collections.push(&work(u16::from(n.is_multiple_of(2)), n), BUDGET);
        }
        let mut bytes = Vec::new();
        collections.write(0, &mut bytes).unwrap();
        assert!(bytes.len() as u64 <= BUDGET / SHARE, "{}", bytes.len());
        let mut found: [Vec<Collection>; 2] = Default::default();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let header = PacketHeader::parse(rest).unwrap();
            let (packet, more) = rest.split_at(header.size);
            let payload = &packet[MAX_HEADER + 1..];
            crate::collection::decode_collections(&header, 0, payload, 0, |work| {
                found[usize::from(work.domain)].push(work);
            })
            .unwrap();
            rest = more;
        }
        for (first, found) in [2, 1].into_iter().rev().zip(&found) {
            assert_eq!(found[0].kind, CollectionKind::Reading);
            assert_eq!(found[0].counters, work(0, first).counters);
            assert_eq!(found[1].kind, CollectionKind::Reading);
            let recent = &found[2..];
            assert!(recent.len() > 300);
            // Nothing is between the second reading and the recent work.
            let [before, after] =
                [found[1], recent[0]].map(|work| work.counters.unwrap().minor_collections);
            assert_eq!(after, before + 2);
            assert!(recent.is_sorted_by_key(|work| work.start));
            assert_eq!(recent.last().unwrap().counters.unwrap().minor_words, {
                let last = 100_000 - 1 + (first - 1);
                last * 262_144
            });
        }
    }
}
