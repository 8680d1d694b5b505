//! The output of `prof_spacetime`: `heapline flame --format prof_spacetime` and
//! `heapline diff --compat prof_spacetime`.

use std::path::Path;
use std::str::FromStr;

use heapline_formats::Options;
use heapline_formats::spacetime::{PrintMode, Series};

use crate::input::Input;
use crate::output::{Force, to_stdout, write_file};

/// Options of the format.
#[derive(Debug, clap::Args)]
pub(super) struct PrintOptions {
    /// Select what is counted (`prof_spacetime`) [default: words]
    #[arg(long, value_enum, hide_short_help = true)]
    mode: Option<PrintMode>,

    /// Select the snapshot: a number from 0, or last (`prof_spacetime`) [default: last]
    #[arg(long, value_name = "N", hide_short_help = true)]
    snapshot: Option<SnapshotNumber>,

    /// Print the outermost frame first (`prof_spacetime`)
    #[arg(long, hide_short_help = true)]
    inverted: bool,
}

/// The number of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SnapshotNumber {
    Number(usize),
    Last,
}

impl FromStr for SnapshotNumber {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "last" => Ok(Self::Last),
            number => number
                .parse()
                .map(Self::Number)
                .map_err(|_| "expected a number from 0, or last"),
        }
    }
}

impl PrintOptions {
    /// Refuses the options with another format.
    pub(super) fn refuse(&self) -> anyhow::Result<()> {
        let given = [
            (self.mode.is_some(), "--mode"),
            (self.snapshot.is_some(), "--snapshot"),
            (self.inverted, "--inverted"),
        ];
        match given.iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) => anyhow::bail!("{option} needs --format prof_spacetime"),
            None => Ok(()),
        }
    }

    /// Prints folded stacks.
    pub(super) fn print(&self, input: &Input, output: &Path, force: &Force) -> anyhow::Result<()> {
        let series = read(input)?;
        let mode = self.mode.unwrap_or(PrintMode::Words);
        let name = input.name();
        let snapshot = if mode.is_of_calls() {
            if self.snapshot.is_some() {
                anyhow::bail!("calls are counted for the whole run: leave out --snapshot");
            }
            if !series.has_call_counts() {
                anyhow::bail!("{name} has no call counts");
            }
            0
        } else {
            let last = series.snapshots().checked_sub(1);
            let last = last.ok_or_else(|| anyhow::anyhow!("{name} has no snapshots"))?;
            match self.snapshot.unwrap_or(SnapshotNumber::Last) {
                SnapshotNumber::Last => last,
                SnapshotNumber::Number(n) if n <= last => n,
                SnapshotNumber::Number(n) => {
                    anyhow::bail!("there is no snapshot {n}: {name} has 0 to {last}")
                }
            }
        };
        write_file(output, force, |mut out| {
            series.print(mode, snapshot, self.inverted, &mut out)
        })
    }
}

/// Reads a Spacetime profile.
pub(super) fn read(input: &Input) -> anyhow::Result<Series> {
    let options = input.formats_options(Options::default())?;
    let series = Series::read(input.bytes()?, options)
        .map_err(|error| anyhow::Error::new(error).context(input.name()))?;
    input.warn_of(series.damage());
    Ok(series)
}

/// Prints what `prof_spacetime compare` printed.
pub(super) fn compare(before: &Input, after: &Input) -> anyhow::Result<()> {
    let [before, after] = [read(before)?, read(after)?];
    let mut out = Vec::new();
    before.compare(&after, &mut out)?;
    to_stdout(&out)
}
