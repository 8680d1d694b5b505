//! Phases of a run: where the level of a series changes.

/// A single large block is not a phase.
const SHORTEST: usize = 4;

/// The ends of phases: places where the mean of `values` changes, and the end.
///
/// Of all ways to cut the series into pieces that are constant but for noise, the one with the
/// least sum of squares, where each cut costs as much as noise alone would gain. The noise is
/// estimated from differences of neighbours, which a change of level hardly affects.
pub(crate) fn phases(values: &[f64]) -> Vec<usize> {
    phases_above(values, noise(values))
}

/// The ends of phases, given the variance of the noise.
pub(crate) fn phases_above(values: &[f64], noise: f64) -> Vec<usize> {
    let n = values.len();
    if n == 0 {
        return Vec::new();
    }
    let penalty = 4.0 * noise * (n as f64).ln().max(1.0);
    // Sums of the first i values, and of their squares.
    let mut sums = vec![(0.0, 0.0)];
    for value in values {
        let (sum, squares) = sums[sums.len() - 1];
        sums.push((sum + value, squares + value * value));
    }
    let cost = |from: usize, to: usize| {
        let sum = sums[to].0 - sums[from].0;
        let squares = sums[to].1 - sums[from].1;
        (squares - sum * sum / (to - from) as f64).max(0.0)
    };
    // The best way to cut the first i values, and where its last piece begins.
    let mut best = vec![(0.0, 0); n + 1];
    for to in 1..=n {
        let starts = std::iter::once(0).chain(SHORTEST..(to + 1).saturating_sub(SHORTEST));
        best[to] = starts
            .map(|from| (best[from].0 + cost(from, to) + penalty, from))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or_default();
    }
    let mut ends = Vec::new();
    let mut end = n;
    while end > 0 {
        ends.push(end);
        end = best[end].1;
    }
    ends.reverse();
    ends
}

/// The variance of the noise: half the mean square of differences between neighbours, of which the
/// largest are left out because they may be changes of level.
pub(crate) fn noise(values: &[f64]) -> f64 {
    let mut squares: Vec<f64> = values
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).powi(2))
        .collect();
    squares.sort_by(f64::total_cmp);
    squares.truncate((squares.len() * 9).div_ceil(10));
    let mean = squares.iter().sum::<f64>() / squares.len().max(1) as f64;
    let largest = values
        .iter()
        .fold(0.0, |most: f64, value| most.max(value.abs()));
    // A series without noise still has no phases of no consequence.
    (mean / 2.0).max((largest * 0.01).powi(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_level_are_found() {
        let wobble = |i: usize| ((i * 7919) % 13) as f64 / 13.0;
        let values: Vec<f64> = (0..128)
            .map(|i| match i {
                0..40 => 10.0 + wobble(i),
                40..90 => 2.0 + wobble(i),
                _ => 20.0 + wobble(i),
            })
            .collect();
        assert_eq!(phases(&values), [40, 90, 128]);
    }

    #[test]
    fn one_large_value_is_not_a_phase() {
        for at in [0, 1, 60, 126, 127] {
            let mut values = vec![5.0; 128];
            values[at] = 1000.0;
            let shortest = phases(&values)
                .iter()
                .scan(0, |last, &end| Some(end - std::mem::replace(last, end)))
                .min();
            assert!(shortest >= Some(SHORTEST), "{at}: {shortest:?}");
        }
    }

    #[test]
    fn a_steady_run_has_one_phase() {
        assert_eq!(phases(&[5.0; 128]), [128]);
        assert_eq!(phases(&[0.0; 128]), [128]);
        assert_eq!(phases(&[1.0]), [1]);
        assert!(phases(&[]).is_empty());
    }
}
