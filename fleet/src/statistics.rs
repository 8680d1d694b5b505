//! Means over runs, and the significance of their differences.
//!
//! Runs are the units: a value of a run already contains its sampling error, so the variance between
//! runs contains both the run-to-run variation and the sampling error.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The quantile of the normal distribution for 95 % intervals.
const NORMAL_95: f64 = 1.959_964;

/// One value of each of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// The number of runs.
    pub runs: u64,
    /// The mean of their values.
    pub mean: f64,
    /// The variance of a value, with run-to-run variation and sampling error.
    pub variance: f64,
}

/// Values of those runs that have any: all others are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Present {
    /// The number of runs that have a value.
    pub runs: u64,
    /// The mean of their values.
    pub mean: f64,
    /// The variance between them.
    pub variance: f64,
    /// The mean of the variances that are due to sampling.
    pub sampling_variance: f64,
}

impl Sample {
    /// A sample of `runs` runs, of which only some have a value.
    #[must_use]
    pub fn new(runs: u64, present: &Present) -> Self {
        let all = runs.max(present.runs) as f64;
        let some = present.runs as f64;
        // The sum of squares of two parts: within those present, and between them and the zeros.
        let squares = present.variance * (some - 1.0).max(0.0)
            + present.mean.powi(2) * some * (all - some) / all.max(1.0);
        let between = if all > 1.0 {
            squares / (all - 1.0)
        } else {
            0.0
        };
        // Few runs can be alike by chance; they vary at least as their sampling errors do.
        let within = present.sampling_variance * some / all.max(1.0);
        Self {
            runs: runs.max(present.runs),
            mean: present.mean * some / all.max(1.0),
            variance: between.max(within),
        }
    }

    /// A sample in which no run has a value.
    #[must_use]
    pub fn zero(runs: u64) -> Self {
        Self::new(runs, &Present::default())
    }

    /// The standard error of the mean. That of a single run is its sampling error.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        (self.variance / self.runs.max(1) as f64).sqrt()
    }

    /// Half of the 95 % interval of the mean.
    #[must_use]
    pub fn error95(&self) -> f64 {
        self.standard_error() * quantile95(self.runs.saturating_sub(1) as f64)
    }
}

/// The change of a mean from one sample to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The difference of the means.
    pub value: f64,
    /// Half of its 95 % interval.
    pub error95: f64,
    /// The probability of such a difference by chance, by Welch's t-test. `None` if a sample has less
    /// than two runs: their variation is unknown.
    pub p: Option<f64>,
}

impl Change {
    /// Compares two samples.
    #[must_use]
    pub fn between(before: &Sample, after: &Sample) -> Self {
        let value = after.mean - before.mean;
        let squares = [before, after].map(|sample| sample.standard_error().powi(2));
        let error = squares.iter().sum::<f64>().sqrt();
        if before.runs < 2 || after.runs < 2 {
            let error95 = error * NORMAL_95;
            return Self {
                value,
                error95,
                p: None,
            };
        }
        // Rounding is no variation: values that are equal to 12 digits are equal.
        if error <= 1e-12 * before.mean.abs().max(after.mean.abs()) {
            let is_equal = value.abs() <= 1e-9 * before.mean.abs();
            let p = Some(if is_equal { 1.0 } else { 0.0 });
            return Self {
                value,
                error95: 0.0,
                p,
            };
        }
        // Welch and Satterthwaite.
        let freedom = squares.iter().sum::<f64>().powi(2)
            / (squares[0].powi(2) / (before.runs - 1) as f64
                + squares[1].powi(2) / (after.runs - 1) as f64);
        Self {
            value,
            error95: error * quantile95(freedom),
            p: Some(two_sided(value / error, freedom)),
        }
    }
}

/// The probability that Student's t is at least this far from 0.
fn two_sided(t: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |student| (2.0 * student.sf(t.abs())).min(1.0))
}

