//! The text of memtrace's `identify`.

use std::fmt::Write;

use heapline_profile::reports::Overview;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Formats a trace of `file_size` bytes that was given as `path` as memtrace's `identify` does.
#[must_use]
pub fn identify(overview: &Overview, path: &str, file_size: u64) -> String {
    let trace = &overview.trace;
    let samples = &overview.samples;
    let bytes_per_word = (trace.word_size / 8) as f64;
    let bytes = |samples: u64| samples as f64 / trace.sample_rate * bytes_per_word;
    let minor = bytes(samples.minor);
    let direct = bytes(samples.direct);
    let promoted = bytes(samples.promoted);
    let collected = bytes(samples.major_collected);
    let total = minor + direct;
    let [up_to_4, up_to_16, up_to_256] = samples
        .up_to_4_16_256
        .map(|samples| number(100.0 * bytes(samples) / total, 0));
    let duration = samples.last_event_time as f64 * 1e-6;
    let largest = overview.largest_words.saturating_mul(trace.word_size) / 8;

    let mut text = String::new();
    let mut line = |args: std::fmt::Arguments<'_>| {
        // Writing to a string does not fail.
        let _ = text.write_fmt(args);
        text.push('\n');
    };
    line(format_args!(
        "Trace file {path} ({})",
        size(file_size as f64)
    ));
    line(format_args!("   of {}", trace.executable_name));
    line(format_args!("   at {} UTC", date(trace.start_time)));
    line(format_args!(
        "   on host {} ({}-bit), pid {}, sample rate {}",
        trace.host_name,
        trace.word_size,
        trace.pid.cast_signed(),
        scientific(trace.sample_rate)
    ));
    line(format_args!(
        "   with OCaml GC params {}",
        trace.ocaml_runtime_params.as_deref().unwrap_or_default()
    ));
    if let Some(context) = &trace.context {
        line(format_args!("   with context: {context}"));
    }
    line(format_args!("Trace statistics:"));
    line(format_args!(
        "   Minor: {}/s allocations, {}% promoted",
        size(minor / duration),
        number(100.0 * promoted / minor, 1)
    ));
    line(format_args!(
        "   Major: {}/s allocations ({}/s direct), {}/s collections",
        size((direct + promoted) / duration),
        size(direct / duration),
        size(collected / duration)
    ));
    line(format_args!(
        "   Sizes (by word): {up_to_4}% <= 4w, {up_to_16}% <= 16w, {up_to_256}% <= 256w. Max: {}",
        size(largest as f64)
    ));
    line(format_args!("   Runtime: {} s", number(duration, 3)));
    text
}

/// A number with so many digits after the point, as C prints it on this field's machines: what is
/// not a number is what zero divided by zero gives, and that is negative.
fn number(n: f64, digits: usize) -> String {
    if n.is_nan() {
        "-nan".to_owned()
    } else {
        format!("{n:.digits$}")
    }
}

fn size(bytes: f64) -> String {
    const UNITS: [&str; 4] = ["B", "kB", "MB", "GB"];
    let mut n = bytes;
    for unit in UNITS {
        if n < 1000.0 {
            let digits = usize::from(n < 10.0 && unit != "B");
            return format!("{:>3} {unit}", number(n, digits));
        }
        n /= 1024.0;
    }
    let digits = usize::from(n < 10.0);
    format!("{:>3} TB", number(n, digits))
}

/// Formats as C's `%.1e`: the exponent has at least two digits.
fn scientific(n: f64) -> String {
    let text = format!("{n:.1e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, digits) = match exponent.strip_prefix('-') {
                Some(digits) => ('-', digits),
                None => ('+', exponent),
            };
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        None => text,
    }
}

fn date(microseconds: u64) -> String {
    // The reference goes by whole seconds towards zero.
    let seconds = i64::try_from(microseconds / 1_000_000).unwrap_or(i64::MAX);
    match Timestamp::from_second(seconds) {
        Ok(time) => time
            .to_zoned(TimeZone::UTC)
            .strftime("%a %b %-d %H:%M:%S %Y")
            .to_string(),
        Err(_) => format!("{seconds} seconds after 1970-01-01"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_reference_program_s_widths() {
        let cases = [
            (0.0, "  0 B"),
            (999.4, "999 B"),
            (1000.0, "1.0 kB"),
            (54539.0, " 53 kB"),
            (1_023_999.0, "1000 kB"),
            (1_024_000.0, "1.0 MB"),
            (800_024.0, "781 kB"),
            (5e15, "4547 TB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(size(bytes), text);
        }
        assert_eq!(size(f64::NAN), "-nan TB");
        assert_eq!(size(f64::INFINITY), "inf TB");
    }

    #[test]
    fn rates_have_two_digits_of_exponent() {
        assert_eq!(scientific(1e-3), "1.0e-03");
        assert_eq!(scientific(1.0), "1.0e+00");
        assert_eq!(scientific(2.5e-123), "2.5e-123");
    }

    #[test]
    fn days_are_not_padded() {
        assert_eq!(date(5 * 86_400_000_000 + 1), "Tue Jan 6 00:00:00 1970");
    }
}
