//! How long things took.

use serde::{Deserialize, Serialize};

/// How long things took, in seconds. All are there, so that the quantiles are exact: at least that share of them was not longer.
/// They are null if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Lengths {
    /// How many there are.
    pub count: u64,
    /// All together.
    pub total: f64,
    /// The mean.
    pub mean: Option<f64>,
    /// The median.
    pub p50: Option<f64>,
    /// The quantile of 90 %.
    pub p90: Option<f64>,
    /// The quantile of 99 %.
    pub p99: Option<f64>,
    /// The quantile of 99.9 %.
    #[serde(rename = "p99_9")]
    pub p999: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
}

impl Lengths {
    /// Those of lengths in nanoseconds.
    pub(super) fn new(mut nanos: Vec<u64>) -> Self {
        nanos.sort_unstable();
        let total = nanos.iter().map(|&length| u128::from(length)).sum::<u128>() as f64 / 1e9;
        let n = nanos.len();
        // The smallest length that at least so many of 1000 are not longer than.
        let quantile = |of_1000: usize| {
            let rank = (n.saturating_mul(of_1000)).div_ceil(1000);
            let length = nanos.get(rank.max(1) - 1)?;
            Some(*length as f64 / 1e9)
        };
        Self {
            count: n as u64,
            total,
            mean: (n > 0).then(|| total / n as f64),
            p50: quantile(500),
            p90: quantile(900),
            p99: quantile(990),
            p999: quantile(999),
            max: quantile(1000),
        }
    }
}
