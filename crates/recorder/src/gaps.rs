//! The distances between sampled words or bytes.
//!
//! Each unit (a word in OCaml programs, a byte in others) is hit with probability `rate`,
//! independently of all others. So the number of units to skip until the next hit has a geometric
//! distribution, and one random number per hit is enough.

/// Numbers that are drawn at once.
const BATCH: usize = 64;

/// Hits are counted one by one if their number has a variance below this. Then the approximation of
/// [`Gaps::many_hits`] is off by less than 0.0001 in its distribution function.
const MANY: f64 = 1024.0;

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
    /// Units from which on [`many_hits`](Self::many_hits) is used.
    many_units: usize,
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
            many_units: many_units(rate),
            batch: [0; BATCH],
            left: 0,
        }
    }

    /// From now on, hits are as frequent as this. What was drawn for another rate is forgotten,
    /// which is right: there is no memory of how far the last hit is.
    pub fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
        self.many_units = many_units(rate);
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
        if units >= self.many_units && gap < units {
            // The distance to the next hit has no memory: it does not depend on what was hit.
            return (1 + self.many_hits(units - gap - 1), self.next());
        }
        let mut hits = 0;
        while gap < units {
            hits += 1;
            gap += 1 + self.next();
        }
        (hits, (gap - units).min(NEVER))
    }

    /// The number of hits among so many units that it would take too long to find each: programs ask
    /// for any size. Its distribution is binomial, and approximated by a normal one with the same mean
    /// and variance, corrected for the skewness (Cornish and Fisher).
    #[cold]
    fn many_hits(&mut self, units: usize) -> usize {
        let mean = units as f64 * self.rate;
        let deviation = (mean * (1.0 - self.rate)).sqrt();
        let normal = self.random.normal();
        let skewness = 1.0 - 2.0 * self.rate;
        let hits = mean + deviation * normal + skewness * (normal * normal - 1.0) / 6.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "casts saturate"
        )]
        let hits = hits.round() as usize;
        hits.min(units)
    }
}

/// The number of units among which the number of hits has a variance of [`MANY`].
fn many_units(rate: f64) -> usize {
    // For rates close to 1 the variance stays small, but the hits are many.
    let variance = rate * (1.0 - rate).max(0.01);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is not negative, and casts saturate"
    )]
    let units = (MANY / variance) as usize;
    units
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

    /// With the standard normal distribution, after Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
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

    /// The hits of a block of any size are drawn at once. A loop over them would not end.
    #[test]
    fn the_largest_blocks_take_no_time() {
        for rate in [0.999, 0.5, 1e-3, 1e-6] {
            let mut gaps = Gaps::new(rate, 11);
            for units in [1 << 40, 1 << 62, isize::MAX.unsigned_abs()] {
                let (hits, gap) = gaps.hits(3, units);
                let share = hits as f64 / units as f64 / rate;
                assert!((share - 1.0).abs() < 0.01, "{rate}: {share}");
                assert!(gap < NEVER);
            }
        }
    }

    /// Hits that are drawn at once are distributed as those that are found one by one.
    #[test]
    #[cfg_attr(miri, ignore = "too slow")]
    fn many_hits_are_distributed_as_those_found_one_by_one() {
        const RUNS: usize = 10_000;
        for rate in [0.8, 0.3, 1e-3] {
            let draw = |many_units: Option<usize>, seed| {
                let mut gaps = Gaps::new(rate, seed);
                let units = gaps.many_units;
                gaps.many_units = many_units.unwrap_or(units);
                let (mut gap, mut drawn) = (0, Vec::with_capacity(RUNS));
                for _ in 0..RUNS {
                    let (hits, rest) = gaps.hits(gap, units);
                    drawn.push((hits, rest));
                    gap = rest % units;
                }
                let mut gaps: Vec<usize> = drawn.iter().map(|(_, rest)| *rest).collect();
                let mut hits: Vec<usize> = drawn.iter().map(|(hits, _)| *hits).collect();
                gaps.sort_unstable();
                hits.sort_unstable();
                (hits, gaps)
            };
            let (hits, gaps) = draw(None, 1);
            let (slow_hits, slow_gaps) = draw(Some(usize::MAX), 2);
            // Kolmogorov and Smirnov: larger with a probability of one in 3,000.
            let most = 2.0 * (2.0 / RUNS as f64).sqrt();
            for (what, a, b) in [("hits", hits, slow_hits), ("gap", gaps, slow_gaps)] {
                let distance = distance(&a, &b);
                assert!(distance < most, "{rate}: {what} differ by {distance}");
            }
        }
    }

    /// The largest difference between the distribution functions of two sorted samples.
    fn distance(a: &[usize], b: &[usize]) -> f64 {
        let below = |sample: &[usize], value| sample.partition_point(|x| *x <= value) as f64;
        let differences = a.iter().chain(b).map(|&value| {
            (below(a, value) / a.len() as f64 - below(b, value) / b.len() as f64).abs()
        });
        differences.fold(0.0, f64::max)
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
