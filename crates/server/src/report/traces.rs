//! The report of a trace: the answers about the whole run, the peak, the end, and what was allocated from one of a few times
//! to another.

use std::io::Write;
use std::sync::Arc;

use clap::ValueEnum as _;
use heapline_engine::{Filter, Params, Request, Session};
use heapline_profile::query::{TimePoint, Window};
use heapline_profile::reports::{
    Compared, DiffOptions, FlameOptions, HeatmapOptions, HotspotOptions, LeakOptions, Measure,
    SeriesOptions, StatsOptions, SummaryOptions, TreeOptions,
};
use heapline_profile::{GroupBy, Query, Share};

use super::{Question, ReportError, write_answers};
use crate::loader::Loaded;
use crate::trace::Subjects;

/// Nodes of a flame graph, and rows of a table, of all blocks, those at the peak and those at the
/// end. The page asks for as many rows.
const NODES: usize = 5000;
const ROWS: usize = 1000;

/// Nodes and rows of a time slice, of which there are many.
const NODES_OF_SLICE: usize = 1000;
const ROWS_OF_SLICE: usize = 250;

/// Rows of a comparison that the page asks for, and that a report has.
const DIFF_ROWS: usize = 5000;
const DIFF_ROWS_HELD: usize = 200;

/// Writes a report. The run is cut into so many slices; what was allocated from the beginning of
/// any of them to the end of any later one can be looked at. `progress` is told how many of how
/// many questions are answered.
pub fn write_report(
    subjects: &Subjects,
    session: &Arc<Session>,
    slices: usize,
    progress: &(dyn Fn(usize, usize) + Sync),
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let bounds = bounds(session.trace().profile.duration(), slices.max(1));
    let questions = questions(session, &bounds);
    let slices = bounds.iter().map(|&micros| micros as f64 / 1e6).collect();
    let session = Loaded::Traces(Arc::clone(session));
    write_answers(subjects, &session, slices, &questions, progress, out)
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
    let mut comparisons = Vec::new();
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
            let request = |rows| {
                Request::Diff(Params::all(DiffOptions {
                    window: window.clone(),
                    of,
                    by,
                    rows,
                    ..DiffOptions::default()
                }))
            };
            comparisons.push(Question {
                key: request(DIFF_ROWS),
                asked: request(DIFF_ROWS_HELD),
            });
        }
    }
    let mut questions: Vec<Question> = requests.into_iter().map(Question::new).collect();
    questions.append(&mut comparisons);
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
        // As the page asks for it.
        let totals = SummaryOptions {
            findings: 0,
            ..SummaryOptions::default()
        };
        let summary = Request::Summary(about(&filter, totals));
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
}
