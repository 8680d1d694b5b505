//! The table of groups: live memory, growth, rate, allocation.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use heapline_profile::reports::{DiffRow, Figures, Hotspot, Hotspots, SortBy};
use heapline_profile::{Estimate, Label, Query};
use heapline_text::units::{
    count, count_short, estimated_bytes, estimated_change, estimated_count_short, label,
    percent_number, signed_count_short,
};
use heapline_text::{Align, Line, Screen, Style, Table, sparkline};

use crate::app::App;
use crate::choices::{Column, Slot, Unit};

/// The screen from which on every figure has its error; on narrower ones only the sorted column has.
const WIDE: usize = 130;

/// The identity of the row that stands for those not shown.
const OTHER: u64 = u64::MAX;

/// The names of the rows, in order: those of the column that they are sorted by, then those that are live and have nothing there.
pub(crate) fn labels(app: &App) -> Vec<&Label> {
    let mut labels = sorted_labels(app);
    let live = Slot::Column(Column::Live);
    if hidden_rows(app) == 0
        && !app.is_of_other_choices(live)
        && let Some((report, _)) = app.hotspots(Column::Live)
    {
        let sorted: HashSet<&Label> = labels.iter().copied().collect();
        let rest = report.rows.iter().map(|row| &row.label);
        labels.extend(rest.filter(|label| !sorted.contains(label)));
    }
    labels
}

/// The names of the rows that have a figure in the column that they are sorted by, in order.
fn sorted_labels(app: &App) -> Vec<&Label> {
    match app.choices.column {
        Column::Growth => app.growth().map_or_else(Vec::new, |report| {
            report.diff.rows.iter().map(|row| &row.label).collect()
        }),
        column => app.hotspots(column).map_or_else(Vec::new, |(report, _)| {
            let mut rows: Vec<&Hotspot> = report.rows.iter().collect();
            if app.choices.unit == Unit::Blocks && report.sort != SortBy::Blocks {
                // The source tells how many blocks are live, but cannot be asked to sort by that.
                let blocks = |row: &Hotspot| row.own.allocated.blocks.value;
                rows.sort_by(|a, b| blocks(b).total_cmp(&blocks(a)));
            }
            rows.into_iter().map(|row| &row.label).collect()
        }),
    }
}

fn hidden_rows(app: &App) -> usize {
    match app.choices.column {
        Column::Growth => app.growth().map_or(0, |report| report.diff.hidden_rows),
        column => app
            .hotspots(column)
            .map_or(0, |(report, _)| report.hidden_rows),
    }
}

/// The identities of the rows.
pub(crate) fn keys(app: &App) -> Vec<u64> {
    let labels = labels(app).into_iter().map(|label| {
        let mut hasher = DefaultHasher::new();
        label.hash(&mut hasher);
        hasher.finish()
    });
    labels
        .chain((hidden_rows(app) > 0).then_some(OTHER))
        .collect()
}

/// The query for the blocks of the selected row; `None` if no row is selected, or if a query cannot tell.
pub(crate) fn selected_blocks(app: &App) -> Option<Query> {
    let labels = labels(app);
    let mut label = (*labels.get(app.selected())?).clone();
    // The raw name is harder to read, and only needed to tell functions apart.
    let namesakes = labels.iter().filter(|other| other.name == label.name);
    let mut raw_names = namesakes.map(|other| &other.raw_name);
    if raw_names.all(|name| *name == label.raw_name) {
        label.raw_name = None;
    }
    let choices = &app.choices;
    let query = choices
        .by
        .condition(&label, &choices.look().of_list(choices.by))?;
    Query::parse(&query).ok()
}

/// The reports by name.
struct Cells<'a> {
    app: &'a App,
    is_wide: bool,
    live: HashMap<&'a Label, &'a Hotspot>,
    growth: HashMap<&'a Label, &'a DiffRow>,
    rate: HashMap<&'a Label, &'a Hotspot>,
    allocated: HashMap<&'a Label, &'a Hotspot>,
}

/// The title line and the rows.
pub(crate) fn lines(app: &App, screen: Screen) -> Vec<Line> {
    let cells = Cells::new(app, screen);
    let sorted = app.choices.column;
    let title = |column: Column| {
        if column == sorted {
            format!("{} ▼", column.title())
        } else {
            column.title().to_owned()
        }
    };
    let titles = Column::ALL.map(title);
    let mut table = Table::new(
        screen,
        &[
            (&titles[0], Align::Right),
            ("%", Align::Right),
            (&titles[1], Align::Right),
            (&titles[2], Align::Right),
            (&titles[3], Align::Right),
            ("with callees", Align::Right),
            ("over time", Align::Left),
            (app.choices.by.name(), Align::Left),
        ],
        7,
    )
    .indent(1);
    // The column that rows are sorted by stays.
    let place = match sorted {
        Column::Live => 0,
        Column::Growth => 2,
        Column::Rate => 3,
        Column::Allocated => 4,
    };
    let droppable = [5, 6, 4, 3, 2, 0].into_iter().filter(|i| *i != place);
    table = table.droppable(&droppable.collect::<Vec<_>>());
    for label in labels(app) {
        table.row(cells.row(label));
    }
    if hidden_rows(app) > 0 {
        table.row(cells.other(place));
    }
    table.lines()
}

impl<'a> Cells<'a> {
    fn new(app: &'a App, screen: Screen) -> Self {
        let by_label = |column| {
            let rows = app.hotspots(column).map(|(report, _)| &report.rows[..]);
            let rows = rows.unwrap_or_default().iter();
            rows.map(|row| (&row.label, row)).collect()
        };
        let growth = app.growth().map(|report| &report.diff.rows[..]);
        Self {
            app,
            is_wide: screen.width() >= WIDE,
            live: by_label(Column::Live),
            growth: growth
                .unwrap_or_default()
                .iter()
                .map(|row| (&row.label, row))
                .collect(),
            rate: by_label(Column::Rate),
            allocated: by_label(Column::Allocated),
        }
    }

