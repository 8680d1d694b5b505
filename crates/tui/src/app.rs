//! The state of the screen.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use heapline_engine::{Answer, EngineError, Report, Request};
use heapline_model::Capabilities;
use heapline_profile::reports::{Gc, Hotspots, NamedDiff, Series, Tree};
use heapline_profile::{GroupBy, Look, Query};

use crate::choices::{Choices, Column, Slot, View, Want};
use crate::filter::FilterLine;
use crate::menu::Menu;
use crate::moment::Moment;
use crate::situation::Situation;
use crate::theme::Theme;
use crate::worker::News;

/// An answer, and what was asked.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) epoch: u64,
    /// The choices that it answers.
    version: u64,
    pub(crate) want: Want,
    pub(crate) result: Result<Arc<Answer>, EngineError>,
}

/// The part of the screen that keys go to.
#[derive(Debug, Default)]
pub(crate) enum Mode {
    #[default]
    Browse,
    Filter(FilterLine),
    Menu(Menu),
    /// The first line of the help that is shown.
    Help(usize),
    /// The question if the program that was started is to be ended.
    Quit,
}

/// The consequence of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The screen may have changed.
    Redraw,
    /// Leave.
    Quit,
    /// End the program that was started, and leave.
    Kill,
    /// Stop until the shell continues it.
    Suspend,
}

/// The row or node that is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// Its identity, which stays when rows move.
    pub(crate) key: Option<u64>,
    /// Its place, if it is gone.
    pub(crate) index: usize,
    /// The first row that is shown.
    pub(crate) top: usize,
}

/// Settings that do not change.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The file, for the title.
    pub file: String,
    /// The abilities of the terminal.
    pub theme: Theme,
    /// True if the program was started for this, and can be ended.
    pub is_own_program: bool,
}

/// The state of the screen. Keys and news change it; [`App::draw`](Self::draw) shows it.
#[derive(Debug, Default)]
pub struct App {
    pub(crate) settings: Settings,
    pub(crate) choices: Choices,
    /// Counts changes of the choices.
    pub(crate) version: u64,
    pub(crate) situation: Option<Situation>,
    pub(crate) is_recording: bool,
    pub(crate) is_frozen: bool,
    pub(crate) progress: f64,
    pub(crate) problem: Option<String>,
    /// Shown until the next key.
    pub(crate) message: Option<String>,
    answers: HashMap<Slot, Held>,
    pub(crate) mode: Mode,
    pub(crate) rows: Selection,
    pub(crate) nodes: Selection,
    /// Nodes that are folded, or open, other than by default.
    pub(crate) flipped: HashSet<u64>,
    /// The first line of the collector's view that is shown.
    pub(crate) collector_top: usize,
    /// The rows of the table that fit, as last drawn.
    pub(crate) page: usize,
    /// The screen row of the first row of the table, as last drawn.
    pub(crate) first_row: u16,
    /// Points of the timeline, as last drawn.
    pub(crate) points: usize,
    /// Further tasks for the worker.
    pub(crate) naming: Option<GroupBy>,
    pub(crate) checking: Option<(Query, Look)>,
    /// The requests that were handed out last.
    wanted: Option<(u64, Vec<Want>)>,
}

impl App {
    /// A screen that waits for its trace.
    #[must_use]
    pub fn new(settings: Settings, choices: Choices) -> Self {
        Self {
            settings,
            choices,
            page: 10,
            points: 64,
            ..Self::default()
        }
    }

    /// Takes news of the worker.
    pub fn receive(&mut self, news: News) {
        match news {
            News::Progress(share) => self.progress = share,
            News::Problem(problem) => self.problem = Some(problem),
            News::Advanced(situation) => self.advance(situation),
            News::Ended => {
                self.is_recording = false;
                self.message = Some("the recording has ended".to_owned());
            }
            News::Answered(epoch, want, result) => {
                let wanted = self.wanted.as_ref();
                let is_wanted = wanted.is_some_and(|(_, wants)| wants.contains(&want));
                let held = Held {
                    epoch,
                    version: if is_wanted { self.version } else { 0 },
                    want,
                    result,
                };
                self.answers.insert(held.want.slot, held);
            }
            News::Names(kind, names) => {
                if let Mode::Filter(line) = &mut self.mode {
                    line.set_names(kind, names);
                }
            }
            News::Unmatched(names) => {
                if let Some(name) = names.into_iter().next() {
                    self.message = Some(name);
                }
            }
        }
    }

    fn advance(&mut self, situation: Situation) {
        self.is_recording = situation.is_recording;
        self.problem = None;
        if self.situation.is_none() && situation.is_recording && self.choices.mark.is_none() {
            // Growth is that since the user looked first.
            self.choices.mark = Some(situation.duration);
        }
        if self.situation.is_none() {
            self.choices.moment = situation.first;
        }
        if self.situation.is_none() {
            // Functions of a program that still runs may be yet to come.
            let look = if situation.is_recording {
                Look::default()
            } else {
                self.choices.look()
            };
            let has_names = !self.choices.query.is_all()
                || [&look.hide, &look.mine].iter().any(|list| !list.is_empty());
            if has_names {
                self.checking = Some((self.choices.query.clone(), look));
            }
        }
        if let Mode::Filter(line) = &mut self.mode {
            line.set_source(situation.tells);
        }
        self.situation = Some(situation);
    }

