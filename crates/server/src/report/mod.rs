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
pub use traces::write_report;

use crate::loader::Loaded;
use crate::state::Status;
use crate::trace::Subjects;
use page::Page;

/// Digits of a number. Pages show four, and no estimate is as precise as nine.
const DIGITS: i32 = 9;

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
    /// Seconds.
    slices: Vec<f64>,
    answers: serde_json::Map<String, Value>,
}

/// An answer as the page finds it. All are about the trace and the epoch of the status.
#[derive(Serialize)]
struct EmbeddedAnswer<'a> {
    command: Option<&'a str>,
    report: Value,
}

/// Writes a report with the answers to questions. `progress` is told how many of how many are answered.
fn write_answers(
    subjects: &Subjects,
    session: &Loaded,
    slices: Vec<f64>,
    questions: &[Question],
    progress: &(dyn Fn(usize, usize) + Sync),
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let page = Page::new()?;
    let done = AtomicUsize::new(0);
    let answers: Result<Vec<(String, Value)>, ReportError> = questions
        .par_iter()
        .map(|question| {
            let packed = question.packed(session)?;
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, questions.len());
            Ok((question.key.key(), packed.into()))
        })
        .collect();
    let report = Report {
        version: 2,
        status: Status::ready(subjects, session),
        slices,
        answers: answers?.into_iter().collect(),
    };
    let data = serde_json::to_string(&report).map_err(io::Error::other)?;
    page.write(&data, out)?;
    Ok(())
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

    /// The answer: JSON, compressed, as text.
    fn packed(&self, session: &Loaded) -> Result<String, ReportError> {
        let answer = session
            .answer(&self.asked, &Cancel::default())
            .map_err(|error| ReportError::Unanswered(self.key.key(), error))?;
        let mut report = serde_json::to_value(&answer.report).map_err(io::Error::other)?;
        round(&mut report);
        let answer = EmbeddedAnswer {
            command: answer.command.as_deref(),
            report,
        };
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        serde_json::to_writer(&mut encoder, &answer).map_err(io::Error::other)?;
        Ok(BASE64_STANDARD.encode(encoder.finish()?))
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
    fn rounding_leaves_nine_digits() {
        let mut value = serde_json::json!({
            "a": [818_203.820_949_388_6, 0.1, 3, 1e-12, 0.0, -1.5],
            "b": 123_456_789_012.345_6,
            "c": {"d": 0.000_123_456_789_123},
        });
        round(&mut value);
        let rounded = serde_json::json!({
            "a": [818_203.821, 0.1, 3, 1e-12, 0.0, -1.5],
            "b": 123_456_789_012.0,
            "c": {"d": 0.000_123_456_789},
        });
        assert_eq!(value, rounded);
    }
}
