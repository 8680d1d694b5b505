//! Classifies the growth of live memory by the shape of its curve.

use serde::Serialize;

/// The shape of memory growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum GrowthShape {
    /// Steadily, to the end: a leak if ever there was one.
    Linear,
    /// First, and then no more: a cache that is full, or tables made at the start.
    Bounded,
    /// At once.
    Burst,
    /// Up and down again and again.
    Periodic,
    /// None of these.
    Irregular,
    /// Too few samples to tell.
    Unclear,
}

/// Fewer samples than this have no shape.
const FEWEST: u64 = 10;

/// The shape of a curve at equal distances of time.
pub(crate) fn shape(curve: &[f64], samples: u64) -> GrowthShape {
    let highest = curve.iter().copied().fold(0.0, f64::max);
    let Some(&last) = curve.last() else {
        return GrowthShape::Unclear;
    };
    if samples < FEWEST || highest <= 0.0 {
        return GrowthShape::Unclear;
    }
    // Twice down by a third of the whole, and up again.
    if swings(curve, highest / 3.0) >= 2 {
        return GrowthShape::Periodic;
    }
    // Most of it within a tenth of the time.
    let step = (curve.len() / 10).max(1);
    let rise = |from: usize, to: usize| curve[to] - if from == 0 { 0.0 } else { curve[from - 1] };
    let steepest = (0..=curve.len() - step)
        .map(|from| rise(from, from + step - 1))
        .fold(0.0, f64::max);
    if steepest >= 0.7 * last && last > 0.0 {
        return GrowthShape::Burst;
    }
    let third = curve[curve.len() - curve.len() / 3 - 1];
    if last - third <= 0.1 * highest {
        return GrowthShape::Bounded;
    }
    if correlation(curve) > 0.95 {
        return GrowthShape::Linear;
    }
    GrowthShape::Irregular
}

/// The number of times that a curve falls by at least `least` from a maximum, and then rises as
/// much.
fn swings(curve: &[f64], least: f64) -> usize {
    let (mut high, mut low) = (0.0_f64, f64::INFINITY);
    let (mut falling, mut swings) = (false, 0);
    for &value in curve {
        if falling {
            low = low.min(value);
            if value >= low + least {
                swings += 1;
                falling = false;
                high = value;
            }
        } else {
            high = high.max(value);
            if value <= high - least {
                falling = true;
                low = value;
            }
        }
    }
    swings
}

/// The correlation of a curve with a rising straight line: 1 is a perfect line.
fn correlation(curve: &[f64]) -> f64 {
    let n = curve.len() as f64;
    let mean = curve.iter().sum::<f64>() / n;
    let middle = (n - 1.0) / 2.0;
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    for (i, value) in curve.iter().enumerate() {
        let (x, y) = (i as f64 - middle, value - mean);
        xy += x * y;
        xx += x * x;
        yy += y * y;
    }
    if xx * yy > 0.0 {
        xy / (xx * yy).sqrt()
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(f: impl Fn(f64) -> f64) -> Vec<f64> {
        (1..=48).map(|i| f(f64::from(i) / 48.0)).collect()
    }

    #[test]
    fn shapes_are_told_apart() {
        let noisy = |x: f64| x + 0.03 * (x * 97.0).sin();
        assert_eq!(shape(&curve(noisy), 100), GrowthShape::Linear);
        assert_eq!(
            shape(&curve(|x| (3.0 * x).min(1.0)), 100),
            GrowthShape::Bounded
        );
        assert_eq!(
            shape(&curve(|x| if x > 0.6 { 1.0 } else { 0.1 }), 100),
            GrowthShape::Burst
        );
        assert_eq!(
            shape(&curve(|x| (x * 5.0).fract()), 100),
            GrowthShape::Periodic
        );
        assert_eq!(shape(&curve(|x| x * x * x), 100), GrowthShape::Irregular);
        assert_eq!(shape(&curve(|x| x), 3), GrowthShape::Unclear);
        assert_eq!(shape(&[], 100), GrowthShape::Unclear);
        assert_eq!(shape(&[0.0; 9], 100), GrowthShape::Unclear);
    }
}
