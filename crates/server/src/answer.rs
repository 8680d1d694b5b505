//! From a question to its answer: one function for each report.

use heapline_profile::query::{Pattern, TimePoint};
use heapline_profile::reports::{
    self, Compared, DiffOptions, Direction, HeatmapOptions, HotspotOptions, LeakOptions, Measure,
    Name, NamedDiff, Normalise, SeriesOptions, SortBy, StatsOptions, TreeOptions, WindowError,
};
use heapline_profile::{Estimator, GroupBy, Query, Scope};
use hyper::StatusCode;
use serde::Serialize;

use crate::engine::{Engine, Profiles};
use crate::error::ApiError;
use crate::params::Params;
use crate::request::{Request, Stop};

/// No page shows more rows.
const MOST_ROWS: usize = 100_000;

/// No answer has more numbers: points of time of all groups together, or cells.
const MOST_CELLS: usize = 2_000_000;

const GROUPS: [&str; 8] = [
    "site", "address", "function", "file", "module", "domain", "size", "age",
];

const FRAMES: [&str; 4] = ["function", "site", "file", "module"];

const MEASURES: [&str; 8] = [
    "live-bytes",
    "live-blocks",
    "live-words",
    "allocated-words",
    "allocated-bytes",
    "allocation-rate",
    "promoted-bytes",
    "promotion-rate",
];

impl Engine {
    /// The answer to a question: what the command of that name prints with `--json`, on one line.
    pub fn answer(&self, request: &Request) -> Result<Vec<u8>, ApiError> {
        self.answer_until(request, &Stop::default())
    }

    /// The same, given up where nobody waits any more.
    pub(crate) fn answer_until(&self, request: &Request, stop: &Stop) -> Result<Vec<u8>, ApiError> {
        stop.check()?;
        let params = request.params();
        match request.report() {
            "info" => {
                params.finish()?;
                json(&self.info())
            }
            "summary" => self.summary(params, stop),
            "hotspots" => self.hotspots(params, stop),
            "tree" => self.tree(params, stop),
            "flame" => self.flame(params, stop),
            "series" => self.series(params, stop),
            "stats" => self.stats(params, stop),
            "heatmap" => self.heatmap(params, stop),
            "complete" => self.complete(params),
            "leaks" => self.leaks(params, stop),
            "diff" => self.diff(params, stop),
            other => Err(ApiError::new(
                StatusCode::NOT_FOUND,
                "not_found",
                format!("there is no report called `{other}`"),
            )),
        }
    }

    fn summary(&self, mut params: Params, stop: &Stop) -> Result<Vec<u8>, ApiError> {
        let view = params.view(GroupBy::Site, &GROUPS)?;
        let rows = params.number("rows", 5, 0..=MOST_ROWS)?;
        let scope = self.scope(params, stop)?;
        json(&reports::summary(&scope, &view, rows))
    }

    fn hotspots(&self, mut params: Params, stop: &Stop) -> Result<Vec<u8>, ApiError> {
        let options = HotspotOptions {
            view: params.view(GroupBy::Function, &GROUPS)?,
            sort: params
                .word::<SortBy>("sort", &["allocated", "inclusive", "peak", "end", "blocks"])?
                .unwrap_or_default(),
            rows: params.number("rows", 20, 0..=MOST_ROWS)?,
            ..HotspotOptions::default()
        };
        let scope = self.scope(params, stop)?;
        json(&reports::hotspots(&scope, &options))
    }

    fn tree(&self, mut params: Params, stop: &Stop) -> Result<Vec<u8>, ApiError> {
        let options = tree_options(&mut params)?;
        let scope = self.scope(params, stop)?;
        json(&reports::tree(&scope, &options))
    }

    fn flame(&self, mut params: Params, stop: &Stop) -> Result<Vec<u8>, ApiError> {
        let options = tree_options(&mut params)?;
        let max_nodes = params.number("max-nodes", 100_000, 1..=1_000_000)?;
        let scope = self.scope(params, stop)?;
        json(&reports::flame(&scope, &options, max_nodes))
    }

