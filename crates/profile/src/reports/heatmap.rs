//! Allocations over time, by lifetime.

use clap::Args;
use serde::Serialize;

use super::Subject;
use crate::options;
use crate::scope::Scope;
use crate::timeline;

/// Options of [`heatmap`].
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct HeatmapOptions {
    /// Divide the run into N equal intervals
    #[arg(long, default_value_t = 48, value_name = "N", value_parser = options::number(1, 1000))]
    pub times: usize,
}

impl Default for HeatmapOptions {
    fn default() -> Self {
        options::defaults()
    }
}

/// Allocations over time, by lifetime.
///
/// The blocks of a cell are those of the query `allocated in T0..T1 and lifetime in A0..A1 and
/// collected`, with the bounds of its times and ages; those alive at the end are `allocated in
/// T0..T1 and live at end`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Heatmap {
    /// The trace and estimator of the report.
    pub subject: Subject,
    /// The bounds of the parts of the run, in seconds.
    pub times: Vec<f64>,
    /// The bounds of the ages, in seconds; they grow by 1, 2, 5, 10.
    pub ages: Vec<f64>,
    /// By time and age: bytes that died at that age.
    pub bytes: Vec<Vec<f64>>,
    /// By time and age: blocks that died at that age.
    pub blocks: Vec<Vec<f64>>,
    /// By time: bytes that were alive at the end.
    pub alive_bytes: Vec<f64>,
    /// By time: blocks that were alive at the end.
    pub alive_blocks: Vec<f64>,
}

/// The map of the blocks in scope.
#[must_use]
pub fn heatmap(scope: &Scope<'_>, options: &HeatmapOptions) -> Heatmap {
    let profile = scope.profile();
    let parts = options.times.clamp(1, 10_000);
    let end = profile.micros(profile.end());
    let mut times: Vec<u64> = (0..parts)
        .map(|part| timeline::time(end, part, parts))
        .collect();
    // A range of times does not have its end in it, but the last block belongs to the last part.
    times.push(end + 1);
    let ages = ages(end);
    let cells = || vec![vec![0.0; ages.len() - 1]; parts];
    let (mut bytes, mut blocks) = (cells(), cells());
    let mut alive_bytes = vec![0.0; parts];
    let mut alive_blocks = vec![0.0; parts];
    scope.for_each(|stay| {
        let weight = scope.weight(&stay);
        let birth = stay.start_time(profile);
        let part = times[1..parts].partition_point(|&bound| bound <= birth);
        if stay.ends() {
            let age = stay.age(profile);
            let row = ages[1..ages.len() - 1].partition_point(|&bound| bound <= age);
            bytes[part][row] += weight.bytes.value;
            blocks[part][row] += weight.blocks.value;
        } else {
            alive_bytes[part] += weight.bytes.value;
            alive_blocks[part] += weight.blocks.value;
        }
    });
    let seconds = |micros: &[u64]| micros.iter().map(|&t| t as f64 / 1e6).collect();
    let used = used(&blocks);
    let rows = used.clone();
    let cut = |cells: Vec<Vec<f64>>| -> Vec<Vec<f64>> {
        cells.iter().map(|row| row[rows.clone()].to_vec()).collect()
    };
    Heatmap {
        subject: Subject::new(scope),
        times: seconds(&times),
        ages: seconds(&ages[used.start..=used.end]),
        bytes: cut(bytes),
        blocks: cut(blocks),
        alive_bytes,
        alive_blocks,
    }
}

/// 0, 1, 2, 5, 10, ... microseconds, to beyond the longest life.
fn ages(longest: u64) -> Vec<u64> {
    let mut ages = vec![0];
    let mut power = 1_u64;
    loop {
        for step in [1, 2, 5] {
            let age = power.saturating_mul(step);
            ages.push(age);
            if age > longest || age == u64::MAX {
                return ages;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// The ages that any block died at, from the youngest to the oldest.
fn used(blocks: &[Vec<f64>]) -> std::ops::Range<usize> {
    let rows = blocks.first().map_or(0, Vec::len);
    let is_used = |row: &usize| blocks.iter().any(|cells| cells[*row] > 0.0);
    let first = (0..rows).find(is_used).unwrap_or(0);
    let last = (0..rows).rfind(is_used).unwrap_or(0);
    first..last + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_reach_beyond_the_longest_life() {
        assert_eq!(ages(0), [0, 1]);
        assert_eq!(ages(5), [0, 1, 2, 5, 10]);
        assert!(ages(u64::MAX).len() < 70);
    }
}
