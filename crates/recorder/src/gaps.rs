//! The distances between sampled words or bytes.
//!
//! Each unit (a word in OCaml programs, a byte in others) is hit with probability `rate`,
//! independently of all others. So the number of units to skip until the next hit has a geometric
//! distribution, and one random number per hit is enough.

/// Numbers that are drawn at once.
const BATCH: usize = 64;

/// A distance that no program gets to the end of.
pub const NEVER: usize = usize::MAX / 2;

/// Bytes of a word, for which users give the rate.
const WORD: f64 = 8.0;

/// The unit of sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Words of 64 bits: OCaml programs.
    Word,
    /// Bytes: programs whose blocks have any size.
    Byte,
}

impl Unit {
    /// The probability that a unit is hit, for which at least one unit of a word is hit with
    /// probability `per_word`. It is 1 for 1.
    ///
    /// ```
    /// use heapline_recorder::gaps::Unit;
    ///
    /// let missed = 1.0 - Unit::Byte.rate(0.3);
    /// assert!((missed.powi(8) - 0.7).abs() < 1e-12);
    /// ```
    #[must_use]
    pub fn rate(self, per_word: f64) -> f64 {
        match self {
            Self::Word => per_word,
            // 1 - (1 - rate)^(1/8) without losing the digits of a small rate.
            Self::Byte => -((-per_word).ln_1p() / WORD).exp_m1(),
        }
    }

    /// The word size that is written to traces: the bits of the unit of block lengths.
    pub(crate) fn bits(self) -> u8 {
        match self {
            Self::Word => 64,
            Self::Byte => 8,
        }
    }
}

/// Draws distances between hits.
#[derive(Debug)]
pub struct Gaps {
    random: Random,
    rate: f64,
    batch: [usize; BATCH],
    /// Numbers of the batch that are left.
    left: usize,
}

impl Gaps {
    /// Distances for this rate; the same seed gives the same.
    #[must_use]
    pub fn new(rate: f64, seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            rate,
            batch: [0; BATCH],
            left: 0,
        }
    }

    /// From now on, hits are as frequent as this. What was drawn for another rate is forgotten,
    /// which is right: there is no memory of how far the last hit is.
    pub fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
        self.left = 0;
    }

    /// The number of units to skip until the next hit.
    #[expect(clippy::should_implement_trait, reason = "there is always another one")]
    #[inline]
    pub fn next(&mut self) -> usize {
        if self.left == 0 {
            self.fill();
        }
        self.left -= 1;
        self.batch[self.left]
    }

    #[cold]
    fn fill(&mut self) {
        self.left = BATCH;
        if self.rate >= 1.0 {
            self.batch.fill(0);
            return;
        }
        if self.rate <= 0.0 {
            self.batch.fill(NEVER);
            return;
        }
        // More than k are passed over with probability (1 - rate)^k.
        let scale = 1.0 / (-self.rate).ln_1p();
        for gap in &mut self.batch {
            let passed = self.random.unit().ln() * scale;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is not negative, what is after the point is to go, and casts saturate"
            )]
            let passed = passed as usize;
            *gap = passed.min(NEVER);
        }
    }

    /// The number of a block's units that are hit, and the number of units to skip after the block
    /// until the next hit.
    ///
    /// `gap` is the distance of the next hit from the block's beginning.
    #[inline]
    pub fn hits(&mut self, mut gap: usize, units: usize) -> (usize, usize) {
        if self.rate >= 1.0 {
            return (units, 0);
        }
        let mut hits = 0;
        while gap < units {
            hits += 1;
            gap += 1 + self.next();
        }
        (hits, (gap - units).min(NEVER))
    }
}

/// xoshiro256++.
#[derive(Clone, Debug)]
struct Random([u64; 4]);

impl Random {
    fn new(mut seed: u64) -> Self {
        Self(std::array::from_fn(|_| split_mix(&mut seed)))
    }

    fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// Above 0 and not above 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

/// Makes seeds out of seeds.
#[inline]
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = if cfg!(miri) { 2_000 } else { 400_000 };

    #[test]
    fn the_mean_and_the_spread_are_those_of_the_geometric_distribution() {
        for rate in [0.5, 0.1, 1e-3, 1e-5] {
            let mut gaps = Gaps::new(rate, 7);
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..DRAWS {
                let gap = gaps.next() as f64;
                sum += gap;
                squares += gap * gap;
            }
            let n = f64::from(DRAWS);
            let mean = sum / n;
            let expected = (1.0 - rate) / rate;
            let variance = (1.0 - rate) / (rate * rate);
            let error = (variance / n).sqrt();
            assert!((mean - expected).abs() < 4.0 * error, "{rate}: {mean}");
            let found = squares / n - mean * mean;
            assert!((found / variance - 1.0).abs() < 0.3, "{rate}: {found}");
        }
    }

    #[test]
    fn every_unit_is_hit_at_rate_one_and_none_at_rate_zero() {
        let mut gaps = Gaps::new(1.0, 1);
        assert_eq!(gaps.next(), 0);
        assert_eq!(gaps.hits(0, 5), (5, 0));
        gaps.set_rate(0.0);
        assert_eq!(gaps.next(), NEVER);
    }

    #[test]
    fn a_seed_gives_the_same_gaps_again_and_another_seed_others() {
        let gaps = |seed| {
            let mut gaps = Gaps::new(1e-3, seed);
            (0..200).map(|_| gaps.next()).collect::<Vec<_>>()
        };
        assert_eq!(gaps(1), gaps(1));
        assert_ne!(gaps(1), gaps(2));
    }

    #[test]
    fn a_byte_is_hit_so_often_that_a_word_is_hit_with_the_rate() {
        for rate in [0.9, 0.1, 1e-5] {
            let byte = Unit::Byte.rate(rate);
            let word = -(8.0 * (-byte).ln_1p()).exp_m1();
            assert!((word / rate - 1.0).abs() < 1e-12, "{rate}: {word}");
        }
        for exact in [0.0, 1.0] {
            assert!((Unit::Byte.rate(exact) - exact).abs() <= 0.0, "{exact}");
        }
    }

    /// Blocks of all sizes, one after the other: of their units, whatever block they are in, `rate`
    /// are hit, and blocks with a hit are as frequent as they should be.
    #[test]
    fn units_are_hit_with_the_rate_whatever_the_size_of_their_block() {
        let rate = 0.02;
        for units in [1_usize, 8, 9, 64, 100, 1000, 5000] {
            let mut gaps = Gaps::new(rate, 3);
            let mut gap = gaps.next();
            let (mut hits, mut sampled) = (0, 0_u32);
            for _ in 0..DRAWS {
                if gap >= units {
                    gap -= units;
                    continue;
                }
                let (found, rest) = gaps.hits(gap, units);
                gap = rest;
                hits += found;
                sampled += u32::from(found > 0);
            }
            let n = f64::from(DRAWS);
            let expected = n * units as f64 * rate;
            let error = (expected * (1.0 - rate)).sqrt();
            let difference = hits as f64 - expected;
            assert!(difference.abs() < 4.0 * error, "{units} units: {hits} hits");
            let p = 1.0 - (1.0 - rate).powf(units as f64);
            let error = (n * p * (1.0 - p)).sqrt().max(1.0);
            let difference = f64::from(sampled) - n * p;
            assert!(
                difference.abs() < 4.0 * error,
                "{units} units: {sampled} blocks"
            );
        }
    }

    #[test]
    fn changing_the_rate_takes_effect_at_once() {
        let mut gaps = Gaps::new(1e-9, 5);
        gaps.next();
        gaps.set_rate(0.5);
        let sum: usize = (0..1000).map(|_| gaps.next()).sum();
        assert!(sum < 2000, "{sum}");
    }
}
