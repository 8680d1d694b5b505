//! The report of a trace: the answers about the whole run, the peak and the end, and on request about what was allocated from
//! one of a few times to another.

use std::io::Write;
use std::sync::Arc;

use heapline_engine::{Filter, Params, Request, Session};
use heapline_model::Capabilities;
use heapline_profile::query::{TimePoint, Window};
use heapline_profile::reports::{
    BlocksOptions, Compared, DiffOptions, DiffSides, DiffTreeOptions, FlameOptions, GcOptions,
    HeatmapOptions, HotspotOptions, LeakOptions, Measure, SeriesOptions, StatsOptions,
    SummaryOptions, TreeOptions,
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

/// Blocks that the page asks for, and that a report has. Each has a stack.
const BLOCKS: usize = 500;
const BLOCKS_HELD: usize = 100;

/// Points of a timeline.
const POINTS: usize = 400;

/// Pauses of the garbage collector.
const PAUSES: usize = 20;

/// Rows of a comparison that the page asks for, and that a report has.
const DIFF_ROWS: usize = 5000;
const DIFF_ROWS_HELD: usize = 200;

/// Options of [`write_report`].
#[derive(Clone, Debug)]
pub struct ReportOptions {
    /// The number of slices of the run: if there are several, what was allocated from the beginning of any of them to
    /// the end of any later one can be looked at.
    pub slices: u8,
    /// The state that the page opens in, as after `#` in its address.
    pub state: Option<String>,
}

impl ReportOptions {
    /// Slices unless somebody chooses.
    pub const SLICES: u8 = 1;
}

/// Writes a report. `progress` is told how many of how many questions are answered.
pub fn write_report(
    subjects: &Subjects,
    session: &Arc<Session>,
    options: &ReportOptions,
    progress: &(dyn Fn(usize, usize) + Sync),
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let end = last_micros(session.trace().profile.duration());
    let bounds = bounds(end, usize::from(options.slices));
    let groups = groups(session, end, &bounds);
    let slices = bounds.iter().map(|&micros| micros as f64 / 1e6).collect();
    let session = Loaded::Traces(Arc::clone(session));
    let opening = (slices, options.state.as_deref());
    write_answers(subjects, &session, opening, &groups, progress, out)
}

/// The time of the last event in microseconds.
fn last_micros(duration: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was microseconds before"
    )]
    let end = (duration * 1e6).round() as u64;
    end
}

/// The bounds of the slices, in microseconds; none if there is only one slice. The last is after the last event: a range of
/// times does not have its end in it.
fn bounds(end: u64, slices: usize) -> Vec<u64> {
    let mut bounds: Vec<u64> = (0..slices)
        .map(|i| u64::try_from(u128::from(end) * i as u128 / slices as u128).unwrap_or(end))
        .collect();
    bounds.push(end + 1);
    // A very short run has fewer.
    bounds.dedup();
    if bounds.len() > 2 { bounds } else { Vec::new() }
}

/// The requests of the page: `ui/src/state/questions.ts` is the other side of this.
fn groups(session: &Session, end: u64, bounds: &[u64]) -> Vec<Vec<Question>> {
    let profile = &session.trace().profile;
    let tells = profile.tells();
    let mut groups = vec![
        series(tells.lifetimes, !profile.collections().is_empty()),
        changes(tells, session.against().is_some(), end),
    ];
    let whole = [None, Some(TimePoint::Peak), Some(TimePoint::End)];
    for point in whole {
        let queries = point.map(Query::live_at).into_iter().collect();
        let filter = about_blocks(queries);
        let mut questions = views(&filter, NODES, ROWS, tells);
        questions.extend(tells.lifetimes.then(|| blocks(&filter)));
        groups.push(questions);
    }
    for (i, &from) in bounds.iter().enumerate() {
        for &to in &bounds[i + 1..] {
            let queries = vec![Query::allocated_in(&window(from, to))];
            let filter = about_blocks(queries);
            groups.push(views(&filter, NODES_OF_SLICE, ROWS_OF_SLICE, tells));
        }
    }
    groups
}

/// Information on the file, the overview, memory and the garbage collector over time.
fn series(has_lifetimes: bool, has_collections: bool) -> Vec<Question> {
    let overview = SummaryOptions {
        by: GroupBy::Function,
        ..SummaryOptions::default()
    };
    let mut requests = vec![Request::Info, Request::Summary(Params::all(overview))];
    let measures = [Measure::LiveBytes, Measure::AllocationRate];
    for measure in measures.into_iter().take(1 + usize::from(has_lifetimes)) {
        for by in [None, Some(GroupBy::Function)] {
            requests.push(Request::Series(Params::all(SeriesOptions {
                measure,
                by,
                branches: by.is_none(),
                points: Some(POINTS),
                ..SeriesOptions::default()
            })));
        }
    }
    if has_collections {
        requests.push(Request::Gc(Params::all(GcOptions {
            rows: PAUSES,
            points: POINTS,
            ..GcOptions::default()
        })));
    }
    requests.into_iter().map(Question::new).collect()
}

