//! The sampling rate.

use std::fmt;
use std::str::FromStr;

use heapline_profile::query::Size;

/// Bytes of a word: the agent is for 64-bit programs.
const WORD: f64 = 8.0;

/// Samples per word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::commands) struct Rate(pub(in crate::commands) f64);

impl Rate {
    /// One sample for 78 KiB.
    pub(in crate::commands) const DEFAULT: Self = Self(1e-4);

    /// Bytes that a sample stands for, on average.
    #[cfg(recording)]
    pub(in crate::commands) fn bytes_per_sample(self) -> f64 {
        WORD / self.0
    }
}

/// Programs that are recorded without the option have the same.
#[cfg(recording)]
const _: () =
    assert!(Rate::DEFAULT.0.to_bits() == heapline_recorder::settings::RECORD_RATE.to_bits());

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:e}", self.0)
    }
}

impl FromStr for Rate {
    type Err = String;

    /// Parses samples per word (`1e-4`, `1/10000`) or memory per sample (`512KiB`).
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let rate = if let Some((above, below)) = text.split_once('/') {
            number(above).zip(number(below)).map(|(a, b)| a / b)
        } else if let Some(rate) = number(text) {
            Some(rate)
        } else {
            let size = text.parse::<Size>().ok();
            size.map(|size| WORD / size.bytes(WORD))
        };
        match rate {
            // Below 1e-15, not even a petabyte would be sampled.
            Some(rate) if (1e-15..=1.0).contains(&rate) => Ok(Self(rate)),
            Some(rate) if rate > 1.0 && rate.is_finite() => Err(format!(
                "{text} is more than one sample per word; 1 records every block"
            )),
            Some(_) => Err(format!("{text} is too low; use at least 1e-15")),
            None => Err("expected samples per word, such as 1e-4 or 1/10000, \
                         or memory per sample, such as 512KiB"
                .to_owned()),
        }
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|n: &f64| n.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> f64 {
        text.parse::<Rate>().unwrap().0
    }

    #[test]
    fn a_rate_is_a_number_a_fraction_or_memory_per_sample() {
        for text in ["1e-4", "0.0001", "1/10000", " 2 / 20000 ", "80000B", "10kw"] {
            assert!((rate(text) - 1e-4).abs() < 1e-18, "{text}");
        }
        assert!((rate("512KiB") - 8.0 / 524_288.0).abs() < 1e-18);
        assert!((rate("1") - 1.0).abs() < 1e-18);
        #[cfg(recording)]
        assert!((Rate(1e-4).bytes_per_sample() - 80_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_rate_is_shown_as_it_is_read() {
        for text in ["1e-4", "1e0", "2.5e-3"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for text in [
            "", "often", "0", "-1e-4", "1/0", "0/5", "2", "4B", "NaN", "inf", "1/", "1e-99",
        ] {
            let error = text.parse::<Rate>().unwrap_err();
            assert!(!error.is_empty(), "{text}");
        }
        assert!(
            "2".parse::<Rate>()
                .unwrap_err()
                .contains("1 records every block")
        );
    }
}
