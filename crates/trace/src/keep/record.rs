//! Blocks, and several that are merged into one.

use crate::Source;
use hashbrown::HashMap;

use super::intervals::Intervals;
use super::stacks::Node;

/// The time of what has not happened.
pub(crate) const NEVER: f64 = f64::INFINITY;

/// The most samples of a record: a reader takes more for damage.
const MAX_SAMPLES: u64 = 1 << 48;

/// Bits of a length that count if those that are nearly the same are merged: they differ by 6 % at most.
const LENGTH_BITS: u32 = 5;

/// A sampled block, or several.
///
/// Times are in microseconds since the start, the means of several blocks. A microsecond is exact for 285
/// years, and means need fractions: otherwise each of a million blocks would be rounded away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) birth: f64,
    pub(crate) promotion: f64,
    pub(crate) death: f64,
    /// The lengths of all blocks together, in words.
    pub(crate) words: u64,
    pub(crate) samples: u64,
    pub(crate) blocks: u64,
    pub(crate) stack: Node,
    pub(crate) lane: u16,
    pub(crate) source: Source,
}

/// Which lengths are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lengths {
    Same,
    Similar,
}

/// What records have in common that are merged.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    length: u64,
    stack: Node,
    intervals: [u16; 3],
    lane: u16,
    source: Source,
    /// Tells records apart that have too many samples to be merged.
    part: u8,
}

impl Record {
    /// The length of a block, or the mean of several.
    pub(crate) fn length(&self) -> u64 {
        let blocks = self.blocks.max(1);
        self.words.saturating_add(blocks / 2) / blocks
    }

    /// The clocks of threads may disagree a little, but nothing dies before it was born.
    pub(crate) fn in_order(mut self) -> Self {
        self.death = self.death.max(self.birth);
        if self.promotion < NEVER {
            self.promotion = self.promotion.clamp(self.birth, self.death);
        }
        self
    }

    fn key(&self, intervals: &Intervals, lengths: Lengths) -> Key {
        let length = self.length();
        let ignored = match lengths {
            Lengths::Same => 0,
            Lengths::Similar => (u64::BITS - length.leading_zeros()).saturating_sub(LENGTH_BITS),
        };
        Key {
            length: length >> ignored << ignored,
            stack: self.stack,
            intervals: [self.birth, self.promotion, self.death]
                .map(|time| intervals.find(micros(time))),
            lane: self.lane,
            source: self.source,
            part: 0,
        }
    }

    /// Merges another record with the same key.
    fn add(&mut self, other: &Self) {
        let blocks = self.blocks.saturating_add(other.blocks);
        // The mean moves from the greater weight to the less: so it never leaves their interval.
        let (most, least) = if self.blocks < other.blocks {
            (*other, *self)
        } else {
            (*self, *other)
        };
        let share = least.blocks as f64 / blocks as f64;
        let mean = |time: fn(&Self) -> f64| time(&most) + (time(&least) - time(&most)) * share;
        self.birth = mean(|record| record.birth);
        self.death = mean(|record| record.death);
        if self.promotion < NEVER {
            self.promotion = mean(|record| record.promotion);
        }
        self.words = self.words.saturating_add(other.words);
        self.samples = self.samples.saturating_add(other.samples);
        self.blocks = blocks;
        *self = self.in_order();
    }
}

/// The microsecond that a time is in; `u64::MAX` for [`NEVER`].
pub(crate) fn micros(time: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time is not negative, and a cast saturates"
    )]
    let micros = time as u64;
    micros
}

/// Merges records that do not differ any more.
pub(crate) fn merge(records: &mut Vec<Record>, intervals: &Intervals, lengths: Lengths) {
    let mut places: HashMap<Key, usize> = HashMap::with_capacity(records.len());
    let mut kept = 0;
    for at in 0..records.len() {
        let record = records[at];
        let mut key = record.key(intervals, lengths);
        loop {
            let place = *places.entry(key).or_insert(kept);
            if place == kept {
                records[kept] = record;
                kept += 1;
                break;
            }
            let first = &mut records[place];
            if first.samples.saturating_add(record.samples) <= MAX_SAMPLES || key.part == u8::MAX {
                first.add(&record);
                break;
            }
            key.part += 1;
        }
    }
    records.truncate(kept);
    records.shrink_to(2 * kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(birth: f64, blocks: u64) -> Record {
        Record {
            birth,
            promotion: NEVER,
            death: birth + 10.0,
            words: 3 * blocks,
            samples: blocks,
            blocks,
            stack: Node::default(),
            lane: 0,
            source: Source::Minor,
        }
    }

    /// Each one moves the mean by far less than a microsecond.
    #[test]
    fn the_mean_of_a_million_blocks_is_exact() {
        let mut sum = record(0.0, 1);
        for n in 1..1_000_000 {
            sum.add(&record(f64::from(n), 1));
        }
        assert!((sum.birth - 499_999.5).abs() < 1e-3, "{sum:?}");
        assert!((sum.death - 500_009.5).abs() < 1e-3, "{sum:?}");
        assert_eq!((sum.length(), sum.blocks), (3, 1_000_000));
    }

    #[test]
    fn means_stay_in_their_interval() {
        let start = 1_209_600_000_001.0;
        for (a, b) in [(1, 1), (1, 1 << 50), (1 << 40, 3)] {
            let mut sum = record(start, a);
            sum.add(&record(start + 1e-4, b));
            sum.add(&record(start, b));
            assert!(sum.birth >= start, "{sum:?}");
        }
    }

    #[test]
    fn records_with_too_many_samples_stay_apart() {
        let mut records = vec![record(1.0, 1); 3];
        records[0].samples = MAX_SAMPLES;
        merge(&mut records, &Intervals::default(), Lengths::Same);
        let samples: Vec<u64> = records.iter().map(|record| record.samples).collect();
        assert_eq!(samples, [MAX_SAMPLES, 2]);
    }
}
