//! The user's choices, and the requests that follow from them.

use heapline_engine::{Filter, Params, Request};
use heapline_profile::query::{TimePoint, Window};
use heapline_profile::reports::{
    Compared, DiffOptions, DiffSides, GcOptions, HotspotOptions, Measure, SeriesOptions, SortBy,
    TreeOptions,
};
use heapline_profile::{Estimator, GroupBy, Look, Query, Share};

use crate::moment::Moment;
use crate::situation::Situation;

/// Rows of the table; the others are merged.
const ROWS: usize = 1000;

/// Groups of the timeline.
const GROUPS: usize = 8;

/// Pauses of the garbage collector.
const PAUSES: usize = 5;

/// The allocation rate is that of the last seconds, or of the last part of a short run.
const RATE_WINDOW: u64 = 5_000_000;
const RATE_PARTS: u64 = 20;

/// A view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// A flat table of groups.
    #[default]
    Table,
    /// A call tree.
    Tree,
    /// Memory over time, and of the largest groups.
    Timeline,
    /// The garbage collector.
    Collector,
}

/// A column of figures; also the blocks that the tree is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Column {
    /// Live at the moment.
    #[default]
    Live,
    /// Change of live memory since the mark.
    Growth,
    /// Allocated per second.
    Rate,
    /// Allocated since the start.
    Allocated,
}

impl Column {
    /// All columns in order.
    pub const ALL: [Self; 4] = [Self::Live, Self::Growth, Self::Rate, Self::Allocated];

    /// Its title.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Growth => "growth",
            Self::Rate => "rate",
            Self::Allocated => "allocated",
        }
    }
}

/// The unit of figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Bytes, headers included.
    #[default]
    Bytes,
    /// Blocks.
    Blocks,
}

/// The place of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// The table of a column.
    Column(Column),
    /// The tree.
    Tree,
    /// The timeline above the table.
    Series,
    /// The timeline with groups.
    Groups,
    /// The garbage collector up to the moment.
    Collector,
    /// The garbage collector in the time that rates are about.
    CollectorRecently,
}

/// A request, and where its answer belongs.
#[derive(Clone, Debug, PartialEq)]
pub struct Want {
    /// The place of the answer.
    pub slot: Slot,
    /// The request.
    pub request: Box<Request>,
    /// Seconds that a rate is about; 0 for other figures.
    pub seconds: f64,
}

/// The user's choices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choices {
    /// The view.
    pub view: View,
    /// The moment that is shown.
    pub moment: Moment,
    /// The moment that growth is measured from, in microseconds.
    pub mark: Option<u64>,
    /// The column that rows are sorted by.
    pub column: Column,
    /// The unit of figures.
    pub unit: Unit,
    /// The grouping of rows and nodes.
    pub by: GroupBy,
    /// The direction of the tree.
    pub is_top_down: bool,
    /// The filter line.
    pub query: Query,
    /// The rows that were opened, as conditions.
    pub opened: Vec<Query>,
    /// Attribute memory to own code in all views, or in none, instead of in lists of functions only.
    pub own_code: Option<bool>,
    /// Nodes of the tree below this share are merged.
    pub min: Option<Share>,
    /// Options for the display of functions.
    pub look: Look,
    /// How samples are scaled.
    pub estimator: Estimator,
    /// Keep all frames of recursive calls.
    pub keep_recursion: bool,
}

impl Choices {
    /// The requests of the screen, the most important first. `points` is the width of the timeline.
    #[must_use]
    pub fn wants(&self, situation: &Situation, points: usize) -> Vec<Want> {
        let mut slots = match self.view {
            View::Table => vec![Slot::Column(self.column), Slot::Series],
            View::Tree => vec![Slot::Tree, Slot::Series],
            View::Timeline => vec![Slot::Groups],
            View::Collector => vec![Slot::Collector, Slot::CollectorRecently, Slot::Series],
        };
        let columns = Column::ALL.into_iter().map(Slot::Column);
        slots.extend(columns.filter(|slot| *slot != slots[0]).collect::<Vec<_>>());
        slots
            .into_iter()
            .filter_map(|slot| self.want(slot, situation, points))
            .collect()
    }