    fn series(&self, mut params: Params, stop: &Stop) -> Result<Vec<u8>, ApiError> {
        let measure = params.word::<Measure>("measure", &MEASURES)?;
        let by = params.word::<GroupBy>("by", &GROUPS)?;
        let top = params.number("top", 10, 0..=1000)?;
        let points = params.number("points", 100, 1..=100_000)?;
        let (from, to) = (params.time("from")?, params.time("to")?);
        let callers_of = params.patterns("callers-of")?;
        let mut view = params.view(GroupBy::Function, &GROUPS)?;
        view.by = by.unwrap_or_default();
        let has_groups = by.is_some() || !callers_of.is_empty();
        if has_groups && top.saturating_mul(points) > MOST_CELLS {
            return Err(ApiError::parameter(
                "points",
                &points.to_string(),
                format!(
                    "so many points of {top} groups are too much; {MOST_CELLS} in all are allowed"
                ),
            ));
        }
        if !callers_of.is_empty() && !view.by.is_of_frames() {
            return Err(ApiError::parameter(
                "by",
                view.by.name(),
                "callers are functions, sites, files or modules; `by` says which",
            ));
        }
        let options = SeriesOptions {
            measure: measure.unwrap_or_default(),
            points,
            groups: has_groups.then_some((view, top)),
            window: (from.is_some() || to.is_some()).then(|| {
                (
                    from.unwrap_or(TimePoint::Start),
                    to.unwrap_or(TimePoint::End),
                )
            }),
            callers_of,
        };
        let scope = self.scope(params, stop)?;
        json(&reports::series(&scope, &options))
    }

    fn stats(&self, mut params: Params, stop: &Stop) -> Result<Vec<u8>, ApiError> {
        let options = StatsOptions {
            bins: params.number("bins", 20, 1..=10_000)?,
            segments: params.number("segments", 10, 1..=10_000)?,
            ..StatsOptions::default()
        };
        let scope = self.scope(params, stop)?;
        json(&reports::stats(&scope, &options))
    }

    fn heatmap(&self, mut params: Params, stop: &Stop) -> Result<Vec<u8>, ApiError> {
        let options = HeatmapOptions {
            times: params.number("times", 48, 1..=1000)?,
        };
        let scope = self.scope(params, stop)?;
        json(&reports::heatmap(&scope, &options))
    }

    /// Names for what is being typed.
    fn complete(&self, mut params: Params) -> Result<Vec<u8>, ApiError> {
        #[derive(Serialize)]
        struct Names<'a> {
            kind: &'static str,
            names: Vec<&'a Name>,
        }
        let kind = params
            .word("kind", &["function", "file", "module"])?
            .unwrap_or(GroupBy::Function);
        let part = params.text("q")?.unwrap_or_default().to_lowercase();
        let rows = params.number("rows", 20, 1..=1000)?;
        params.finish()?;
        let names = self
            .names(kind)
            .iter()
            .filter(|name| name.name.to_lowercase().contains(&part));
        json(&Names {
            kind: kind.name(),
            names: names.take(rows).collect(),
        })
    }

    fn leaks(&self, mut params: Params, stop: &Stop) -> Result<Vec<u8>, ApiError> {
        let options = LeakOptions {
            view: params.view(GroupBy::Site, &GROUPS)?,
            tail: params.share("tail", 0.1, 0.5)?,
            rows: params.number("rows", 10, 0..=MOST_ROWS)?,
            ..LeakOptions::default()
        };
        let scope = self.scope(params, stop)?;
        json(&reports::leaks(&scope, &options))
    }

    fn diff(&self, mut params: Params, stop: &Stop) -> Result<Vec<u8>, ApiError> {
        let of = params
            .word::<Compared>("of", &["allocated", "peak", "end"])?
            .unwrap_or_default();
        let per = params.word::<Normalise>("per", &["time", "allocated"])?;
        let rows = params.number("rows", 20, 0..=MOST_ROWS)?;
        let only_real = params.flag("only-real")?;
        let windows = params.windows("window")?;
        let view = params.view(GroupBy::Function, &GROUPS)?;
        let asked = Asked::take(params, self)?;
        stop.check()?;
        let scope = asked.scope();
        let (before, after, scale, [before_name, after_name]) = match &windows[..] {
            [] => {
                let Some(against) = &asked.profiles.against else {
                    return Err(ApiError::new(
                        StatusCode::BAD_REQUEST,
                        "no_other_trace",
                        "there is nothing to compare with: give two windows, or start the viewer \
                         with --against and another trace",
                    ));
                };
                let before = Scope::new(against, &asked.query, asked.estimator)
                    .keep_recursion(asked.keep_recursion);
                let scale = per.map_or(1.0, |per| reports::scale(&before, &scope, per));
                let subjects = self.subjects();
                let before_name = subjects.against.as_ref().map_or("", |trace| &trace.path);
                let names = [before_name, &subjects.trace.path].map(ToOwned::to_owned);
                (of.of_trace(before), of.of_trace(scope), scale, names)
            }
            [before, after] => {
                if per.is_some() {
                    return Err(ApiError::parameter(
                        "per",
                        "",
                        "`per` is for two traces, not for windows of one",
                    ));
                }
                let names = [before, after].map(|window| window.text().to_owned());
                let side = |window| of.of_window(&scope, window).map_err(|e| bad_window(&e));
                (side(before)?, side(after)?, 1.0, names)
            }
            [first, ..] => {
                return Err(ApiError::parameter(
                    "window",
                    first.text(),
                    "two windows can be compared, no more and no less",
                ));
            }
        };
        stop.check()?;
        let options = DiffOptions {
            view,
            rows: if only_real { usize::MAX } else { rows },
            scale,
        };
        let diff = reports::diff(&before, &after, &options);
        json(&NamedDiff {
            before_name,
            after_name,
            of,
            diff: if only_real {
                diff.only_real(rows)
            } else {
                diff
            },
        })
    }

    /// The blocks that are asked for. All parameters must have been taken.
    fn scope(&self, params: Params, stop: &Stop) -> Result<Scope<'_>, ApiError> {
        let asked = Asked::take(params, self)?;
        stop.check()?;
        let scope = asked.scope();
        stop.check()?;
        Ok(scope)
    }
}

