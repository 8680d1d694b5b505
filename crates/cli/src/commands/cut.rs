//! `heapline cut`.

use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::Context;
use heapline_export::cut::{Cut, CutError, Kept, Names, Subsample};
use heapline_formats::memtrace_damage;
use heapline_profile::query::{TimePoint, Window};
use heapline_profile::{Estimator, Profile, StoreOptions};
use heapline_text::sanitize;
use heapline_text::units::{count, percent, seconds};
use heapline_trace::{Options, Snapshot};

use crate::error::warn;
use crate::input::{Input, watch};
use crate::output::{Force, Output, refuse_compressed, refuse_terminal};
use crate::reopen;

/// Write a smaller trace: a time window, fewer samples, no names
///
/// Promotions and collections of the kept blocks are kept too, at any time. The result also opens in
/// memtrace's tools.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline cut trace.ctf -o second.ctf --window 1s..2s
  heapline cut trace.ctf -o after.ctf --window peak..
  heapline cut trace.ctf -o small.ctf --subsample 10
  heapline cut trace.ctf -o secret.ctf --hash-names --hash-key my-key
  heapline cut trace.ctf -o - --window ..10s | zstd > beginning.ctf.zst")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Catches additional traces for a better error message
    #[arg(hide = true, value_name = "TRACE")]
    more: Vec<PathBuf>,

    /// Write the trace to this file, or - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Keep blocks allocated in this window: 1s..2s, ..peak, 90%.. [default: the whole run]
    #[arg(long, value_name = "FROM..TO", conflicts_with_all = ["from", "to"], help_heading = "Select")]
    window: Option<Window>,

    /// Keep blocks allocated at or after this time: 10s, 90%, peak, @14:30:05 [default: start]
    ///
    /// A number without a unit is in seconds since the start of the trace.
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true, help_heading = "Select", hide_short_help = true)]
    from: Option<TimePoint>,

    /// Keep blocks allocated before this time [default: end]
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true, help_heading = "Select", hide_short_help = true)]
    to: Option<TimePoint>,

    /// Keep each sample with probability 1/N, and adjust the sampling rate
    #[arg(long, value_name = "N", value_parser = one_in, allow_hyphen_values = true)]
    subsample: Option<u64>,

    /// Set the random seed of --subsample; the same seed keeps the same samples
    #[arg(long, value_name = "S", default_value_t = 0, requires = "subsample")]
    seed: u64,

    /// Remove all stacks, names, program, host, process, time of day and context
    #[arg(long, conflicts_with = "hash_names")]
    strip_names: bool,

    /// Replace names, program and host by pseudonyms; remove process and context
    #[arg(long)]
    hash_names: bool,

    /// Derive the pseudonyms from the secret in this file
    ///
    /// Without it, anyone can verify a guess at the name behind a pseudonym.
    #[arg(
        long,
        value_name = "FILE",
        requires = "hash_names",
        conflicts_with = "strip_names"
    )]
    hash_key: Option<PathBuf>,

    #[command(flatten)]
    force: Force,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if !self.more.is_empty() {
            anyhow::bail!(
                "cannot cut {} traces at once; give one trace",
                self.more.len() + 1
            );
        }
        let snapshot = reopen::snapshot(&self.input)?;
        let open = |options| self.input.decode(watch(&snapshot), options);
        let mut reader = open(Options::new().stacks(!self.strip_names))?;
        let time = self.window(reader.info().start_time, &snapshot)?;
        if time.is_empty() {
            anyhow::bail!(match self.window {
                Some(_) => "--window must start before it ends",
                None => "--from must be before --to",
            });
        }
        let cut = Cut {
            time,
            subsample: self.subsample.map(|one_in| Subsample {
                one_in,
                seed: self.seed,
            }),
            names: if self.strip_names {
                Names::Strip
            } else if self.hash_names {
                Names::Hash {
                    key: hash_key(self.hash_key.as_deref())?,
                }
            } else {
                Names::Keep
            },
        };
        refuse_compressed(&self.output)?;
        if self.output == Path::new("-") {
            refuse_terminal("trace.ctf")?;
        }
        let mut output = Output::create(&self.output, self.force.force)?;
        let name = output.name();
        let explain = |error| match error {
            CutError::Read(error) => self.input.error(error),
            CutError::Write(error) => {
                anyhow::Error::new(error).context(format!("cannot write {name}"))
            }
            CutError::NoSubsample | CutError::Merged => error.into(),
        };
        let early = cut
            .scan(&mut open(Options::new().stacks(false))?)
            .map_err(explain)?;
        let kept = cut
            .apply(&early, &mut reader, &mut output)
            .map_err(explain)?;
        output.finish()?;
        self.input.warn_of(&memtrace_damage(reader.damage()));
        report(&name, &cut, &kept);
        Ok(())
    }
}

