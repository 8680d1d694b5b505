//! The page as one file, with the answers in it instead of a server behind it.
//!
//! A report carries answers, not the trace: those to the questions that the page asks about the
//! whole run, the peak, the end, and what was allocated from one of a few times to another.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde::Serialize;
use serde_json::Value;

use crate::assets;
use crate::engine::Engine;
use crate::error::ApiError;
use crate::request::Request;
use crate::state::Status;

/// The places of the page that the report fills.
const STYLE: &str = "<link rel=\"stylesheet\" href=\"./assets/app.css\" />";
const SCRIPT: &str = "<script type=\"module\" src=\"./assets/app.js\"></script>";

/// A report needs no network, and cannot use it.
const POLICY: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
    script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\" />";

/// Nodes of a flame graph, and rows of a table, of all blocks, those at the peak and those at the
/// end. The page asks for as many rows.
const NODES: &str = "5000";
const ROWS: &str = "1000";

/// The same of a part of the time, of which there are many.
const NODES_OF_SLICE: &str = "1000";
const ROWS_OF_SLICE: &str = "250";

/// Digits of a number. Pages show four, and no estimate is as precise as nine.
const DIGITS: i32 = 9;

const MEASURES: [Option<&str>; 8] = [
    None,
    Some("live-blocks"),
    Some("live-words"),
    Some("allocated-bytes"),
    Some("allocated-words"),
    Some("allocation-rate"),
    Some("promoted-bytes"),
    Some("promotion-rate"),
];

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The page is not there.
    #[error("this heapline was built without its page: {0}")]
    NoPage(&'static str),
    /// The page is not as it should be.
    #[error("the page cannot be put into one file: {0} is missing")]
    BadPage(&'static str),
    /// A question was not answered.
    #[error("`{0}` cannot be answered: {1}")]
    Unanswered(String, ApiError),
    /// It could not be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The same with its parts.
#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    status: Status<'a>,
    /// Seconds.
    slices: Vec<f64>,
    answers: serde_json::Map<String, Value>,
}

/// Writes a report. The run is cut into so many slices; what was allocated from the beginning of
/// any of them to the end of any later one can be looked at. `progress` is told how many of how
/// many questions are answered.
pub fn write_report(
    engine: &Engine,
    slices: usize,
    progress: &(dyn Fn(usize, usize) + Sync),
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let page = Page::new()?;
    let bounds = bounds(engine.profile().duration(), slices.max(1));
    let questions = questions(engine, &bounds);
    let done = AtomicUsize::new(0);
    let answers: Result<Vec<(String, Value)>, ReportError> = questions
        .par_iter()
        .map(|question| {
            let packed = question.packed(engine)?;
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, questions.len());
            Ok((question.key.key(), packed.into()))
        })
        .collect();
    let report = Report {
        version: 1,
        status: Status::ready(engine.subjects()),
        slices: bounds.iter().map(|&micros| micros as f64 / 1e6).collect(),
        answers: answers?.into_iter().collect(),
    };
    let data = serde_json::to_string(&report).map_err(io::Error::other)?;
    page.write(&data, out)?;
    Ok(())
}

/// The bounds of the slices, in microseconds. The last is after the last event: a range of times
/// does not have its end in it.
fn bounds(duration: f64, slices: usize) -> Vec<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was microseconds before"
    )]
    let end = (duration * 1e6).round() as u64;
    let mut bounds: Vec<u64> = (0..slices)
        .map(|i| u64::try_from(u128::from(end) * i as u128 / slices as u128).unwrap_or(end))
        .collect();
    bounds.push(end + 1);
    // A very short run has fewer.
    bounds.dedup();
    bounds
}

/// A question of the page.
struct Question {
    /// As the page asks it.
    key: Request,
    /// As it is answered: less may be enough.
    asked: Request,
}

impl Question {
    /// The answer: JSON, compressed, as text.
    fn packed(&self, engine: &Engine) -> Result<String, ReportError> {
        let answer = engine
            .answer(&self.asked)
            .map_err(|error| ReportError::Unanswered(self.key.key(), error))?;
        let mut answer: Value = serde_json::from_slice(&answer).map_err(io::Error::other)?;
        round(&mut answer);
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        serde_json::to_writer(&mut encoder, &answer).map_err(io::Error::other)?;
        Ok(BASE64_STANDARD.encode(encoder.finish()?))
    }
}