    fn row(&self, name: &Label) -> Vec<(String, Style)> {
        let live = self.live.get(name);
        let growth = self.growth.get(name);
        let rate = self.rate.get(name);
        let allocated = self.allocated.get(name);
        let sorted = match self.app.choices.column {
            Column::Live => live,
            Column::Growth => None,
            Column::Rate => rate,
            Column::Allocated => allocated,
        };
        let is_noise = match (sorted, growth) {
            (Some(row), _) => row.is_noise,
            (None, Some(row)) => !row.change.is_real,
            (None, None) => false,
        };
        let style = if is_noise { Style::Faint } else { Style::Plain };
        let figures = |row: Option<&&Hotspot>| row.map(|row| row.own.allocated);
        let callees = live.and_then(|row| row.inclusive);
        vec![
            (self.figure(Column::Live, figures(live)), style),
            (self.share(sorted, growth.copied()), style),
            self.change(growth.copied()),
            (self.figure(Column::Rate, figures(rate)), style),
            (self.figure(Column::Allocated, figures(allocated)), style),
            (
                callees.map_or_else(String::new, |figures| self.plain(figures)),
                style,
            ),
            (
                allocated.map_or_else(String::new, |row| sparkline(&row.growth)),
                style,
            ),
            (label(name), style),
        ]
    }

    /// The row that stands for those not shown.
    fn other(&self, place: usize) -> Vec<(String, Style)> {
        let mut cells = vec![(String::new(), Style::Faint); 8];
        if let Some((report, _)) = self.app.hotspots(self.app.choices.column) {
            let hidden = report.hidden.allocated;
            cells[place].0 = self.figure(self.app.choices.column, Some(hidden));
            cells[1].0 = self.percent(hidden, report);
        }
        cells[7].0 = format!("other ({})", count(hidden_rows(self.app) as u64));
        cells
    }

    /// An amount of a column: what is not among its rows is nothing, or not known yet.
    fn figure(&self, column: Column, figures: Option<Figures>) -> String {
        let Some((report, seconds)) = self.app.hotspots(column) else {
            return String::new();
        };
        let Some(figures) = figures else {
            // A row that is hidden may have something.
            return if report.hidden_rows == 0 { "-" } else { "" }.to_owned();
        };
        let has_error = self.is_wide || column == self.app.choices.column;
        let text = amount(figures, self.app.choices.unit, seconds, has_error);
        if column == Column::Rate {
            format!("{text}/s")
        } else {
            text
        }
    }

    fn plain(&self, figures: Figures) -> String {
        amount(figures, self.app.choices.unit, 0.0, false)
    }

    fn share(&self, sorted: Option<&&Hotspot>, growth: Option<&DiffRow>) -> String {
        match (self.app.choices.column, sorted, growth) {
            (Column::Growth, _, Some(row)) => row
                .change
                .percent
                .map_or_else(|| "new".to_owned(), |percent| format!("{percent:+.1}")),
            (column, Some(row), _) => self
                .app
                .hotspots(column)
                .map_or_else(String::new, |(report, _)| {
                    self.percent(row.own.allocated, report)
                }),
            _ => String::new(),
        }
    }

    fn percent(&self, figures: Figures, report: &Hotspots) -> String {
        let of = |figures: Figures| match self.app.choices.unit {
            Unit::Bytes => figures.bytes.value,
            Unit::Blocks => figures.blocks.value,
        };
        percent_number(of(figures), of(report.total.allocated))
    }

    fn change(&self, row: Option<&DiffRow>) -> (String, Style) {
        let Some(report) = self.app.growth() else {
            return (String::new(), Style::Plain);
        };
        let Some(row) = row else {
            let is_all = report.diff.hidden_rows == 0;
            return (if is_all { "-  " } else { "" }.to_owned(), Style::Faint);
        };
        let change = &row.change;
        if change.bytes == Estimate::exact(0.0) {
            return ("-  ".to_owned(), Style::Faint);
        }
        let has_error = self.is_wide || self.app.choices.column == Column::Growth;
        let text = match self.app.choices.unit {
            Unit::Bytes if has_error => estimated_change(change.bytes),
            Unit::Bytes => estimated_change(Estimate::exact(change.bytes.value)),
            Unit::Blocks => signed_count_short(change.blocks.value),
        };
        let (mark, style) = match change.is_real {
            false => ("○", Style::Faint),
            true if change.bytes.value > 0.0 => ("●", Style::Bad),
            true => ("●", Style::Good),
        };
        (format!("{text} {mark}"), style)
    }
}

/// An amount in a unit; per second, if it is that of some seconds.
pub(crate) fn amount(figures: Figures, unit: Unit, seconds: f64, has_error: bool) -> String {
    let estimate = match unit {
        Unit::Bytes => figures.bytes,
        Unit::Blocks => figures.blocks,
    };
    let estimate = if seconds > 0.0 {
        per_second(estimate, seconds)
    } else {
        estimate
    };
    match (unit, has_error) {
        (Unit::Bytes, true) => estimated_bytes(estimate),
        (Unit::Bytes, false) => heapline_text::units::bytes(estimate.value),
        (Unit::Blocks, true) => estimated_count_short(estimate),
        (Unit::Blocks, false) => count_short(estimate.value),
    }
}

fn per_second(estimate: Estimate, seconds: f64) -> Estimate {
    Estimate {
        value: estimate.value / seconds,
        error: estimate.error / seconds,
        low: estimate.low / seconds,
        high: estimate.high / seconds,
    }
}