impl Args {
    /// The time to keep, in microseconds since the start of the trace.
    fn window(&self, start_time: u64, snapshot: &Snapshot) -> anyhow::Result<Range<u64>> {
        let mut run = None;
        let mut micros = |time: &TimePoint| -> anyhow::Result<u64> {
            if let Some(micros) = time.micros_since(start_time) {
                return Ok(micros);
            }
            if *time == TimePoint::End {
                return Ok(u64::MAX);
            }
            let profile = match run.take() {
                Some(profile) => profile,
                None => self.load(snapshot)?,
            };
            let micros = time.micros(&profile, Estimator::default());
            run = Some(profile);
            // The peak is reached after all events of its microsecond.
            Ok(micros.saturating_add(u64::from(*time == TimePoint::Peak)))
        };
        let (from, to) = match &self.window {
            Some(window) => {
                let (from, to) = window.bounds();
                (Some(from), Some(to))
            }
            None => (self.from.as_ref(), self.to.as_ref()),
        };
        let from = from.map_or(Ok(0), &mut micros)?;
        let to = to.map_or(Ok(u64::MAX), &mut micros)?;
        Ok(from..to)
    }

    /// Loads the trace to find the peak and the end; without stacks, to save memory.
    fn load(&self, snapshot: &Snapshot) -> anyhow::Result<Profile> {
        let options = heapline_formats::Options {
            stacks: false,
            ..heapline_formats::Options::default()
        };
        self.input
            .load_from(|| Ok(watch(snapshot)), options, StoreOptions::default())
    }
}

/// Prints how much of the trace was kept.
fn report(name: &str, cut: &Cut, kept: &Kept) {
    anstream::eprintln!(
        "{}: kept {} of {} allocations ({}), {} of {} samples",
        sanitize(name),
        count(kept.allocations),
        count(kept.allocations_before),
        percent(kept.allocations as f64, kept.allocations_before as f64),
        count(kept.samples),
        count(kept.samples_before),
    );
    if kept.allocations == 0 && kept.allocations_before > 0 {
        let lasts = seconds(kept.duration as f64 / 1e6);
        warn(&if cut.time.start > kept.duration {
            format!("no blocks are left: the window starts after the end of the trace at {lasts}")
        } else {
            format!(
                "no blocks are left: none were sampled in this time window; the trace lasts {lasts}"
            )
        });
    }
    if kept.shortened_stacks > 0 {
        warn(&format!(
            "{} stacks were too large for one packet; frames in the middle are missing",
            count(kept.shortened_stacks)
        ));
    }
}

/// Reads the key for pseudonyms from a file.
fn hash_key(path: Option<&Path>) -> anyhow::Result<Vec<u8>> {
    let Some(path) = path else {
        return Ok(Vec::new());
    };
    let name = path.display();
    let key = std::fs::read(path).with_context(|| format!("cannot read the key {name}"))?;
    if key.trim_ascii().is_empty() {
        anyhow::bail!("the key {name} is empty; put a secret into it");
    }
    Ok(key.trim_ascii().to_vec())
}

/// Parses the N of `--subsample`.
fn one_in(text: &str) -> anyhow::Result<u64> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => anyhow::bail!("expected an integer, 1 or more"),
    }
}

/// Parses a time as in queries, or a number of seconds.
fn time(text: &str) -> anyhow::Result<TimePoint> {
    let seconds = text
        .parse::<f64>()
        .is_ok_and(|seconds| seconds.is_finite() && seconds >= 0.0);
    let in_seconds = format!("{text}s");
    let time = TimePoint::parse(if seconds { &in_seconds } else { text });
    time.map_err(|error| anyhow::anyhow!("expected {}, or a number of seconds", error.expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_and_without_units() {
        let parse = |text| time(text).ok();
        assert_eq!(parse("1.5"), Some(TimePoint::Micros(1_500_000)));
        assert_eq!(parse("1e-3"), Some(TimePoint::Micros(1000)));
        assert_eq!(parse("300ms"), Some(TimePoint::Micros(300_000)));
        assert_eq!(parse("2m30s"), Some(TimePoint::Micros(150_000_000)));
        assert_eq!(parse("50%"), Some(TimePoint::Fraction(0.5)));
        assert_eq!(parse("peak"), Some(TimePoint::Peak));
        for text in ["-1s", "-1", "soon", "nan", "inf"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
