//! Numbers with units: bytes, counts, shares, times.

use heapline_profile::{Estimate, Label};

use crate::sanitize::sanitize;

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Stands for a number that the source does not tell.
const UNTOLD: &str = "?";

/// An amount of memory, such as `12.3 MiB`.
#[must_use]
pub fn bytes(amount: f64) -> String {
    if amount.is_nan() {
        return UNTOLD.to_owned();
    }
    let (scale, unit) = scale(amount);
    format!("{} {unit}", significant(amount / scale))
}

/// An amount of memory and its error in the same unit, such as `12.34 ± 0.41 MiB`.
///
/// Where nothing was seen, all that is known is how much may have been missed: `< 23.4 KiB`.
#[must_use]
pub fn estimated_bytes(estimate: Estimate) -> String {
    if estimate.value.is_nan() {
        return UNTOLD.to_owned();
    }
    if estimate.value == 0.0 && estimate.error > 0.0 {
        return format!("< {}", bytes(estimate.error));
    }
    // The larger one decides, so that both are short.
    let (scale, unit) = scale(estimate.value.max(estimate.error));
    format!(
        "{} {unit}",
        with_error(estimate.value / scale, estimate.error / scale)
    )
}

/// An amount of memory without its error; `-` for none.
pub(crate) fn bytes_or_dash(estimate: Estimate) -> String {
    if estimate.value == 0.0 {
        "-".to_owned()
    } else {
        bytes(estimate.value)
    }
}

/// A number of things and its error, such as `12,300 ± 400`.
#[must_use]
pub fn estimated_count(estimate: Estimate) -> String {
    if estimate.value.is_nan() {
        UNTOLD.to_owned()
    } else if estimate.error == 0.0 {
        grouped(estimate.value)
    } else {
        format!("{} ± {}", grouped(estimate.value), grouped(estimate.error))
    }
}

/// A number of things and its error in short, such as `12.30 ± 0.40 k`.
#[must_use]
pub fn estimated_count_short(estimate: Estimate) -> String {
    let Estimate { value, error, .. } = estimate;
    if value.is_nan() || error == 0.0 {
        return count_short(value);
    }
    let (scale, unit) = count_scale(value.max(error));
    format!("{}{unit}", with_error(value / scale, error / scale))
}

/// A number of things in short, such as `12.3 k`.
#[must_use]
pub fn count_short(n: f64) -> String {
    if n.is_nan() {
        return UNTOLD.to_owned();
    }
    match count_scale(n) {
        (_, "") => format!("{n:.0}"),
        (scale, unit) => format!("{}{unit}", significant(n / scale)),
    }
}

/// The unit for a number of things, with a space before it.
fn count_scale(n: f64) -> (f64, &'static str) {
    const UNITS: [&str; 5] = ["", " k", " M", " G", " T"];
    let mut scale = 1.0;
    let mut unit = 0;
    while n.abs() / scale >= 999.5 && unit + 1 < UNITS.len() {
        scale *= 1000.0;
        unit += 1;
    }
    (scale, UNITS[unit])
}

/// A number of things in short with its sign, such as `+12.3 k`.
#[must_use]
pub fn signed_count_short(n: f64) -> String {
    if n > 0.0 {
        format!("+{}", count_short(n))
    } else {
        count_short(n)
    }
}

/// A change of memory with its sign and error, such as `+1.2 ± 0.3 MiB`.
#[must_use]
pub fn estimated_change(estimate: Estimate) -> String {
    let (scale, unit) = scale(estimate.value.abs().max(estimate.error));
    let amount = with_error(estimate.value / scale, estimate.error / scale);
    let sign = if estimate.value > 0.0 { "+" } else { "" };
    format!("{sign}{amount} {unit}")
}

/// The name of a group and its place in the source, [sanitized](sanitize).
#[must_use]
pub fn label(label: &Label) -> String {
    match &label.place {
        Some(place) => sanitize(&format!("{} ({place})", label.name)).into_owned(),
        None => sanitize(&label.name).into_owned(),
    }
}

/// The last part of a program's path.
#[must_use]
pub fn program_name(path: &str) -> &str {
    match path.rsplit('/').next() {
        None | Some("") => "Unknown program",
        Some(name) => name,
    }
}

/// A median lifetime; if it is not known, more than the age of the oldest block.
#[must_use]
pub fn duration_or_longer(known: Option<f64>, oldest: f64) -> String {
    match known {
        Some(known) => seconds(known),
        None => format!("> {}", seconds(oldest)),
    }
}

/// A whole number with its digits in groups: `7,353,975`.
#[must_use]
pub fn count(n: u64) -> String {
    group(&n.to_string())
}

/// A share, such as `12.3 %`.
#[must_use]
pub fn percent(part: f64, whole: f64) -> String {
    match percent_number(part, whole) {
        none if none == "-" => none,
        number => format!("{number} %"),
    }
}