/// The quantile of Student's t for 95 % intervals; without freedom, of the normal distribution.
fn quantile95(freedom: f64) -> f64 {
    if freedom < 1.0 {
        return NORMAL_95;
    }
    StudentsT::new(0.0, 1.0, freedom).map_or(NORMAL_95, |student| student.inverse_cdf(0.975))
}

/// Adjusts p-values for their number, by Benjamini and Hochberg: those below a level have at most this
/// share of false discoveries among them. The order is kept.
#[must_use]
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[b].total_cmp(&p[a]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least = 1.0_f64;
    for (larger, &index) in order.iter().enumerate() {
        let rank = p.len() - larger;
        least = least.min(p[index] * p.len() as f64 / rank as f64);
        adjusted[index] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        let runs = values.len() as u64;
        let present = Present {
            runs,
            mean,
            variance: squares / (n - 1.0),
            sampling_variance: 0.0,
        };
        Sample::new(runs, &present)
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-6 * b.abs(), "{a}, not {b}");
    }

    #[test]
    fn runs_without_a_value_are_zero() {
        let some = Present {
            runs: 2,
            mean: 4.0,
            variance: 2.0,
            sampling_variance: 0.1,
        };
        let (found, all) = (Sample::new(5, &some), sample(&[3.0, 5.0, 0.0, 0.0, 0.0]));
        assert_eq!(found.runs, all.runs);
        close(found.mean, all.mean);
        close(found.variance, all.variance);
        assert_eq!(Sample::zero(3), sample(&[0.0, 0.0, 0.0]));
    }

    #[test]
    fn runs_vary_at_least_as_their_samples_do() {
        let alike = Present {
            runs: 4,
            mean: 10.0,
            variance: 0.0,
            sampling_variance: 9.0,
        };
        close(Sample::new(4, &alike).standard_error(), 1.5);
        let single = Present {
            runs: 1,
            mean: 10.0,
            variance: 0.0,
            sampling_variance: 4.0,
        };
        close(Sample::new(1, &single).error95(), 2.0 * NORMAL_95);
    }

    /// Compared with `scipy.stats.ttest_ind(equal_var=False)`.
    #[test]
    fn welch_is_as_in_other_programs() {
        let a = sample(&[
            27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7,
            21.4,
        ]);
        let b = sample(&[
            27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5,
            25.2,
        ]);
        let change = Change::between(&a, &b);
        assert!((change.p.unwrap() - WELCH_P).abs() < 1e-6, "{change:?}");
        close(quantile95(14.0), 2.144_786_688);
        close(two_sided(12.0, 18.0), T12_P);
    }

    const WELCH_P: f64 = 0.007_297_955_930_127_71;
    const T12_P: f64 = 5.046_511_102_563_654e-10;

    #[test]
    fn values_that_never_vary_differ_or_do_not() {
        let (a, b) = (sample(&[3.0, 3.0]), sample(&[3.1, 3.1]));
        assert_eq!(Change::between(&a, &b).p, Some(0.0));
        assert_eq!(Change::between(&a, &a).p, Some(1.0));
        let zero = Sample::zero(2);
        assert_eq!(Change::between(&zero, &zero).p, Some(1.0));
    }

    #[test]
    fn one_run_shows_no_variation() {
        let single = Sample::new(
            1,
            &Present {
                runs: 1,
                mean: 1.0,
                ..Present::default()
            },
        );
        assert_eq!(Change::between(&single, &sample(&[3.0, 4.0])).p, None);
    }

    #[test]
    fn adjusted_p_values_are_those_of_r() {
        // p.adjust(c(0.01, 0.04, 0.03, 0.5), "BH")
        let adjusted = benjamini_hochberg(&[0.01, 0.04, 0.03, 0.5]);
        for (ours, theirs) in adjusted
            .iter()
            .zip([0.04, 0.053_333_333, 0.053_333_333, 0.5])
        {
            close(*ours, theirs);
        }
        assert_eq!(benjamini_hochberg(&[]), Vec::<f64>::new());
    }
}
