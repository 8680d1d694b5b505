//! Sizes, durations and times in queries.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;

/// A point in time, before it is known which trace it is asked of.
#[derive(Clone, Debug, PartialEq)]
pub enum TimePoint {
    /// The beginning of the trace.
    Start,
    /// The time with most live bytes.
    Peak,
    /// The last event.
    End,
    /// Microseconds since the start.
    Micros(u64),
    /// A share of the run.
    Fraction(f64),
    /// A date and time, as microseconds since 1970.
    Date(i64),
    /// A time of day, in UTC.
    Clock(Time),
}

impl TimePoint {
    /// Microseconds since the start of a trace that began at `start_time`, in microseconds since
    /// 1970. `None` if that depends on the events: the peak, the end, and shares of the run.
    #[must_use]
    pub fn micros_since(&self, start_time: u64) -> Option<u64> {
        let start = i64::try_from(start_time).unwrap_or(i64::MAX);
        match self {
            Self::Start => Some(0),
            Self::Peak | Self::End | Self::Fraction(_) => None,
            Self::Micros(micros) => Some(*micros),
            Self::Date(micros) => Some(u64::try_from(micros.saturating_sub(start)).unwrap_or(0)),
            Self::Clock(time) => {
                // The first time after the start that a clock shows it.
                let begin = Timestamp::from_microsecond(start)
                    .unwrap_or(Timestamp::UNIX_EPOCH)
                    .to_zoned(TimeZone::UTC);
                let day = 24 * 3600 * 1_000_000_i128;
                let since_midnight = |time: Time| time.duration_since(Time::midnight()).as_micros();
                let wait = since_midnight(*time) - since_midnight(begin.time());
                Some(u64::try_from(wait.rem_euclid(day)).unwrap_or(0))
            }
        }
    }
}

/// The lifetime of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lifetime {
    /// In microseconds.
    Micros(u64),
    /// In bytes that were allocated meanwhile.
    Bytes(f64),
    /// In words that were allocated meanwhile.
    Words(f64),
}

impl Lifetime {
    pub(super) fn is_time(self) -> bool {
        matches!(self, Self::Micros(_))
    }
}

/// An amount of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// In bytes.
    Bytes(f64),
    /// In words of the traced program.
    Words(f64),
}

impl Size {
    /// In bytes, where a word has so many.
    #[must_use]
    pub fn bytes(self, word_bytes: f64) -> f64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Words(words) => words * word_bytes,
        }
    }

    /// In whole bytes, where a word has eight.
    #[must_use]
    pub fn whole_bytes(self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is not negative, and a cast saturates"
        )]
        let bytes = self.bytes(8.0) as u64;
        bytes
    }
}

/// Reads what queries take: `64KiB`, `100`, `1.5G`, `16w`, `2Mw`.
impl FromStr for Size {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        size(text).ok_or("expected a number and a unit, such as 64KiB, 1.5G or 16w")
    }
}

/// Understands a share from nothing to all: `1%` or `0.01`.
#[must_use]
pub fn share(text: &str) -> Option<f64> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text.trim(), 1.0),
    };
    let number = number.trim().parse::<f64>().ok()?;
    (0.0..=scale).contains(&number).then(|| number / scale)
}

/// `64KiB`, `100`, `1.5G`, `16w`, `2Mw`.
pub(crate) fn size(text: &str) -> Option<Size> {
    let (number, unit) = number_and_unit(text)?;
    let unit = unit.to_lowercase();
    let words = unit == "word" || unit == "words" || unit.ends_with('w');
    let prefix = match &*unit {
        "word" | "words" => "",
        _ if words => &unit[..unit.len() - 1],
        _ => unit
            .strip_suffix("ib")
            .or(unit.strip_suffix('b'))
            .unwrap_or(&unit),
    };
    let power = match prefix {
        "" if unit == "ib" => return None,
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    // A kiloword is a thousand words: nobody counts words in powers of two.
    Some(if words {
        Size::Words(number * 1000_f64.powi(power))
    } else {
        Size::Bytes(number * 1024_f64.powi(power))
    })
}

/// `10s`, `1.5ms`, `2min`, `1h30m`, in microseconds.
pub(crate) fn duration(text: &str) -> Option<u64> {
    let mut total = 0.0;
    let mut rest = text;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, tail) = split_number(rest)?;
        let unit_len = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let scale = match &tail[..unit_len] {
            "us" | "µs" => 1.0,
            "ms" => 1e3,
            "s" | "sec" => 1e6,
            "m" | "min" => 60e6,
            "h" => 3600e6,
            "d" => 86_400e6,
            _ => return None,
        };
        total += number * scale;
        rest = &tail[unit_len..];
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is positive, and a cast saturates"
    )]
    Some(total.round() as u64)
}