/// Leaks, and comparisons with the other trace, or of the halves of the run.
fn changes(tells: Capabilities, has_other: bool, end: u64) -> Vec<Question> {
    let mut questions = Vec::new();
    let of_leaks = [GroupBy::Site, GroupBy::Function, GroupBy::Module];
    for by in of_leaks.into_iter().filter(|_| tells.lifetimes) {
        questions.push(Question::new(Request::Leaks(Params::all(LeakOptions {
            by,
            rows: 100,
            ..LeakOptions::default()
        }))));
    }
    for of in [Compared::Allocated, Compared::Peak, Compared::End] {
        let window = if has_other {
            Vec::new()
        } else if of == Compared::Peak || end == 0 {
            // A window has no peak, and no time no halves.
            continue;
        } else {
            vec![window(0, end / 2), window(end / 2, end)]
        };
        let sides = DiffSides {
            window,
            of,
            ..DiffSides::default()
        };
        questions.push(diff_tree(&sides));
        for &by in frames(tells) {
            let request = |rows| {
                Request::Diff(Params::all(DiffOptions {
                    sides: sides.clone(),
                    by,
                    rows,
                    ..DiffOptions::default()
                }))
            };
            questions.push(Question {
                key: request(DIFF_ROWS),
                asked: request(DIFF_ROWS_HELD),
            });
        }
    }
    questions
}

fn about_blocks(queries: Vec<Query>) -> Filter {
    Filter {
        queries,
        ..Filter::default()
    }
}

/// The largest blocks of a selection.
fn blocks(filter: &Filter) -> Question {
    let request = |rows| {
        let options = BlocksOptions {
            rows,
            ..BlocksOptions::default()
        };
        Request::Blocks(about(filter, options))
    };
    Question {
        key: request(BLOCKS),
        asked: request(BLOCKS_HELD),
    }
}

/// The views of a selection.
fn views(filter: &Filter, nodes: usize, rows: usize, tells: Capabilities) -> Vec<Question> {
    let mut questions = Vec::new();
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
            max_nodes: nodes,
            ..key.clone()
        };
        let request = |options| Request::Flame(about(filter, options));
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
    questions.push(Question::new(Request::Summary(about(filter, totals))));
    if tells.lifetimes {
        let of_lives = [
            Request::Stats(about(filter, StatsOptions::default())),
            Request::Heatmap(about(filter, HeatmapOptions::default())),
        ];
        questions.extend(of_lives.map(Question::new));
    }
    for &by in frames(tells) {
        let request = |rows| {
            let options = HotspotOptions {
                by,
                rows,
                ..HotspotOptions::default()
            };
            Request::Hotspots(about(filter, options))
        };
        questions.push(Question {
            key: request(ROWS),
            asked: request(rows),
        });
    }
    questions
}

/// A comparison as a flame graph.
fn diff_tree(sides: &DiffSides) -> Question {
    let key = DiffTreeOptions {
        sides: sides.clone(),
        min: Share(0.001),
        ..DiffTreeOptions::default()
    };
    let asked = DiffTreeOptions {
        max_nodes: NODES_OF_SLICE,
        ..key.clone()
    };
    let request = |options| Request::DiffTree(Params::all(options));
    Question {
        key: request(key),
        asked: request(asked),
    }
}

/// The groupings of the page's tables and comparisons.
const FRAMES: [GroupBy; 5] = [
    GroupBy::Function,
    GroupBy::Site,
    GroupBy::File,
    GroupBy::Module,
    GroupBy::Crate,
];

/// The groupings that differ in a program: modules of OCaml, whose traces tell of promotions, are in no crates.
fn frames(tells: Capabilities) -> &'static [GroupBy] {
    if tells.promotions {
        &FRAMES[..4]
    } else {
        &FRAMES
    }
}

fn about<O: heapline_engine::Ask>(filter: &Filter, options: O) -> Params<O> {
    Params {
        filter: filter.clone(),
        options,
    }
}

fn window(from: u64, to: u64) -> Window {
    Window::new(TimePoint::Micros(from), TimePoint::Micros(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_the_run() {
        assert_eq!(bounds(last_micros(10.0), 2), [0, 5_000_000, 10_000_001]);
        assert!(bounds(10, 1).is_empty());
        assert!(bounds(0, 8).is_empty());
        assert_eq!(bounds(2, 8), [0, 1, 3]);
    }
}