/// What all reports are asked with.
struct Asked<'a> {
    profiles: &'a Profiles,
    keep_recursion: bool,
    query: Query,
    estimator: Estimator,
}

impl<'a> Asked<'a> {
    fn take(mut params: Params, engine: &'a Engine) -> Result<Self, ApiError> {
        let query = params.query()?;
        let estimator = params.estimator()?;
        let keep_recursion = params.flag("keep-recursion")?;
        params.finish()?;
        Ok(Self {
            profiles: engine.profiles(),
            keep_recursion,
            query,
            estimator,
        })
    }

    fn scope(&self) -> Scope<'a> {
        Scope::new(&self.profiles.trace, &self.query, self.estimator)
            .keep_recursion(self.keep_recursion)
    }
}

fn tree_options(params: &mut Params) -> Result<TreeOptions, ApiError> {
    let bottom_up = params.flag("bottom-up")?;
    let focus: Vec<Pattern> = params.patterns("focus")?;
    if focus.len() > 64 {
        return Err(ApiError::parameter(
            "focus",
            focus[64].text(),
            "`focus` can be given 64 times at most",
        ));
    }
    if bottom_up && !focus.is_empty() {
        return Err(ApiError::parameter(
            "focus",
            focus[0].text(),
            "`focus` shows callers and callees; it goes without `bottom-up`",
        ));
    }
    let view = params.view(GroupBy::Function, &FRAMES)?;
    Ok(TreeOptions {
        direction: if bottom_up {
            Direction::BottomUp
        } else {
            Direction::TopDown
        },
        focus,
        threshold: params.share("min", 0.01, 1.0)?,
        depth: params.number("depth", usize::MAX, 0..=usize::MAX)?,
        // As the command: from allocations up, the line is what one wants to know first.
        sites: params.flag("sites")? || (bottom_up && view.by == GroupBy::Function),
        details: params.flag("details")?,
        view,
    })
}

fn bad_window(error: &WindowError) -> ApiError {
    let value = match error {
        WindowError::Empty(text) => text,
        WindowError::NoPeak => "",
    };
    ApiError::parameter("window", value, error.to_string())
}

fn json(report: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(report).map_err(|error| {
        ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            format!("the answer cannot be written: {error}"),
        )
    })
}