/// A share without its sign, for columns that have it in their title.
#[must_use]
pub fn percent_number(part: f64, whole: f64) -> String {
    let share = 100.0 * part / whole;
    if 0.0 < share && share < 0.05 {
        "< 0.1".to_owned()
    } else if whole > 0.0 {
        format!("{share:.1}")
    } else {
        "-".to_owned()
    }
}

/// A number of things with their name, such as `1 row` or `1,200 rows`.
#[must_use]
pub fn plural(n: u64, thing: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{} {thing}{s}", count(n))
}

/// A time, such as `41.6 ms` or `2 min 3 s`.
#[must_use]
pub fn seconds(seconds: f64) -> String {
    if seconds < 1e-3 {
        format!("{} µs", significant(seconds * 1e6))
    } else if seconds < 1.0 {
        format!("{} ms", significant(seconds * 1e3))
    } else if seconds < 60.0 {
        format!("{} s", significant(seconds))
    } else {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is 60 at least, and no trace lasts 2^64 seconds"
        )]
        let whole = seconds.round() as u64;
        match whole / 3600 {
            0 => format!("{} min {} s", whole / 60, whole % 60),
            hours => format!("{hours} h {} min", whole / 60 % 60),
        }
    }
}

/// A rate as the user would write it: `0.001`, `1e-5`.
#[must_use]
pub fn rate(rate: f64) -> String {
    if rate >= 1e-3 {
        format!("{rate}")
    } else {
        format!("{rate:e}")
    }
}

fn scale(amount: f64) -> (f64, &'static str) {
    let mut scale = 1.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        // 1023.95 would be printed as 1024.
        if amount.abs() / scale < 1023.5 {
            break;
        }
        scale *= 1024.0;
        unit = next;
    }
    (scale, unit)
}

/// Three significant digits.
fn significant(n: f64) -> String {
    let digits = match n.abs() {
        n if n == 0.0 || n >= 99.95 => 0,
        n if n >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{n:.digits$}");
    // 3 bytes are 3, not 3.00.
    if n.fract() == 0.0 {
        format!("{n:.0}")
    } else {
        text
    }
}

/// Formats a number with as many digits as are significant given the error.
fn with_error(n: f64, error: f64) -> String {
    if error == 0.0 {
        return significant(n);
    }
    let digits = match error {
        error if error >= 10.0 => 0,
        error if error >= 1.0 => 1,
        error if error >= 0.1 => 2,
        _ => 3,
    };
    format!("{n:.digits$} ± {error:.digits$}")
}

/// A number of things, not more exact than it is.
fn grouped(n: f64) -> String {
    let digits = format!("{:.0}", n.abs());
    format!("{}{}", if n < 0.0 { "-" } else { "" }, group(&digits))
}

fn group(digits: &str) -> String {
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_in_powers_of_1024() {
        assert_eq!(bytes(0.0), "0 B");
        assert_eq!(bytes(1023.0), "1023 B");
        assert_eq!(bytes(1024.0), "1 KiB");
        assert_eq!(bytes(1_048_575.0), "1.00 MiB");
        assert_eq!(bytes(54539.0), "53.3 KiB");
        assert_eq!(bytes(f64::from(u32::MAX) * 4.0), "16.0 GiB");
    }

    #[test]
    fn errors_decide_how_many_digits_are_shown() {
        let estimate = |value, error| {
            estimated_bytes(Estimate {
                value,
                error,
                ..Estimate::exact(value)
            })
        };
        assert_eq!(estimate(12.3456e6, 0.42e6), "11.77 ± 0.40 MiB");
        assert_eq!(estimate(12.3456e6, 4.2e6), "11.8 ± 4.0 MiB");
        assert_eq!(estimate(777.0 * 1024.0, 1077.0 * 1024.0), "0.8 ± 1.1 MiB");
        assert_eq!(estimate(80.0, 0.0), "80 B");
        assert_eq!(estimate(0.0, 24000.0), "< 23.4 KiB");
        assert_eq!(estimate(0.0, 0.0), "0 B");
    }

    #[test]
    fn times_from_microseconds_to_hours() {
        assert_eq!(seconds(0.0), "0 µs");
        assert_eq!(seconds(0.041_6), "41.6 ms");
        assert_eq!(seconds(1.5), "1.50 s");
        assert_eq!(seconds(123.4), "2 min 3 s");
        assert_eq!(seconds(7321.0), "2 h 2 min");
    }

    #[test]
    fn digits_in_groups() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(7_353_975), "7,353,975");
    }

    #[test]
    fn rates_as_written() {
        assert_eq!(rate(1e-3), "0.001");
        assert_eq!(rate(1e-5), "1e-5");
        assert_eq!(rate(1.0), "1");
    }
}
