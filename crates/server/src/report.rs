//! The report file: the page with precomputed answers, without a server.
//!
//! A report carries answers, not the trace: those to the questions that the page asks about the
//! whole run, the peak, the end, and what was allocated from one of a few times to another.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::ValueEnum as _;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde::Serialize;
use serde_json::Value;

use heapline_engine::{Cancel, EngineError, Filter, Params, Request, Session};
use heapline_profile::query::{TimePoint, Window};
use heapline_profile::reports::{
    Compared, DiffOptions, FlameOptions, HeatmapOptions, HotspotOptions, LeakOptions, Measure,
    SeriesOptions, StatsOptions, SummaryOptions, TreeOptions,
};
use heapline_profile::{GroupBy, Query, Share};

use crate::assets;
use crate::state::Status;
use crate::trace::Subjects;

/// The places of the page that the report fills.
const STYLE: &str = "<link rel=\"stylesheet\" href=\"./assets/app.css\" />";
const SCRIPT: &str = "<script type=\"module\" src=\"./assets/app.js\"></script>";

/// A report needs no network, and cannot use it.
const POLICY: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
    script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\" />";

/// Nodes of a flame graph, and rows of a table, of all blocks, those at the peak and those at the
/// end. The page asks for as many rows.
const NODES: usize = 5000;
const ROWS: usize = 1000;

/// Nodes and rows of a time slice, of which there are many.
const NODES_OF_SLICE: usize = 1000;
const ROWS_OF_SLICE: usize = 250;

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

/// Writes a report. The run is cut into so many slices; what was allocated from the beginning of
/// any of them to the end of any later one can be looked at. `progress` is told how many of how
/// many questions are answered.
pub fn write_report(
    subjects: &Subjects,
    session: &Session,
    slices: usize,
    progress: &(dyn Fn(usize, usize) + Sync),
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let page = Page::new()?;
    let bounds = bounds(session.trace().profile.duration(), slices.max(1));
    let questions = questions(session, &bounds);
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
    fn packed(&self, session: &Session) -> Result<String, ReportError> {
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

/// The requests of the page: `ui/src/state/questions.ts` is the other side of this.
fn questions(session: &Session, bounds: &[u64]) -> Vec<Question> {
    let has_other = session.against().is_some();
    let tells = session.trace().profile.tells();
    let is_told = |measure: &Measure| {
        (tells.promotions || !measure.is_promotion())
            && (tells.lifetimes || *measure != Measure::AllocationRate)
    };
    let mut requests = vec![Request::Info];
    for by in [
        None,
        Some(GroupBy::Function),
        Some(GroupBy::Module),
        Some(GroupBy::Site),
        Some(GroupBy::File),
        Some(GroupBy::Crate),
        Some(GroupBy::Domain),
    ] {
        if by == Some(GroupBy::Domain) && !tells.lanes {
            continue;
        }
        let measures = Measure::value_variants().iter();
        for &measure in measures.filter(|measure| is_told(measure)) {
            requests.push(Request::Series(Params::all(SeriesOptions {
                measure,
                by,
                points: Some(400),
                ..SeriesOptions::default()
            })));
        }
    }
    let of_leaks = [GroupBy::Site, GroupBy::Function, GroupBy::Module];
    for by in of_leaks.into_iter().filter(|_| tells.lifetimes) {
        requests.push(Request::Leaks(Params::all(LeakOptions {
            by,
            rows: 100,
            ..LeakOptions::default()
        })));
    }
    for of in [Compared::Allocated, Compared::Peak, Compared::End] {
        let window = match bounds {
            _ if has_other => Vec::new(),
            // A window has no peak.
            [first, _, .., last] if of != Compared::Peak => {
                let middle = bounds[bounds.len() / 2];
                vec![window(*first, middle), window(middle, *last)]
            }
            _ => continue,
        };
        for by in FRAMES {
            requests.push(Request::Diff(Params::all(DiffOptions {
                window: window.clone(),
                of,
                by,
                rows: 200,
                ..DiffOptions::default()
            })));
        }
    }
    let mut questions: Vec<Question> = requests.into_iter().map(Question::new).collect();
    for (i, queries) in conditions(bounds).into_iter().enumerate() {
        let filter = Filter {
            queries,
            ..Filter::default()
        };
        let (max_nodes, rows) = if i < WHOLE {
            (NODES, ROWS)
        } else {
            (NODES_OF_SLICE, ROWS_OF_SLICE)
        };
        for bottom_up in [false, true] {
            let tree = TreeOptions {
                bottom_up,
                min: Share(0.001),
                ..TreeOptions::default()
            };
            let key = FlameOptions {
                tree,
                ..FlameOptions::default()
            };
            let asked = FlameOptions {
                max_nodes,
                ..key.clone()
            };
            let request = |options| Request::Flame(about(&filter, options));
            questions.push(Question {
                key: request(key),
                asked: request(asked),
            });
        }
        let summary = Request::Summary(about(&filter, SummaryOptions::default()));
        questions.push(Question::new(summary));
        if tells.lifetimes {
            let of_lives = [
                Request::Stats(about(&filter, StatsOptions::default())),
                Request::Heatmap(about(&filter, HeatmapOptions::default())),
            ];
            questions.extend(of_lives.map(Question::new));
        }
        for by in FRAMES {
            let request = |rows| {
                let options = HotspotOptions {
                    by,
                    rows,
                    ..HotspotOptions::default()
                };
                Request::Hotspots(about(&filter, options))
            };
            questions.push(Question {
                key: request(ROWS),
                asked: request(rows),
            });
        }
    }
    questions
}

/// The groupings of the page's tables and comparisons.
const FRAMES: [GroupBy; 5] = [
    GroupBy::Function,
    GroupBy::Site,
    GroupBy::File,
    GroupBy::Module,
    GroupBy::Crate,
];

fn about<O: heapline_engine::Ask>(filter: &Filter, options: O) -> Params<O> {
    Params {
        filter: filter.clone(),
        options,
    }
}

/// The number of conditions that are not time windows.
const WHOLE: usize = 3;

/// The filters: all blocks, those live at the peak, at the end, and those of each pair of bounds.
fn conditions(bounds: &[u64]) -> Vec<Vec<Query>> {
    let mut conditions = vec![
        Vec::new(),
        vec![Query::live_at(TimePoint::Peak)],
        vec![Query::live_at(TimePoint::End)],
    ];
    debug_assert_eq!(conditions.len(), WHOLE);
    for (i, &from) in bounds.iter().enumerate() {
        for &to in &bounds[i + 1..] {
            conditions.push(vec![Query::allocated_in(&window(from, to))]);
        }
    }
    conditions
}

fn window(from: u64, to: u64) -> Window {
    Window::new(TimePoint::Micros(from), TimePoint::Micros(to))
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
        let windows: Vec<Query> = windows.into_iter().flatten().collect();
        let windows: Vec<&str> = windows.iter().map(Query::text).collect();
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