/// `peak`, `end`, `start`, `10s`, `90%`, `@14:30:05`, `@2026-11-15T14:30:05Z`.
pub(crate) fn time_point(text: &str) -> Option<TimePoint> {
    match text {
        "start" => return Some(TimePoint::Start),
        "peak" => return Some(TimePoint::Peak),
        "end" => return Some(TimePoint::End),
        "0" => return Some(TimePoint::Micros(0)),
        _ => {}
    }
    if let Some(share) = text.strip_suffix('%') {
        let (number, rest) = split_number(share)?;
        return (rest.is_empty() && number <= 100.0).then_some(TimePoint::Fraction(number / 100.0));
    }
    if let Some(date) = text.strip_prefix('@') {
        if let Ok(timestamp) = date.parse::<Timestamp>() {
            return Some(TimePoint::Date(timestamp.as_microsecond()));
        }
        if let Ok(time) = date.parse::<DateTime>() {
            let zoned = time.to_zoned(TimeZone::UTC).ok()?;
            return Some(TimePoint::Date(zoned.timestamp().as_microsecond()));
        }
        return date.parse().ok().map(TimePoint::Clock);
    }
    duration(text).map(TimePoint::Micros)
}

/// A time or, with a unit of memory, what was allocated meanwhile.
pub(crate) fn lifetime(text: &str) -> Option<Lifetime> {
    if text == "0" {
        return Some(Lifetime::Micros(0));
    }
    if let Some(micros) = duration(text) {
        return Some(Lifetime::Micros(micros));
    }
    // A bare number could be anything.
    if text.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    size(text).map(|size| match size {
        Size::Bytes(bytes) => Lifetime::Bytes(bytes),
        Size::Words(words) => Lifetime::Words(words),
    })
}

fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let (number, unit) = split_number(text)?;
    Some((number, unit.trim_start()))
}

/// The number that a text begins with, and the rest.
fn split_number(text: &str) -> Option<(f64, &str)> {
    let digits = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
            .unwrap_or(text.len())
    };
    let mut end = digits(text);
    // An exponent: `1e6`, but not the `e` of a unit.
    if let Some(exponent) = text[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let len = digits(&exponent[sign..]);
        if len > 0 {
            end += 1 + sign + len;
        }
    }
    let number: f64 = text[..end].replace('_', "").parse().ok()?;
    number.is_finite().then_some((number, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, expected) in [
            ("100", Some(Size::Bytes(100.0))),
            ("64KiB", Some(Size::Bytes(65536.0))),
            ("64k", Some(Size::Bytes(65536.0))),
            ("1.5GB", Some(Size::Bytes(1.5 * 1_073_741_824.0))),
            ("1e6", Some(Size::Bytes(1e6))),
            ("16w", Some(Size::Words(16.0))),
            ("2Mw", Some(Size::Words(2e6))),
            ("3 words", Some(Size::Words(3.0))),
            ("10s", None),
            ("ib", None),
            ("5ib", None),
            ("x", None),
            ("", None),
            ("1.2.3", None),
        ] {
            assert_eq!(size(text), expected, "{text}");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, expected) in [
            ("10s", Some(10_000_000)),
            ("1.5ms", Some(1500)),
            ("2us", Some(2)),
            ("1h30m", Some(5_400_000_000)),
            ("1min5s", Some(65_000_000)),
            ("10", None),
            ("s", None),
            ("", None),
            ("10x", None),
        ] {
            assert_eq!(duration(text), expected, "{text}");
        }
    }

    #[test]
    fn times_are_points_of_the_run_or_of_the_day() {
        assert_eq!(time_point("peak"), Some(TimePoint::Peak));
        assert_eq!(time_point("90%"), Some(TimePoint::Fraction(0.9)));
        assert_eq!(time_point("101%"), None);
        assert_eq!(
            time_point("@1970-01-01T00:00:01Z"),
            Some(TimePoint::Date(1_000_000))
        );
        assert!(matches!(time_point("@14:30:05"), Some(TimePoint::Clock(_))));
        assert_eq!(time_point("soon"), None);
    }

    #[test]
    fn lifetimes_are_times_or_memory() {
        assert_eq!(lifetime("2s"), Some(Lifetime::Micros(2_000_000)));
        assert_eq!(lifetime("1MiB"), Some(Lifetime::Bytes(1_048_576.0)));
        assert_eq!(lifetime("1Mw"), Some(Lifetime::Words(1e6)));
        // 5m are five minutes, not megabytes.
        assert_eq!(lifetime("5m"), Some(Lifetime::Micros(300_000_000)));
        assert_eq!(lifetime("5"), None);
    }
}
