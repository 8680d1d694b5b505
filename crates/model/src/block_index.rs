//! From the ids of blocks to the order in which they were allocated.

use std::collections::BTreeMap;

/// Finds blocks by id.
///
/// Ids are unique but not dense: with several domains they come in pieces from one counter. This
/// numbers blocks 0, 1, 2, ... as their allocations appear, so that what is known of them can be
/// kept in plain arrays, and finds the number again when a promotion or collection names the id.
/// It needs memory for each run of consecutive ids only, which is next to nothing.
///
/// ```
/// let mut index = heapline_model::BlockIndex::new();
/// assert_eq!(index.push(100), 0);
/// assert_eq!(index.push(101), 1);
/// assert_eq!(index.push(7), 2);
/// assert_eq!(index.find(101), Some(1));
/// assert_eq!(index.find(8), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct BlockIndex {
    /// All runs but the current one, by first id.
    runs: BTreeMap<u64, Run>,
    current: Run,
    /// The run that was found last.
    recent: Run,
    len: usize,
}

/// Consecutive ids with consecutive numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    first: u64,
    len: u64,
    number: usize,
}

impl Run {
    #[inline]
    fn find(self, id: u64) -> Option<usize> {
        let at = id.wrapping_sub(self.first);
        (at < self.len).then(|| {
            self.number
                .wrapping_add(usize::try_from(at).unwrap_or(usize::MAX))
        })
    }
}

impl BlockIndex {
    /// An index without blocks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Blocks so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no blocks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a block; returns its number. If a damaged trace has an id twice, the newer block wins.
    #[inline]
    pub fn push(&mut self, id: u64) -> usize {
        if id.wrapping_sub(self.current.first) == self.current.len {
            self.current.len += 1;
        } else {
            self.start_run(id);
        }
        self.len += 1;
        self.len - 1
    }

    #[cold]
    fn start_run(&mut self, id: u64) {
        self.store(self.current);
        self.current = Run {
            first: id,
            len: 1,
            number: self.len,
        };
    }

    /// Keeps a run that has ended. Where a damaged trace has ids twice, older runs make room.
    fn store(&mut self, run: Run) {
        let Some(last) = run.len.checked_sub(1).map(|n| run.first.saturating_add(n)) else {
            return;
        };
        while let Some((&first, &older)) = self.runs.range(..=last).next_back() {
            let older_last = first.saturating_add(older.len - 1);
            if older_last < run.first {
                break;
            }
            self.runs.remove(&first);
            if first < run.first {
                let len = run.first - first;
                self.runs.insert(first, Run { len, ..older });
            }
            if older_last > last {
                let skipped = last + 1 - first;
                let rest = Run {
                    first: last + 1,
                    len: older_last - last,
                    number: older.number + usize::try_from(skipped).unwrap_or(0),
                };
                self.runs.insert(rest.first, rest);
            }
            if first < run.first {
                break;
            }
        }
        self.runs.insert(run.first, run);
        self.recent = Run::default();
    }

    /// The number of a block.
    #[inline]
    pub fn find(&mut self, id: u64) -> Option<usize> {
        match self.current.find(id).or_else(|| self.recent.find(id)) {
            Some(number) => Some(number),
            None => self.find_run(id),
        }
    }

    #[cold]
    fn find_run(&mut self, id: u64) -> Option<usize> {
        let (_, &run) = self.runs.range(..=id).next_back()?;
        self.recent = run;
        run.find(id)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::BlockIndex;

    /// Against a plain map, with ids that overlap as those of damaged traces do.
    #[test]
    fn the_newest_block_of_an_id_is_found() {
        let mut state = 1_u64;
        let mut random = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let mut index = BlockIndex::new();
            let mut plain = HashMap::new();
            for _ in 0..30 {
                let first = random(100);
                for id in first..first + 1 + random(20) {
                    let number = index.push(id);
                    plain.insert(id, number);
                }
                let id = random(130);
                assert_eq!(index.find(id), plain.get(&id).copied());
            }
            for id in 0..130 {
                assert_eq!(index.find(id), plain.get(&id).copied(), "id {id}");
            }
        }
    }

    #[test]
    fn the_largest_ids_are_ids_too() {
        let mut index = BlockIndex::new();
        assert_eq!(index.push(u64::MAX - 1), 0);
        assert_eq!(index.push(u64::MAX), 1);
        assert_eq!(index.push(5), 2);
        assert_eq!(index.find(u64::MAX), Some(1));
        assert_eq!(index.find(5), Some(2));
        assert_eq!(index.find(6), None);
    }
}