/// What the page asks: `ui/src/state/questions.ts` is the other side of this.
fn questions(engine: &Engine, bounds: &[u64]) -> Vec<Question> {
    let mut questions = Vec::new();
    let mut ask = |key: Request, limit: Option<(&str, &str)>| {
        let asked = match limit {
            Some((name, most)) => key.clone().replacing(name, most),
            None => key.clone(),
        };
        questions.push(Question { key, asked });
    };
    let by = |report: &str, by: Option<&str>| {
        let request = Request::new(report);
        by.map_or(request.clone(), |by| request.with("by", by))
    };
    ask(Request::new("info"), None);
    for group in [
        None,
        Some("function"),
        Some("module"),
        Some("site"),
        Some("file"),
        Some("domain"),
    ] {
        for measure in MEASURES {
            let mut series = by("series", group).with("points", "400");
            if let Some(measure) = measure {
                series = series.with("measure", measure);
            }
            ask(series, None);
        }
    }
    for group in [None, Some("function"), Some("module")] {
        ask(by("leaks", group).with("rows", "100"), None);
    }
    for of in [None, Some("peak"), Some("end")] {
        for group in [None, Some("site"), Some("file"), Some("module")] {
            let diff = by("diff", group).with("rows", "200");
            let diff = of.map_or(diff.clone(), |of| diff.with("of", of));
            if engine.subjects().against.is_some() {
                ask(diff, None);
            } else if of != Some("peak") && bounds.len() > 2 {
                let (first, last) = (bounds[0], bounds[bounds.len() - 1]);
                let middle = bounds[bounds.len() / 2];
                let window = |from, to| format!("{}..{}", time(from), time(to));
                let halves = diff
                    .with("window", &window(first, middle))
                    .with("window", &window(middle, last));
                ask(halves, None);
            }
        }
    }
    for (i, condition) in conditions(bounds).into_iter().enumerate() {
        let only = |request: Request| match &condition {
            Some(condition) => request.with("where", condition),
            None => request,
        };
        let (nodes, rows) = if i < WHOLE {
            (NODES, ROWS)
        } else {
            (NODES_OF_SLICE, ROWS_OF_SLICE)
        };
        let flame = Request::new("flame").with("min", "0.1%");
        ask(only(flame.clone()), Some(("max-nodes", nodes)));
        ask(
            only(flame.with("bottom-up", "true")),
            Some(("max-nodes", nodes)),
        );
        for report in ["summary", "stats", "heatmap"] {
            ask(only(Request::new(report)), None);
        }
        for group in [None, Some("site"), Some("file"), Some("module")] {
            let table = by("hotspots", group).with("rows", ROWS);
            ask(only(table), Some(("rows", rows)));
        }
    }
    questions
}

/// How many of the conditions are not about a part of the time.
const WHOLE: usize = 3;

/// Which blocks: all, those at the peak, at the end, and of each pair of bounds.
fn conditions(bounds: &[u64]) -> Vec<Option<String>> {
    let mut conditions = vec![
        None,
        Some("live at peak".to_owned()),
        Some("live at end".to_owned()),
    ];
    debug_assert_eq!(conditions.len(), WHOLE);
    for (i, &from) in bounds.iter().enumerate() {
        for &to in &bounds[i + 1..] {
            conditions.push(Some(format!("allocated in {}..{}", time(from), time(to))));
        }
    }
    conditions
}

/// Seconds as JavaScript writes them.
fn time(micros: u64) -> String {
    format!("{}s", micros as f64 / 1e6)
}

/// Rounds all numbers that are not whole: digits that nobody can see are most of a file.
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

/// The page, taken apart where something is to be put in.
struct Page {
    before_style: &'static str,
    before_script: &'static str,
    after_script: &'static str,
    style: &'static str,
    script: String,
}

impl Page {
    fn new() -> Result<Self, ReportError> {
        if let Some(reason) = assets::missing_page() {
            return Err(ReportError::NoPage(reason));
        }
        let text = |path: &'static str| {
            assets::find(path)
                .and_then(|file| std::str::from_utf8(file.bytes).ok())
                .ok_or(ReportError::BadPage(path))
        };
        let index = text("index.html")?;
        let (before_style, rest) = index.split_once(STYLE).ok_or(ReportError::BadPage(STYLE))?;
        let (before_script, after_script) = rest
            .split_once(SCRIPT)
            .ok_or(ReportError::BadPage(SCRIPT))?;
        let style = text("assets/app.css")?;
        if style.contains("</style") {
            return Err(ReportError::BadPage("a style sheet without </style"));
        }
        Ok(Self {
            before_style,
            before_script,
            after_script,
            style,
            // Scripts have it in texts only, where the backslash does not change it.
            script: text("assets/app.js")?.replace("</script", "<\\/script"),
        })
    }

    fn write(&self, data: &str, out: &mut dyn Write) -> io::Result<()> {
        write!(
            out,
            "{}{POLICY}\n    <style>{}</style>{}\
             <script id=\"heapline-report\" type=\"application/json\">{}</script>\n    \
             <script type=\"module\">{}</script>{}",
            self.before_style,
            self.style,
            self.before_script,
            // So that no text in it ends the script. `<` is in texts only.
            data.replace('<', "\\u003c"),
            self.script,
            self.after_script
        )?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_the_run() {
        assert_eq!(bounds(10.0, 2), [0, 5_000_000, 10_000_001]);
        assert_eq!(bounds(0.0, 8), [0, 1]);
        assert_eq!(bounds(0.000_002, 8), [0, 1, 3]);
        let windows = conditions(&bounds(10.0, 2)).split_off(WHOLE);
        let windows: Vec<String> = windows.into_iter().flatten().collect();
        assert_eq!(
            windows,
            [
                "allocated in 0s..5s",
                "allocated in 0s..10.000001s",
                "allocated in 5s..10.000001s"
            ]
        );
    }

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
