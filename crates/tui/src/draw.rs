//! Draws the screen.

use heapline_text::{Line, Style, chart_points, columns, sanitize};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line as Drawn, Span};
use ratatui::widgets::{Paragraph, Wrap};

use crate::app::{App, Mode};
use crate::choices::{Unit, View};
use crate::{collector, table, timeline, tree};

/// Screens below this have no timeline, below that a single line of totals.
const SMALL: u16 = 18;
const TINY: u16 = 12;

/// Lines of the curve above the table.
const CURVE: usize = 3;

impl App {
    /// Draws the screen.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let screen = self.settings.theme.screen(area.width);
        self.points = chart_points(screen);
        let totals = if area.height < TINY { 1 } else { 2 };
        let chart = match self.choices.view {
            View::Timeline => 0,
            _ if area.height < SMALL || self.situation.is_none() => 0,
            _ => u16::try_from(CURVE + 2).unwrap_or(0) + extra(area.height),
        };
        let [title, header, curve, body, status, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(totals),
            Constraint::Length(chart),
            Constraint::Min(1),
            Constraint::Length(1),
            Constraint::Length(u16::from(area.height >= 6)),
        ])
        .areas(area);
        self.draw_bar(frame, title);
        self.draw_totals(frame, header);
        if self.situation.is_none() {
            self.draw_waiting(frame, body);
        } else {
            let height = usize::from(curve.height).saturating_sub(2);
            if height > 0 {
                let lines = timeline::lines(self, screen, height);
                self.draw_lines(frame, curve, &lines);
            }
            self.draw_body(frame, body);
        }
        self.draw_status(frame, status);
        self.draw_keys(frame, keys);
        match &self.mode {
            Mode::Browse => {}
            Mode::Filter(line) => self.draw_filter(frame, line, status),
            Mode::Menu(menu) => self.draw_menu(frame, menu, area),
            Mode::Help(top) => {
                let top = self.draw_help(frame, *top, area);
                self.mode = Mode::Help(top);
            }
            Mode::Quit => self.draw_question(frame, area),
        }
    }

    pub(crate) fn shown(&self, text: &str) -> String {
        let screen = self.settings.theme.screen(0);
        screen.displayable(&sanitize(text)).into_owned()
    }

    pub(crate) fn draw_lines(&self, frame: &mut Frame<'_>, area: Rect, lines: &[Line]) {
        let theme = self.settings.theme;
        let lines: Vec<Drawn<'_>> = lines.iter().map(|line| theme.line(line)).collect();
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn draw_waiting(&self, frame: &mut Frame<'_>, area: Rect) {
        let text = match &self.problem {
            Some(problem) => problem.clone(),
            None => format!(
                "reading {} ({:.0} %)",
                self.settings.file,
                100.0 * self.progress
            ),
        };
        let text = format!("\n  {}", self.shown(&text));
        let wrap = Wrap { trim: false };
        frame.render_widget(Paragraph::new(text).wrap(wrap), area);
    }

    /// The rows of the view, or why there are none.
    fn draw_body(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let theme = self.settings.theme;
        let screen = theme.screen(area.width);
        let height = usize::from(area.height);
        if let Some(error) = self.error() {
            let text = Line::new(&format!(" {}", error.message), Style::Bad);
            let wrap = Wrap { trim: false };
            let text = Paragraph::new(theme.line(&text)).wrap(wrap);
            return frame.render_widget(text, area);
        }
        let (lines, keys) = match self.choices.view {
            View::Table => (table::lines(self, screen), table::keys(self)),
            View::Tree => (tree::lines(self, screen), tree::keys(self)),
            View::Timeline => {
                let lines = timeline::full(self, screen, height);
                return self.draw_lines(frame, area, &lines);
            }
            View::Collector => {
                let lines = collector::lines(self, screen);
                self.page = height.saturating_sub(1).max(1);
                self.collector_top = self.collector_top.min(lines.len().saturating_sub(height));
                return self.draw_lines(frame, area, &lines[self.collector_top..]);
            }
        };
        if keys.is_empty() {
            if self.held(self.main_slot()).is_some() {
                let none = Line::new(
                    " No sampled blocks here, or none that match the filter.",
                    Style::Faint,
                );
                self.draw_lines(frame, area, &[none]);
            }
            return;
        }
        self.page = height.saturating_sub(1).max(1);
        self.first_row = area.y + 1;
        let (top, selected) = self.window(&keys, self.page);
        let is_old = self.is_of_other_choices(self.main_slot());
        let mut drawn = Vec::with_capacity(height);
        drawn.extend(lines.first().map(|titles| theme.line(titles)));
        let rows = lines.iter().enumerate().skip(1 + top).take(self.page);
        for (i, line) in rows {
            let mut line = theme.line(line);
            if is_old {
                line = line.style(theme.style(Style::Faint));
            }
            if i == selected + 1 {
                line = selected_line(&line, usize::from(area.width), theme.selected());
            }
            drawn.push(line);
        }
        frame.render_widget(Paragraph::new(drawn), area);
    }

    /// Draws the selection, or a message.
    fn draw_status(&self, frame: &mut Frame<'_>, area: Rect) {
        let mut line = Line::default();
        if let Some(message) = &self.message {
            return self.draw_message(frame, message, area);
        }
        if let Some(problem) = self.problem.as_ref().filter(|_| self.situation.is_some()) {
            line.push(&format!(" {problem}"), Style::Bad);
        } else if self.situation.is_some() {
            if self.choices.view != View::Collector {
                line.push(" by ", Style::Faint);
                line.push(self.choices.by.name(), Style::Plain);
            }
            if self.choices.is_of_own_code() {
                let comma = if line.spans().is_empty() { " " } else { ", " };
                line.push(&format!("{comma}own code"), Style::Plain);
            }
            if self.choices.unit == Unit::Blocks && self.choices.view != View::Collector {
                line.push(", blocks", Style::Plain);
            }
            for opened in &self.choices.opened {
                line.push("  of ", Style::Faint);
                line.push(opened.text(), Style::Plain);
            }
            if !self.choices.query.is_all() {
                line.push("  where ", Style::Faint);
                line.push(self.choices.query.text(), Style::Warning);
            }
        }
        self.draw_lines(frame, area, &[line]);
    }

    fn draw_keys(&self, frame: &mut Frame<'_>, area: Rect) {
        let freeze = if self.is_recording || self.is_frozen {
            [("Space", "Freeze"), ("d", "Mark")]
        } else {
            [("←→", "Moment"), ("d", "Mark")]
        };
        let table = match self.choices.view {
            View::Table => [("t", "Tree"), ("Enter", "Callers")],
            View::Tree => [("t", "Table"), ("i", "Invert")],
            View::Timeline => [("v", "Table"), ("Tab", "Measure")],
            View::Collector => [("G", "Table"), ("↑↓", "Scroll")],
        };
        let rest = [
            ("/", "Filter"),
            ("s", "Sort"),
            ("g", "Group"),
            ("m", "My code"),
            ("G", "Collector"),
        ];
        let filter = [
            ("Tab", "Complete"),
            ("↑↓", "Choose"),
            ("Enter", "Apply"),
            ("Esc", "Cancel"),
            ("Ctrl-U", "Clear"),
        ];
        let browse = [("F1", "Help"), ("q", "Quit")];
        // The key of the view that is shown is among the first already.
        let rest = rest
            .into_iter()
            .filter(|(key, _)| table.iter().all(|(other, _)| other != key));
        let browse = browse.into_iter().chain(table).chain(freeze).chain(rest);
        let keys: Vec<_> = match self.mode {
            Mode::Filter(_) => filter.to_vec(),
            _ => browse.collect(),
        };
        let mut spans = Vec::new();
        let mut used = 0;
        for (key, does) in keys {
            let key = self.shown(key);
            let width = columns(&key) + columns(does) + 2;
            if used + width > usize::from(area.width) {
                break;
            }
            used += width;
            spans.push(Span::raw(key));
            spans.push(Span::styled(format!(" {does}"), self.settings.theme.bar()));
            spans.push(Span::raw(" "));
        }
        frame.render_widget(Paragraph::new(Drawn::from(spans)), area);
    }
}

/// More lines of the curve on high screens.
fn extra(height: u16) -> u16 {
    (height.saturating_sub(24) / 4).min(8)
}

/// The line in one style to the end of the row.
fn selected_line(line: &Drawn<'_>, width: usize, style: ratatui::style::Style) -> Drawn<'static> {
    let mut text: String = line.spans.iter().map(|span| &*span.content).collect();
    let gap = width.saturating_sub(columns(&text));
    text.push_str(&" ".repeat(gap));
    Drawn::styled(text, style.remove_modifier(Modifier::DIM))
}
