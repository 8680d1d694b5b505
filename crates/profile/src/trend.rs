//! Fits the growth of live memory by pieces of a constant rate.

use serde::Serialize;

use crate::estimate::Estimate;
use crate::phases::{noise, phases_above};

/// The growth of live memory over time, in pieces of a constant rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Trend {
    /// The direction at the end.
    pub state: TrendState,
    /// The time since when that is so; null if always, or if the direction is uneven.
    pub since: Option<Change>,
    /// The rate at which memory grows, or grew last, in bytes per second; null if it is uneven.
    pub rate: Option<Estimate>,
    /// The pieces, in the order of time. Each begins where the one before ends.
    pub pieces: Vec<TrendPiece>,
}

/// The direction of memory growth at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum TrendState {
    /// It grows by more than the sampling error, and by at least a tenth of the growth since half-way.
    Growing,
    /// It neither grows nor shrinks by that much.
    Flat,
    /// It shrinks by that much.
    Shrinking,
    /// There is more at the end, but meanwhile it falls by more than half of that.
    Uneven,
}

/// A time at which the growth of memory changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "TrendChange"))]
pub struct Change {
    /// Seconds from the start of the run.
    pub time: f64,
    /// Its error in seconds.
    pub error: f64,
}

/// A part of the run in which memory grows at a constant rate, or shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TrendPiece {
    /// Seconds from the start of the run to that of the piece.
    pub from: f64,
    /// Seconds from the start of the run to the end of the piece.
    pub to: f64,
    /// The error of that end in seconds, as far as it can be told from the curve; 0 for the last piece.
    pub to_error: f64,
    /// The mean growth in bytes per second, in the part of the piece that does not depend on the error of its ends.
    pub rate: Estimate,
}

/// The end of a piece of a curve, as a number of points, and the points within which it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) end: usize,
    pub(crate) earliest: usize,
    pub(crate) latest: usize,
}

/// Divides a curve at equal distances of time into pieces in which it grows at a constant rate.
pub(crate) fn cuts(curve: &[f64]) -> Vec<Cut> {
    /// The 95 % quantile of the likelihood ratio.
    const CHI_SQUARE: f64 = 3.84;
    /// The standard deviation of noise, at least, as a share of typical rates. The rate changes between two points, which
    /// makes one rate in between; that is not a piece of its own.
    const KINK: f64 = 0.13;
    let first = curve.first().copied();
    let rates: Vec<f64> = first
        .into_iter()
        .chain(curve.windows(2).map(|pair| pair[1] - pair[0]))
        .collect();
    let noise = noise(&rates).max((KINK * typical(&rates)).powi(2));
    let ends = phases_above(&rates, noise);
    let tolerance = CHI_SQUARE * noise;
    ends.iter()
        .enumerate()
        .map(|(piece, &end)| {
            let start = piece.checked_sub(1).map_or(0, |before| ends[before]);
            let Some(&next) = ends.get(piece + 1) else {
                return Cut {
                    end,
                    earliest: end,
                    latest: end,
                };
            };
            let cost = |end: usize| spread(&rates[start..end]) + spread(&rates[end..next]);
            let limit = cost(end) + tolerance;
            // The differences of the ends of a piece cannot be seen between two points.
            let mut cut = Cut {
                end,
                earliest: end - 1,
                latest: end + 1,
            };
            while cut.earliest > start + 1 && cost(cut.earliest) <= limit {
                cut.earliest -= 1;
            }
            while cut.latest + 1 < next && cost(cut.latest) <= limit {
                cut.latest += 1;
            }
            cut
        })
        .collect()
}

/// The rate that nine of ten do not exceed, whatever their signs.
fn typical(rates: &[f64]) -> f64 {
    let mut sizes: Vec<f64> = rates.iter().map(|rate| rate.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let place = (sizes.len() * 9 / 10).min(sizes.len().saturating_sub(1));
    sizes.get(place).copied().unwrap_or(0.0)
}

/// Returns true for a curve that falls by more than half of what it grows by in all.
fn is_uneven(curve: &[f64]) -> bool {
    let (mut highest, mut fall) = (0.0_f64, 0.0_f64);
    for &live in curve {
        highest = highest.max(live);
        fall = fall.max(highest - live);
    }
    let ends = curve.first().zip(curve.last());
    ends.is_some_and(|(first, last)| 2.0 * fall > last - first)
}

/// The sum of squared distances from the mean.
fn spread(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// The change within a piece, as a share of the growth since half-way, below which memory is flat. With many samples a
/// change may be far above the sampling error, and yet nobody would call it growth.
const SLIGHT: f64 = 0.1;

impl Trend {
    /// A trend of these pieces of a curve, of which the last begins at this point.
    pub(crate) fn new(pieces: Vec<TrendPiece>, curve: &[f64], last_start: usize) -> Self {
        let last_part = &curve[last_start.min(curve.len())..];
        let half_way = curve.get(curve.len() / 2).copied().unwrap_or(0.0);
        let growth = curve.last().copied().unwrap_or(0.0) - half_way;
        let threshold = SLIGHT * growth.max(0.0);
        let is_notable =
            |piece: &TrendPiece| (piece.rate.value * (piece.to - piece.from)).abs() >= threshold;
        let grows = |piece: &TrendPiece| piece.rate.low > 0.0 && is_notable(piece);
        let state = match pieces.last() {
            Some(last) if grows(last) && is_uneven(last_part) => TrendState::Uneven,
            Some(last) if grows(last) => TrendState::Growing,
            Some(last) if last.rate.high < 0.0 && is_notable(last) => TrendState::Shrinking,
            _ => TrendState::Flat,
        };
        // Pieces after the last growth may neither grow nor shrink for certain.
        let last_growth = pieces.iter().rev().find(|piece| grows(piece));
        let before = match state {
            TrendState::Growing => pieces.iter().rev().nth(1),
            TrendState::Flat | TrendState::Shrinking => last_growth,
            TrendState::Uneven => None,
        };
        Self {
            state,
            since: before.map(|piece| Change {
                time: piece.to,
                error: piece.to_error,
            }),
            rate: last_growth
                .filter(|_| state != TrendState::Uneven)
                .map(|piece| piece.rate),
            pieces,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wobble(i: usize) -> f64 {
        ((i * 7919) % 13) as f64 / 13.0 - 0.5
    }

    #[test]
    fn straight_growth_is_one_piece() {
        let exact: Vec<f64> = (1..=48).map(f64::from).collect();
        assert_eq!(cuts(&exact).len(), 1);
        let noisy: Vec<f64> = (1..=48).map(|i| i as f64 * 3.0 + wobble(i)).collect();
        assert_eq!(cuts(&noisy).len(), 1);
        assert_eq!(cuts(&[0.0; 48]).len(), 1);
        assert!(cuts(&[]).is_empty());
    }

    #[test]
    fn the_end_of_growth_is_a_cut() {
        let curve: Vec<f64> = (1..=48)
            .map(|i| (i as f64).min(30.0) * 3.0 + wobble(i))
            .collect();
        let cuts = cuts(&curve);
        assert_eq!(cuts.len(), 2);
        assert!(
            cuts[0].earliest <= 30 && 30 <= cuts[0].latest,
            "{:?}",
            cuts[0]
        );
        assert!(cuts[0].latest - cuts[0].earliest <= 6, "{:?}", cuts[0]);
        assert_eq!(cuts[1].end, 48);
    }
}
