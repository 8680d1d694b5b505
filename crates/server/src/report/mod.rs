//! The report file: the page with precomputed answers, without a server.
//!
//! A report carries answers, not the trace or the snapshot: those to the usual questions of the page.

mod page;
mod snapshots;
mod traces;

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde::Serialize;
use serde_json::Value;

use heapline_engine::{Cancel, EngineError, Request};

pub use snapshots::write_snapshot_report;
pub use traces::{ReportOptions, write_report};

use crate::loader::Loaded;
use crate::state::Status;
use crate::trace::Subjects;
use page::Page;

/// Digits of a number. Pages show four.
const DIGITS: i32 = 6;

/// The error of writing a report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The page is not there.
    #[error("this heapline was built without its page: {0}")]
    NoPage(&'static str),
    /// The page is not as it should be.
    #[error("cannot embed the page: {0} is missing")]
    BadPage(&'static str),
    /// A question was not answered.
    #[error("cannot compute `{0}`: {1}")]
    Unanswered(String, EngineError),
    /// It could not be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The data of a report file.
#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    status: Status<'a>,
    /// The boundaries of the time slices, in seconds; none if there are no answers about windows.
    slices: Vec<f64>,
    /// The state that the page opens in, as after `#` in its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a str>,
    groups: Vec<Group>,
}

/// Answers that the page is likely to need at the same time, compressed together: they have many texts in common.
#[derive(Serialize)]
struct Group {
    questions: Vec<String>,
    /// Base64 of raw deflate of the JSON array of answers.
    answers: String,
}

/// An answer as the page finds it. All are about the trace and the epoch of the status.
#[derive(Serialize)]
struct EmbeddedAnswer {
    command: Option<String>,
    report: Value,
}

/// Writes a report with the answers to groups of questions, which opens in a state if one is given. `progress` is told how many
/// of how many are answered.
fn write_answers(
    subjects: &Subjects,
    session: &Loaded,
    (slices, state): (Vec<f64>, Option<&str>),
    groups: &[Vec<Question>],
    progress: &(dyn Fn(usize, usize) + Sync),
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let page = Page::new()?;
    let all = groups.iter().map(Vec::len).sum();
    let done = AtomicUsize::new(0);
    let answered = |question: &Question| {
        let answer = question.answer(session);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, all);
        answer
    };
    let pack = |questions: &Vec<Question>| {
        let answers: Result<Vec<_>, _> = questions.par_iter().map(answered).collect();
        Ok(Group {
            questions: questions.iter().map(|one| one.key.key()).collect(),
            answers: packed(&serde_json::to_vec(&answers?).map_err(io::Error::other)?)?,
        })
    };
    let groups: Result<Vec<Group>, ReportError> = groups.par_iter().map(pack).collect();
    let report = Report {
        version: 3,
        status: Status::ready(subjects, session),
        slices,
        state,
        groups: groups?,
    };
    let data = serde_json::to_string(&report).map_err(io::Error::other)?;
    page.write(&data, out)?;
    Ok(())
}

/// Base64 of raw deflate, which browsers can undo.
fn packed(bytes: &[u8]) -> io::Result<String> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(BASE64_STANDARD.encode(encoder.finish()?))
}

/// A question of the page.
struct Question {
    /// The request of the page.
    key: Request,
    /// The request that is answered: it may have smaller limits.
    asked: Request,
}

impl Question {
    fn new(request: Request) -> Self {
        Self {
            key: request.clone(),
            asked: request,
        }
    }

    fn answer(&self, session: &Loaded) -> Result<EmbeddedAnswer, ReportError> {
        let answer = session
            .answer(&self.asked, &Cancel::default())
            .map_err(|error| ReportError::Unanswered(self.key.key(), error))?;
        let mut report = serde_json::to_value(&answer.report).map_err(io::Error::other)?;
        round(&mut report);
        Ok(EmbeddedAnswer {
            command: answer.command.clone(),
            report,
        })
    }
}

/// Rounds all numbers: insignificant digits would take most of the file.
fn round(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(exact) = number.as_f64().filter(|exact| exact.fract() != 0.0) {
                let scale = DIGITS - 1 - decimal_exponent(exact);
                let rounded = if scale <= 0 {
                    exact.round()
                } else {
                    let factor = 10_f64.powi(scale.min(300));
                    (exact * factor).round() / factor
                };
                // Very small numbers may have become nothing that is a number.
                if let Some(rounded) = serde_json::Number::from_f64(rounded) {
                    *number = rounded;
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        _ => {}
    }
}

fn decimal_exponent(number: f64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "it is from -324 to 308")]
    let exponent = number.abs().log10().floor() as i32;
    exponent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_leaves_six_digits() {
        let mut value = serde_json::json!({
            "a": [818_203.820_949_388_6, 0.1, 3, 1e-12, 0.0, -1.5],
            "b": 123_456_789_012.345_6,
            "c": {"d": 0.000_123_456_789_123},
        });
        round(&mut value);
        let rounded = serde_json::json!({
            "a": [818_204.0, 0.1, 3, 1e-12, 0.0, -1.5],
            "b": 123_456_789_012.0,
            "c": {"d": 0.000_123_457},
        });
        assert_eq!(value, rounded);
    }
}
