//! Draws the screen.

use heapline_text::units::{count, estimated_change, program_name, seconds, signed_count_short};
use heapline_text::{Line, Style, columns, fit, sanitize};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line as Drawn, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use crate::app::{App, Mode};
use crate::choices::{Column, Slot, Unit, View};
use crate::filter::FilterLine;
use crate::help::HELP;
use crate::menu::Menu;
use crate::moment::Moment;
use crate::table::amount;
use crate::{table, timeline, tree};

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
        self.fit_points(screen);
        let totals = if area.height < TINY { 1 } else { 2 };
        let chart = match self.choices.view {
            View::Timeline => 0,
            _ if area.height < SMALL => 0,
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

    fn shown(&self, text: &str) -> String {
        let screen = self.settings.theme.screen(0);
        screen.displayable(&sanitize(text)).into_owned()
    }

    fn draw_lines(&self, frame: &mut Frame<'_>, area: Rect, lines: &[Line]) {
        let theme = self.settings.theme;
        let lines: Vec<Drawn<'_>> = lines.iter().map(|line| theme.line(line)).collect();
        frame.render_widget(Paragraph::new(lines), area);
    }

    /// The program and the state of its recording.
    fn draw_bar(&self, frame: &mut Frame<'_>, area: Rect) {
        let width = usize::from(area.width);
        let situation = self.situation.as_ref();
        let program = situation.map_or("", |situation| program_name(&situation.program));
        let mut left = format!(" heapline top  {program}");
        let state = match situation {
            None => "loading".to_owned(),
            Some(situation) => {
                let state = match (self.is_frozen, self.is_recording) {
                    (true, _) => "FROZEN",
                    (false, true) => "recording",
                    (false, false) => "ended",
                };
                let busy = if self.is_computing() {
                    "computing  "
                } else {
                    ""
                };
                let run = seconds(situation.duration as f64 / 1e6);
                format!("{busy}{state}, {run}")
            }
        };
        let right = format!("{state} ");
        let room = width.saturating_sub(columns(&left) + columns(&right) + 2);
        if room > 8 {
            left = format!(
                "{left}  {}",
                fit(&self.settings.file, room.saturating_sub(2))
            );
        }
        let gap = width.saturating_sub(columns(&left) + columns(&right));
        let text = self.shown(&format!("{left}{}{right}", " ".repeat(gap)));
        let bar = Paragraph::new(text).style(self.settings.theme.bar());
        frame.render_widget(bar, area);
    }

    /// The totals of all blocks that the filter selects.
    fn draw_totals(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(situation) = &self.situation else {
            return;
        };
        let unit = self.choices.unit;
        let mut first = Line::default();
        let mut second = Line::default();
        let add = |line: &mut Line, slot: Column, name: &str, value: &str, note: &str| {
            let is_stale = self.is_stale(Slot::Column(slot));
            let style = if is_stale { Style::Faint } else { Style::Title };
            let gap = if line.spans().is_empty() { " " } else { "   " };
            line.push(gap, Style::Plain);
            line.push(&format!("{name} "), Style::Label);
            line.push(value, style);
            line.push(note, Style::Plain);
        };
        let total = |column: Column| {
            self.hotspots(column)
                .map(|(report, seconds)| amount(report.total.allocated, unit, seconds, true))
        };
        let time = |micros: u64| seconds(micros as f64 / 1e6);
        if let Some(live) = total(Column::Live) {
            add(
                &mut first,
                Column::Live,
                "live",
                &live,
                &format!(" at {}", self.moment_name()),
            );
        }
        if let (Some(report), Some(mark)) = (self.growth(), self.choices.mark) {
            let change = &report.diff.total;
            let growth = match unit {
                Unit::Bytes => estimated_change(change.bytes),
                Unit::Blocks => signed_count_short(change.blocks.value),
            };
            let note = format!(" since {}", time(mark));
            add(&mut first, Column::Growth, "growth", &growth, &note);
        }
        if let Some(rate) = total(Column::Rate) {
            let (from, to) = self.choices.rate_window(situation);
            let note = format!("/s over {}", time(to.saturating_sub(from)));
            add(&mut second, Column::Rate, "rate", &rate, &note);
        }
        if let Some(allocated) = total(Column::Allocated) {
            add(&mut second, Column::Allocated, "allocated", &allocated, "");
        }
        if !second.spans().is_empty() && situation.snapshots.is_empty() {
            let samples = format!("   {} samples", count(situation.samples as u64));
            second.push(&samples, Style::Faint);
        }
        self.draw_lines(frame, area, &[first, second]);
    }

    /// The moment that is shown: a time, and which one it is.
    fn moment_name(&self) -> String {
        let Some(situation) = &self.situation else {
            return String::new();
        };
        let micros = self.choices.moment.micros(situation);
        let time = seconds(micros as f64 / 1e6);
        let which = match self.choices.moment {
            Moment::Now if self.is_recording && !self.is_frozen => "now",
            Moment::Now => "the end",
            Moment::Peak => "the peak",
            Moment::At(_) => "",
        };
        let number = situation
            .snapshot(micros)
            .map(|number| format!("snapshot {}/{}", number + 1, situation.snapshots.len()));
        match (number, which) {
            (Some(number), _) => format!("{time} ({number})"),
            (None, "") => time,
            (None, which) => format!("{time} ({which})"),
        }
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
        let wrap = ratatui::widgets::Wrap { trim: false };
        frame.render_widget(Paragraph::new(text).wrap(wrap), area);
    }

    /// The rows of the view, or why there are none.
    fn draw_body(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let theme = self.settings.theme;
        let screen = theme.screen(area.width);
        let height = usize::from(area.height);
        if let Some(error) = self.error() {
            let text = Line::new(&format!(" {}", error.message), Style::Bad);
            let wrap = ratatui::widgets::Wrap { trim: false };
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
        let mut drawn = Vec::with_capacity(height);
        drawn.extend(lines.first().map(|titles| theme.line(titles)));
        let rows = lines.iter().enumerate().skip(1 + top).take(self.page);
        for (i, line) in rows {
            let mut line = theme.line(line);
            if i == selected + 1 {
                line = selected_line(&line, usize::from(area.width), theme.selected());
            }
            drawn.push(line);
        }
        frame.render_widget(Paragraph::new(drawn), area);
    }

    /// What is selected, or a message.
    fn draw_status(&self, frame: &mut Frame<'_>, area: Rect) {
        let mut line = Line::default();
        if let Some(message) = &self.message {
            line.push(&format!(" {message}"), Style::Title);
        } else if let Some(problem) = self.problem.as_ref().filter(|_| self.situation.is_some()) {
            line.push(&format!(" {problem}"), Style::Bad);
        } else if self.situation.is_some() {
            line.push(" by ", Style::Faint);
            line.push(self.choices.by.name(), Style::Plain);
            if self.choices.my_code {
                line.push(", my code", Style::Plain);
            }
            if self.choices.unit == Unit::Blocks {
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
        };
        let rest = [
            ("/", "Filter"),
            ("s", "Sort"),
            ("g", "Group"),
            ("m", "My code"),
            ("q", "Quit"),
        ];
        let mut spans = Vec::new();
        let mut used = 0;
        let keys = [("F1", "Help")]
            .into_iter()
            .chain(table)
            .chain(freeze)
            .chain(rest);
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

    /// The filter line, the place of its error, and what could follow above it.
    fn draw_filter(&self, frame: &mut Frame<'_>, filter: &FilterLine, status: Rect) {
        let theme = self.settings.theme;
        let prompt = " filter: ";
        let room = usize::from(status.width).saturating_sub(columns(prompt) + 1);
        let cursor = columns(filter.line.before());
        // A line that is too long is scrolled to the cursor.
        let hidden = cursor.saturating_sub(room);
        let text: String = filter.line.text().chars().skip(hidden).collect();
        let mut rows = vec![Line::new(prompt, Style::Label).with(&text, Style::Plain)];
        let error = filter.error().filter(|error| {
            // Until it is entered, what is missing at the end is not an error.
            filter.is_entered || error.end < filter.line.text().trim_end().len()
        });
        if let Some(error) = error {
            let before = error.query.get(..error.start).unwrap_or("");
            let marked = error.query.get(error.start..error.end).unwrap_or("");
            let indent = (columns(prompt) + columns(before)).saturating_sub(hidden);
            let marks = "^".repeat(columns(marked).max(1));
            rows.push(Line::new(
                &format!("{}{marks}", " ".repeat(indent)),
                Style::Bad,
            ));
            let message = format!(" {}: expected {}", error.message, error.expected);
            rows.push(Line::new(&message, Style::Bad));
        }
        let height = u16::try_from(rows.len()).unwrap_or(1);
        let bottom = status.y + 1;
        let top = bottom.saturating_sub(height);
        let area = Rect::new(status.x, top, status.width, bottom - top);
        frame.render_widget(Clear, area);
        self.draw_lines(frame, area, &rows);
        let column = u16::try_from(columns(prompt) + cursor - hidden).unwrap_or(u16::MAX);
        frame.set_cursor_position(Position::new(status.x.saturating_add(column), top));
        self.draw_suggestions(frame, filter, top, theme.selected());
    }

    fn draw_suggestions(
        &self,
        frame: &mut Frame<'_>,
        filter: &FilterLine,
        bottom: u16,
        selected: ratatui::style::Style,
    ) {
        const MOST: usize = 8;
        let all = filter.suggestions();
        let room = usize::from(bottom.saturating_sub(1)).min(MOST);
        if all.is_empty() || room == 0 {
            return;
        }
        let first = (filter.selected + 1).saturating_sub(room);
        let shown: Vec<String> = all
            .iter()
            .skip(first)
            .take(room)
            .map(|text| {
                self.shown(&fit(
                    text,
                    usize::from(frame.area().width).saturating_sub(14),
                ))
            })
            .collect();
        let width = shown.iter().map(|text| columns(text)).max().unwrap_or(0) + 2;
        let height = u16::try_from(shown.len()).unwrap_or(0);
        let width = u16::try_from(width).unwrap_or(u16::MAX);
        let area = Rect::new(9, bottom - height, width, height).intersection(frame.area());
        let lines: Vec<Drawn<'_>> = shown
            .iter()
            .enumerate()
            .map(|(i, text)| {
                let line = Drawn::raw(format!(" {text} "));
                if first + i == filter.selected {
                    line.style(selected)
                } else {
                    line.style(self.settings.theme.bar())
                }
            })
            .collect();
        frame.render_widget(Clear, area);
        let block = Paragraph::new(lines).style(self.settings.theme.bar());
        frame.render_widget(block, area);
    }

    fn draw_menu(&self, frame: &mut Frame<'_>, menu: &Menu, area: Rect) {
        let lines: Vec<Drawn<'_>> = menu
            .items
            .iter()
            .enumerate()
            .map(|(i, (name, _))| {
                let line = Drawn::raw(format!(" {name:<14}"));
                if i == menu.selected {
                    line.style(self.settings.theme.selected())
                } else {
                    line
                }
            })
            .collect();
        self.draw_box(frame, menu.title, &lines, menu.selected, 17, area);
    }

    /// Draws the help from a line on; returns the first line, so that there is no end of scrolling.
    fn draw_help(&self, frame: &mut Frame<'_>, top: usize, area: Rect) -> usize {
        let theme = self.settings.theme;
        let inside = usize::from(area.height.saturating_sub(2)).max(1);
        let top = top.min(HELP.len().saturating_sub(inside));
        let lines: Vec<Drawn<'_>> = HELP
            .iter()
            .skip(top)
            .map(|(keys, does)| {
                let line = if keys.is_empty() {
                    Line::new(does, Style::Title)
                } else {
                    let gap = " ".repeat(23_usize.saturating_sub(columns(keys)));
                    Line::new(&format!("  {keys}{gap}"), Style::Label).with(does, Style::Plain)
                };
                theme.line(&line)
            })
            .collect();
        let more = if top + inside < HELP.len() {
            "; Down for more"
        } else {
            ""
        };
        let title = format!("Help (Esc closes it{more})");
        frame.render_widget(Clear, area);
        let block = Block::bordered().title(title).border_set(self.border());
        frame.render_widget(Paragraph::new(lines).block(block), area);
        top
    }

    fn draw_question(&self, frame: &mut Frame<'_>, area: Rect) {
        let lines = [
            Drawn::raw(" The program still runs."),
            Drawn::raw(" k    end it and quit"),
            Drawn::raw(" l    leave it running, and quit"),
            Drawn::raw(" Esc  stay here"),
        ];
        self.draw_box(frame, "Quit", &lines, 0, 36, area);
    }

    /// A box in the middle, scrolled so that a line can be seen.
    fn draw_box(
        &self,
        frame: &mut Frame<'_>,
        title: &str,
        lines: &[Drawn<'_>],
        selected: usize,
        width: u16,
        area: Rect,
    ) {
        let height = u16::try_from(lines.len() + 2)
            .unwrap_or(u16::MAX)
            .min(area.height);
        let width = width.min(area.width);
        let x = area.x + (area.width - width) / 2;
        let y = area.y + (area.height - height) / 2;
        let place = Rect::new(x, y, width, height);
        let inside = usize::from(height.saturating_sub(2)).max(1);
        let top = (selected + 1).saturating_sub(inside);
        let block = Block::bordered()
            .title(title.to_owned())
            .border_set(self.border());
        frame.render_widget(Clear, place);
        let lines: Vec<Drawn<'_>> = lines.iter().skip(top).cloned().collect();
        frame.render_widget(Paragraph::new(lines).block(block), place);
    }

    fn border(&self) -> ratatui::symbols::border::Set<'static> {
        if self.settings.theme.is_ascii {
            ratatui::symbols::border::Set {
                top_left: "+",
                top_right: "+",
                bottom_left: "+",
                bottom_right: "+",
                vertical_left: "|",
                vertical_right: "|",
                horizontal_top: "-",
                horizontal_bottom: "-",
            }
        } else {
            ratatui::symbols::border::PLAIN
        }
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