    /// The properties that the source tells; nothing before it is loaded.
    pub(crate) fn tells(&self) -> Capabilities {
        self.situation
            .as_ref()
            .map_or_else(Capabilities::default, |situation| situation.tells)
    }

    /// The requests for the worker, if they have changed: those that have no answer yet.
    pub fn outstanding(&mut self) -> Option<Vec<Want>> {
        let situation = self.situation.as_ref()?;
        let wanted = (situation.epoch, self.choices.wants(situation, self.points));
        if self.wanted.as_ref() == Some(&wanted) {
            return None;
        }
        let (epoch, wants) = self.wanted.insert(wanted);
        for want in wants.iter() {
            let held = self.answers.get_mut(&want.slot);
            if let Some(held) = held.filter(|held| held.want == *want) {
                held.version = self.version;
            }
        }
        let is_fresh = |want: &&Want| {
            let held = self.answers.get(&want.slot);
            held.is_none_or(|held| held.epoch != *epoch || held.want != **want)
        };
        Some(wants.iter().filter(is_fresh).cloned().collect())
    }

    /// The kind of names that the filter line suggests, if they are needed.
    pub fn naming(&mut self) -> Option<GroupBy> {
        self.naming.take()
    }

    /// The query and the display of functions to check, if they are new.
    pub fn checking(&mut self) -> Option<(Query, Look)> {
        self.checking.take()
    }

    /// Returns true if the state of a growing trace is to be kept.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// Returns true while an answer that is shown is out of date.
    #[must_use]
    pub fn is_computing(&self) -> bool {
        let Some((epoch, wants)) = &self.wanted else {
            return self.problem.is_none();
        };
        wants.iter().any(|want| !self.has(*epoch, want))
    }

    fn has(&self, epoch: u64, want: &Want) -> bool {
        let held = self.answers.get(&want.slot);
        held.is_some_and(|held| held.epoch == epoch && held.want == *want)
    }

    /// Returns true if the answer in a slot is about other choices, such as another moment. One about an
    /// earlier state of a growing trace is only a little old.
    pub(crate) fn is_of_other_choices(&self, slot: Slot) -> bool {
        let held = self.answers.get(&slot);
        held.is_some_and(|held| held.version != self.version)
    }

    /// The answer in a slot.
    pub(crate) fn held(&self, slot: Slot) -> Option<&Held> {
        self.answers.get(&slot)
    }

    fn report(&self, slot: Slot) -> Option<&Report> {
        let held = self.held(slot)?;
        held.result.as_ref().ok().map(|answer| &answer.report)
    }

    /// The table of a column, and the seconds that it is about.
    pub(crate) fn hotspots(&self, column: Column) -> Option<(&Hotspots, f64)> {
        let slot = Slot::Column(column);
        match self.report(slot)? {
            Report::Hotspots(report) => Some((report, self.held(slot)?.want.seconds)),
            _ => None,
        }
    }

    /// The changes since the mark.
    pub(crate) fn growth(&self) -> Option<&NamedDiff> {
        self.choices.mark?;
        match self.report(Slot::Column(Column::Growth))? {
            Report::Diff(report) => Some(report),
            _ => None,
        }
    }

    pub(crate) fn tree(&self) -> Option<&Tree> {
        match self.report(Slot::Tree)? {
            Report::Tree(report) => Some(report),
            _ => None,
        }
    }

    pub(crate) fn collector(&self, slot: Slot) -> Option<&Gc> {
        match self.report(slot)? {
            Report::Gc(report) => Some(report),
            _ => None,
        }
    }

    pub(crate) fn series(&self, slot: Slot) -> Option<&Series> {
        match self.report(slot)? {
            Report::Series(report) => Some(report),
            _ => None,
        }
    }

    /// The slot of the view.
    pub(crate) fn main_slot(&self) -> Slot {
        match self.choices.view {
            View::Table => Slot::Column(self.choices.column),
            View::Tree => Slot::Tree,
            View::Timeline => Slot::Groups,
            View::Collector => Slot::Collector,
        }
    }

    /// The error of the view, in place of its rows.
    pub(crate) fn error(&self) -> Option<&EngineError> {
        self.held(self.main_slot())?.result.as_ref().err()
    }

    /// The command that prints the numbers of the view.
    #[must_use]
    pub fn command(&self) -> Option<String> {
        let answer = self.held(self.main_slot())?.result.as_ref().ok()?;
        answer.command.clone()
    }

    /// The request of the view, when it has been answered.
    #[must_use]
    pub fn request(&self) -> Option<&Request> {
        Some(&self.held(self.main_slot())?.want.request)
    }

    /// Shows another moment.
    pub(crate) fn go_to(&mut self, moment: Moment) {
        self.choices.moment = moment;
    }
}
