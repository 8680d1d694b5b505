//! The facts of a run: its row in the table of runs.

use std::collections::BTreeMap;

use heapline_model::Scheme;
use heapline_profile::{Estimator, Profile};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::labels::{SERVICE, VERSION};
use crate::path::{RunFolder, service_of_program};
use crate::{Labels, RunId, Totals};

/// What `heapline dataset list --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunList {
    /// The runs, in order of service, day and id.
    pub runs: Vec<RunInfo>,
}

/// The row of a run in `runs.parquet`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunInfo {
    /// Its id.
    #[serde(serialize_with = "as_text")]
    pub run: RunId,
    /// The label `service`, or else the name of the program.
    pub service: String,
    /// The day on which it started, by UTC.
    pub day: String,
    /// The label `version`.
    pub version: Option<String>,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// The executable.
    pub program: String,
    /// The note of the trace: the command line, if the recorder knew it.
    pub context: Option<String>,
    /// The machine.
    pub host: Option<String>,
    /// The process.
    pub pid: Option<i64>,
    /// When it started, in microseconds since 1970.
    pub started_us: i64,
    /// Seconds that were recorded.
    pub duration_s: f64,
    /// The probability that a word (a byte, if `word_bytes` is 1) was sampled.
    pub sampling_rate: f64,
    /// `exact` if every block was recorded, or `per_unit`.
    pub sampling: String,
    /// Bytes of a word; 1 where sizes are given in bytes.
    pub word_bytes: i32,
    /// Sampled blocks.
    pub sampled_blocks: i64,
    /// True if parts of the trace are lost: amounts are too low.
    pub damaged: bool,
    /// Seconds from the start to the peak of live memory.
    pub peak_s: f64,
    /// Estimates for the whole run.
    #[serde(flatten)]
    pub totals: Totals,
    /// The name of the trace file, as it was added.
    pub trace: String,
    /// The parameters of OCaml's runtime, as `OCAMLRUNPARAM` has them.
    pub gc_parameters: Option<String>,
}

impl RunInfo {
    /// The facts of a profile, but for sums over its blocks.
    pub(crate) fn new(profile: &Profile, run: RunId, trace: &str, labels: &Labels) -> Self {
        let header = profile.header();
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let service = labels.get(SERVICE).map(str::to_owned);
        let (sampling_rate, sampling) = match header.scheme {
            Scheme::PerUnit { rate, .. } if rate < 1.0 => (rate, "per_unit"),
            _ => (1.0, "exact"),
        };
        Self {
            run,
            service: service.unwrap_or_else(|| service_of_program(&header.program)),
            day: day(header.start_time),
            version: labels.get(VERSION).map(str::to_owned),
            labels: labels.all().clone(),
            program: header.program.clone(),
            context: header.context.as_deref().and_then(known),
            host: known(&header.host),
            pid: i64::try_from(header.pid).ok().filter(|pid| *pid > 0),
            started_us: saturated(header.start_time),
            duration_s: profile.duration(),
            sampling_rate,
            sampling: sampling.to_owned(),
            word_bytes: i32::try_from(header.word_bytes).unwrap_or(i32::MAX),
            sampled_blocks: 0,
            damaged: !profile.damage().is_empty(),
            peak_s: profile.peak(Estimator::default()).time,
            totals: Totals::default(),
            trace: trace.to_owned(),
            gc_parameters: header.runtime.ocaml_parameters().and_then(known),
        }
    }

    /// Where the run belongs.
    #[must_use]
    pub fn folder(&self) -> RunFolder {
        RunFolder {
            service: self.service.clone(),
            day: self.day.clone(),
            run: self.run,
        }
    }
}

/// A number as one with a sign, or the largest one that there is.
pub(crate) fn saturated(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// The UTC day of a time in microseconds since 1970; the last day of the calendar if it is later.
fn day(micros: u64) -> String {
    let time = Timestamp::from_microsecond(saturated(micros)).unwrap_or(Timestamp::MAX);
    time.to_zoned(TimeZone::UTC).date().to_string()
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn as_text<S: serde::Serializer>(run: &RunId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_of_utc_whatever_the_trace_says() {
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(1_700_000_000_000_000), "2023-11-14");
        assert_eq!(day(u64::MAX), "9999-12-30");
    }
}
