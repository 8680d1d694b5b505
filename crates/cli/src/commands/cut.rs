//! `heapline cut`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use heapline_profile::cut::{Cut, CutError, Kept, Names, Subsample};
use heapline_trace::Options;
use jiff::SignedDuration;

use crate::error::warn;
use crate::input::Input;
use crate::output::{Force, Output, refuse_compressed, refuse_terminal};
use crate::units::{count, percent, seconds};

/// Write a smaller trace: a part of the time, fewer samples, no names
///
/// A block that is kept is kept with its whole life: its promotion and its collection follow,
/// whenever they are. The result opens in memtrace's tools too.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline cut trace.ctf -o second.ctf --from 1s --to 2s
  heapline cut trace.ctf -o small.ctf --subsample 10
  heapline cut trace.ctf -o secret.ctf --hash-names --hash-key my-key
  heapline cut trace.ctf -o - --to 10s | zstd > beginning.ctf.zst")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// More traces are an error; only one can be cut at a time
    #[arg(hide = true, value_name = "TRACE")]
    more: Vec<PathBuf>,

    /// Where to write the result; - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Keep blocks allocated at this time or later: 1.5s, 300ms, 2m, or a number of seconds since
    /// the start of the trace
    #[arg(long, value_name = "TIME", value_parser = microseconds, allow_hyphen_values = true)]
    from: Option<u64>,

    /// Keep blocks allocated before this time
    #[arg(long, value_name = "TIME", value_parser = microseconds, allow_hyphen_values = true)]
    to: Option<u64>,

    /// Keep each sample with probability 1/N, and lower the rate accordingly
    #[arg(long, value_name = "N", value_parser = one_in, allow_hyphen_values = true)]
    subsample: Option<u64>,

    /// Which samples --subsample keeps: the same seed keeps the same
    #[arg(long, value_name = "S", default_value_t = 0, requires = "subsample")]
    seed: u64,

    /// Drop all stacks and names: functions, files, program, host, process, time of day, context
    #[arg(long, conflicts_with = "hash_names")]
    strip_names: bool,

    /// Put pseudonyms in place of functions, files, program and host; drop process and context
    #[arg(long)]
    hash_names: bool,

    /// Make pseudonyms depend on what is in a file: without knowing it, nobody can check guesses at
    /// what they stand for
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
                "{} traces were given, but only one can be cut at a time: merging traces is not supported",
                self.more.len() + 1
            );
        }
        let time = self.from.unwrap_or(0)..self.to.unwrap_or(u64::MAX);
        if time.is_empty() {
            anyhow::bail!("nothing to keep: --from is not before --to");
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
        let mut reader = self.input.open(Options::new().stacks(!self.strip_names))?;
        refuse_compressed(&self.output)?;
        if self.output == Path::new("-") {
            refuse_terminal("a trace", "trace.ctf")?;
        }
        let mut output = Output::create(&self.output, self.force.force)?;
        let name = output.name();
        let kept = cut
            .apply(&mut reader, &mut output)
            .map_err(|error| match error {
                CutError::Read(error) => self.input.error(error),
                CutError::Write(error) => {
                    anyhow::Error::new(error).context(format!("cannot write {name}"))
                }
                CutError::NoSubsample => error.into(),
            })?;
        output.finish()?;
        self.input.warn_of(reader.damage());
        report(&name, &cut, &kept);
        Ok(())
    }
}

/// Says what became of the trace.
fn report(name: &str, cut: &Cut, kept: &Kept) {
    anstream::eprintln!(
        "{name}: kept {} of {} allocations ({}), {} of {} samples",
        count(kept.allocations),
        count(kept.allocations_before),
        percent(kept.allocations as f64, kept.allocations_before as f64),
        count(kept.samples),
        count(kept.samples_before),
    );
    if kept.allocations == 0 && kept.allocations_before > 0 {
        let lasts = seconds(kept.duration as f64 / 1e6);
        warn(&if cut.time.start > kept.duration {
            format!("nothing is left: the trace lasts {lasts}, and --from is after that")
        } else {
            format!(
                "nothing is left: the trace lasts {lasts}, and nothing was sampled that is asked for"
            )
        });
    }
    if kept.shortened_stacks > 0 {
        warn(&format!(
            "{} stacks were too large for one packet: frames in their middle were left out",
            count(kept.shortened_stacks)
        ));
    }
}

/// The key for pseudonyms, out of a file.
fn hash_key(path: Option<&Path>) -> anyhow::Result<Vec<u8>> {
    let Some(path) = path else {
        return Ok(Vec::new());
    };
    let name = path.display();
    let key = std::fs::read(path).with_context(|| format!("cannot read the key {name}"))?;
    if key.trim_ascii().is_empty() {
        anyhow::bail!("the key {name} is empty: anybody could check guesses at the pseudonyms");
    }
    Ok(key.trim_ascii().to_vec())
}

/// Parses how many samples one is to be kept of.
fn one_in(text: &str) -> anyhow::Result<u64> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => anyhow::bail!("one sample in N is kept, where N is a whole number, 1 or more"),
    }
}

/// Parses a time since the start of the trace.
fn microseconds(text: &str) -> anyhow::Result<u64> {
    let seconds = match text.parse::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => text
            .parse::<SignedDuration>()
            .context("a time is a number with a unit, such as 1.5s, 300ms or 2m30s, or a number of seconds")?
            .as_secs_f64(),
    };
    if !(0.0..1e12).contains(&seconds) {
        anyhow::bail!(
            "a time since the start of the trace cannot be negative, or longer than 30,000 years"
        );
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was just checked"
    )]
    let microseconds = (seconds * 1e6).round() as u64;
    Ok(microseconds)
}

#[cfg(test)]
mod tests {
    use super::microseconds;

    #[test]
    fn times_with_and_without_units() {
        let parse = |text| microseconds(text).ok();
        assert_eq!(parse("1.5"), Some(1_500_000));
        assert_eq!(parse("300ms"), Some(300_000));
        assert_eq!(parse("1.5s"), Some(1_500_000));
        assert_eq!(parse("2m30s"), Some(150_000_000));
        assert_eq!(parse("-1s"), None);
        assert_eq!(parse("soon"), None);
        assert_eq!(parse("nan"), None);
    }
}
