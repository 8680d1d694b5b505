//! Changes of blocks whose segments have been stored: they are collected, and applied when all are known.

use std::io;
use std::sync::Arc;

use super::super::segment::{Column, SEGMENT};
use super::packed::{pack, unpack};
use super::storage::{Place, Storage, damaged};

/// Changes that are in memory at most.
const OPEN: usize = 1 << 19;

/// A promotion or death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoggedChange {
    pub(crate) block: usize,
    pub(crate) column: Column,
    pub(crate) event: u64,
    pub(crate) time: u64,
}

/// Changes in a storage, by bucket, in the order in which they were added.
#[derive(Debug)]
pub(crate) struct ChangeLog {
    storage: Arc<dyn Storage>,
    /// Segments of a bucket: the more, the more memory it takes to apply its changes.
    segments: usize,
    buckets: Vec<Bucket>,
    /// Changes that are in memory.
    open: usize,
}

#[derive(Debug, Default)]
struct Bucket {
    written: Vec<(Place, usize)>,
    open: Vec<LoggedChange>,
}

impl ChangeLog {
    /// A log that collects the changes of so many segments together.
    pub(crate) fn new(storage: Arc<dyn Storage>, segments: usize) -> Self {
        Self {
            storage,
            segments,
            buckets: Vec::new(),
            open: 0,
        }
    }

    /// Segments whose changes are collected together.
    pub(crate) fn segments(&self) -> usize {
        self.segments
    }

    pub(crate) fn add(&mut self, change: LoggedChange) -> io::Result<()> {
        let bucket = change.block / (SEGMENT * self.segments);
        if self.buckets.len() <= bucket {
            self.buckets.resize_with(bucket + 1, Bucket::default);
        }
        self.buckets[bucket].open.push(change);
        self.open += 1;
        if self.open == OPEN {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes all changes that are in memory.
    fn flush(&mut self) -> io::Result<()> {
        self.open = 0;
        for bucket in self.buckets.iter_mut().filter(|b| !b.open.is_empty()) {
            let open = std::mem::take(&mut bucket.open);
            let place = Place::write(&*self.storage, encode(&open))?;
            bucket.written.push((place, open.len()));
        }
        Ok(())
    }

    /// Takes the changes of a bucket, by block; those of the same block in order.
    pub(crate) fn take(&mut self, bucket: usize) -> io::Result<Vec<LoggedChange>> {
        let Some(bucket) = self.buckets.get_mut(bucket).map(std::mem::take) else {
            return Ok(Vec::new());
        };
        let written: usize = bucket.written.iter().map(|(_, len)| len).sum();
        let mut changes = Vec::with_capacity(written + bucket.open.len());
        for (place, len) in bucket.written {
            let bytes = place.read(&*self.storage)?;
            changes.extend(decode(&bytes, len).ok_or_else(damaged)?);
        }
        changes.extend(bucket.open);
        // Stable.
        changes.sort_by_key(|change| change.block);
        Ok(changes)
    }
}

fn encode(changes: &[LoggedChange]) -> Vec<u8> {
    let mut out = Vec::with_capacity(changes.len() * 16);
    let mut column = |value: &dyn Fn(&LoggedChange) -> u64| {
        let values: Vec<u64> = changes.iter().map(value).collect();
        pack(&values, &mut out);
    };
    column(&|change| change.block as u64);
    column(&|change| u64::from(change.column == Column::Death));
    column(&|change| change.event);
    column(&|change| change.time);
    out
}

fn decode(mut bytes: &[u8], len: usize) -> Option<Vec<LoggedChange>> {
    let mut column = || unpack(&mut bytes, len);
    let [block, is_death, event, time] = [column()?, column()?, column()?, column()?];
    (0..len)
        .map(|i| {
            Some(LoggedChange {
                block: usize::try_from(block[i]).ok()?,
                column: match is_death[i] {
                    0 => Column::Promotion,
                    _ => Column::Death,
                },
                event: event[i],
                time: time[i],
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::storage::memory::MemoryStorage;
    use super::*;

    #[test]
    fn changes_come_back_by_bucket_in_order() {
        const BUCKET: usize = 8;
        let mut log = ChangeLog::new(Arc::new(MemoryStorage::default()), BUCKET);
        let all: Vec<LoggedChange> = (0..OPEN + 50_000)
            .map(|n| LoggedChange {
                block: n * 7919 % (2 * SEGMENT * BUCKET),
                column: if n % 3 == 0 {
                    Column::Promotion
                } else {
                    Column::Death
                },
                event: 3 * n as u64,
                time: (n * n) as u64,
            })
            .collect();
        for &change in &all {
            log.add(change).unwrap();
        }
        for bucket in 0..3 {
            let is_in = |change: &&LoggedChange| change.block / (SEGMENT * BUCKET) == bucket;
            let mut expected: Vec<LoggedChange> = all.iter().filter(is_in).copied().collect();
            expected.sort_by_key(|change| change.block);
            assert_eq!(log.take(bucket).unwrap(), expected);
            assert_eq!(log.take(bucket).unwrap(), []);
        }
    }
}
