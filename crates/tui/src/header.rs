//! Draws the bar at the top and the totals.

use heapline_text::units::{estimated_change, plural, program_name, seconds, signed_count_short};
use heapline_text::{Line, Style, columns, fit};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::Paragraph;

use crate::app::App;
use crate::choices::{Column, Slot, Unit};
use crate::moment::Moment;
use crate::table::amount;

impl App {
    /// The program and the state of its recording.
    pub(crate) fn draw_bar(&self, frame: &mut Frame<'_>, area: Rect) {
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
                let damaged = if situation.flaws > 0 { ", damaged" } else { "" };
                format!("{busy}{state}, {run}{damaged}")
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
    pub(crate) fn draw_totals(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(situation) = &self.situation else {
            return;
        };
        let unit = self.choices.unit;
        let mut first = Line::default();
        let mut second = Line::default();
        let add = |line: &mut Line, slot: Column, name: &str, value: &str, note: &str| {
            let value = if self.is_of_other_choices(Slot::Column(slot)) {
                "…"
            } else {
                value
            };
            let gap = if line.spans().is_empty() { " " } else { "   " };
            line.push(gap, Style::Plain);
            line.push(&format!("{name} "), Style::Label);
            line.push(value, Style::Title);
            line.push(note, Style::Plain);
        };
        let total = |column: Column| {
            self.hotspots(column)
                .map(|(report, seconds)| amount(report.total.allocated, unit, seconds, true))
        };
        let time = |micros: u64| seconds(micros as f64 / 1e6);
        if let Some(live) = total(Column::Live) {
            let name = if situation.is_attached {
                "live since attach"
            } else {
                "live"
            };
            add(
                &mut first,
                Column::Live,
                name,
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
            let is_later = mark > self.choices.moment.micros(situation);
            let note = if is_later { "from" } else { "since" };
            let note = format!(" {note} {}", time(mark));
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
        if situation.snapshots.is_empty() {
            let samples = format!("   {}", plural(situation.blocks as u64, "sampled block"));
            if second.columns() + columns(&samples) <= usize::from(area.width) {
                second.push(&samples, Style::Faint);
            }
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
}