    fn want(&self, slot: Slot, situation: &Situation, points: usize) -> Option<Want> {
        let seconds = match slot {
            Slot::Column(Column::Rate) => self.rate_seconds(situation),
            Slot::Tree if self.column == Column::Rate => self.rate_seconds(situation),
            _ => 0.0,
        };
        let request = match slot {
            Slot::Column(Column::Growth) => self.growth()?,
            Slot::Column(column) => Request::Hotspots(Params {
                filter: self.filter(column, situation),
                options: HotspotOptions {
                    by: self.by,
                    sort: match self.unit {
                        // How many blocks are live is always told.
                        Unit::Blocks if situation.tells.sizes => SortBy::Blocks,
                        _ => SortBy::Allocated,
                    },
                    reverse: false,
                    rows: ROWS,
                    look: self.look(),
                },
            }),
            Slot::Tree => {
                let mut options = TreeOptions {
                    bottom_up: !self.is_top_down,
                    by: match self.by {
                        GroupBy::Address => GroupBy::Site,
                        by if by.is_of_frames() => by,
                        _ => GroupBy::Function,
                    },
                    look: self.look(),
                    ..TreeOptions::default()
                };
                if let Some(min) = self.min {
                    options.min = min;
                }
                Request::Tree(Params {
                    filter: self.filter(self.column, situation),
                    options,
                })
            }
            Slot::Collector => self.collector(
                (self.moment != Moment::Now)
                    .then(|| Window::new(TimePoint::Start, self.moment.end_of_window())),
                PAUSES,
                points,
            ),
            Slot::CollectorRecently => {
                let (from, _) = self.rate_window(situation);
                let from = Moment::At(from).time_point();
                let window = Window::new(from, self.moment.end_of_window());
                self.collector(Some(window), 1, 1)
            }
            Slot::Series | Slot::Groups => Request::Series(Params {
                filter: self.base_filter(),
                options: SeriesOptions {
                    measure: self.measure(),
                    by: (slot == Slot::Groups).then_some(self.by),
                    top: if slot == Slot::Groups { GROUPS } else { 10 },
                    points: Some(points),
                    look: self.look(),
                    ..SeriesOptions::default()
                },
            }),
        };
        Some(Want {
            slot,
            request: Box::new(request),
            seconds,
        })
    }

    /// The garbage collector in a window.
    fn collector(&self, window: Option<Window>, rows: usize, points: usize) -> Request {
        Request::Gc(Params {
            filter: self.base_filter(),
            options: GcOptions {
                window,
                rows,
                points,
                look: self.look(),
            },
        })
    }

    /// The measure of the timeline.
    fn measure(&self) -> Measure {
        match (self.view, self.column, self.unit) {
            (View::Timeline, Column::Allocated, _) => Measure::AllocatedBytes,
            (View::Timeline, Column::Rate, _) => Measure::AllocationRate,
            (_, _, Unit::Blocks) => Measure::LiveBlocks,
            _ => Measure::LiveBytes,
        }
    }

    /// The change since the mark, if there is one.
    fn growth(&self) -> Option<Request> {
        let mark = self.mark?;
        let until = |moment: Moment| Window::new(TimePoint::Start, moment.end_of_window());
        Some(Request::Diff(Params {
            filter: self.base_filter(),
            options: DiffOptions {
                sides: DiffSides {
                    window: vec![until(Moment::At(mark)), until(self.moment)],
                    of: Compared::End,
                    ..DiffSides::default()
                },
                by: self.by,
                rows: ROWS,
                look: self.look(),
                ..DiffOptions::default()
            },
        }))
    }

    /// The blocks of a column.
    fn filter(&self, column: Column, situation: &Situation) -> Filter {
        let mut filter = self.base_filter();
        let until = self.moment.end_of_window();
        let after = |micros: u64| Moment::At(micros).end_of_window();
        let window = match column {
            Column::Live => None,
            Column::Growth => self.mark.map(|mark| (after(mark), TimePoint::End)),
            Column::Rate => Some((after(self.rate_window(situation).0), until)),
            Column::Allocated => (self.moment != Moment::Now).then_some((TimePoint::Start, until)),
        };
        if let Some((from, to)) = window {
            let window = Window::new(from, to);
            filter.queries.push(Query::allocated_in(&window));
        }
        if matches!(column, Column::Live | Column::Growth) {
            filter.live = Some(self.moment.time_point());
        }
        filter
    }

    /// The start and the end of the time that the rate is about, in microseconds.
    #[must_use]
    pub fn rate_window(&self, situation: &Situation) -> (u64, u64) {
        let to = self.moment.micros(situation);
        let from = match situation.snapshot(to) {
            // What was allocated between two snapshots counts from the second one.
            Some(0) => 0,
            Some(number) => situation.snapshots[number - 1],
            None => {
                let window = (situation.duration / RATE_PARTS).clamp(1, RATE_WINDOW);
                to.saturating_sub(window)
            }
        };
        (from, to)
    }

    fn rate_seconds(&self, situation: &Situation) -> f64 {
        let (from, to) = self.rate_window(situation);
        to.saturating_sub(from) as f64 / 1e6
    }

    fn base_filter(&self) -> Filter {
        let queries = std::iter::once(&self.query).chain(&self.opened);
        Filter {
            queries: queries.filter(|query| !query.is_all()).cloned().collect(),
            live: None,
            estimator: self.estimator,
            keep_recursion: self.keep_recursion,
        }
    }

    /// The options for the display of functions, with those of keys.
    pub(crate) fn look(&self) -> Look {
        match self.own_code {
            None => self.look.clone(),
            Some(own_code) => Look {
                own_code,
                all_code: !own_code,
                mine: if own_code {
                    self.look.mine.clone()
                } else {
                    Vec::new()
                },
                ..self.look.clone()
            },
        }
    }

    /// Returns true if the present view attributes memory to own code.
    pub(crate) fn is_of_own_code(&self) -> bool {
        let look = self.look();
        match self.view {
            View::Tree => look.is_of_own_code(),
            View::Table | View::Timeline => look.of_list(self.by).is_of_own_code(),
            View::Collector => look.of_list(GroupBy::Site).is_of_own_code(),
        }
    }
}
