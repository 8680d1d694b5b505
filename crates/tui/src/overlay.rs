//! Draws what lies over the rows: the filter line, menus, the help.

use heapline_text::{Line, Style, columns, fit};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line as Drawn;
use ratatui::widgets::{Block, Clear, Paragraph};

use crate::app::App;
use crate::filter::FilterLine;
use crate::help::HELP;
use crate::menu::Menu;

/// Drops whole characters from the beginning of a text, at least so many columns. Returns how many, and the rest.
fn drop_columns(text: &str, least: usize) -> (usize, &str) {
    let starts = text.char_indices().map(|(start, _)| start);
    let mut rests = starts.map(|start| (columns(&text[..start]), &text[start..]));
    let found = rests.find(|(dropped, _)| *dropped >= least);
    found.unwrap_or_else(|| (columns(text), ""))
}

/// The words of a text on lines of some columns. A longer word has a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

impl App {
    /// A message that ends on the last line of the rows, and covers some of them if it is long: a command is to be read as a whole.
    pub(crate) fn draw_message(&self, frame: &mut Frame<'_>, message: &str, status: Rect) {
        let room = usize::from(status.width).saturating_sub(1);
        let lines = wrapped(message, room).into_iter();
        let lines: Vec<Line> = lines
            .map(|line| Line::new(&format!(" {line}"), Style::Title))
            .collect();
        let bottom = status.y + 1;
        let height = u16::try_from(lines.len()).unwrap_or(bottom).min(bottom);
        let area = Rect::new(status.x, bottom - height, status.width, height);
        frame.render_widget(Clear, area);
        self.draw_lines(frame, area, &lines);
    }

    /// The filter line, the place of its error, and what could follow above it.
    pub(crate) fn draw_filter(&self, frame: &mut Frame<'_>, filter: &FilterLine, status: Rect) {
        let theme = self.settings.theme;
        let prompt = " filter: ";
        let room = usize::from(status.width).saturating_sub(columns(prompt) + 1);
        let cursor = columns(filter.line.before());
        // A line that is too long is scrolled to the cursor.
        let (hidden, text) = drop_columns(filter.line.text(), cursor.saturating_sub(room));
        let mut rows = vec![Line::new(prompt, Style::Label).with(text, Style::Plain)];
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

    pub(crate) fn draw_menu(&self, frame: &mut Frame<'_>, menu: &Menu, area: Rect) {
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
    pub(crate) fn draw_help(&self, frame: &mut Frame<'_>, top: usize, area: Rect) -> usize {
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

    pub(crate) fn draw_question(&self, frame: &mut Frame<'_>, area: Rect) {
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

#[cfg(test)]
mod tests {
    use super::drop_columns;

    #[test]
    fn wide_characters_are_dropped_by_their_columns() {
        assert_eq!(drop_columns("abc", 0), (0, "abc"));
        assert_eq!(drop_columns("abc", 2), (2, "c"));
        assert_eq!(drop_columns("\u{65e5}\u{672c}x", 2), (2, "\u{672c}x"));
        assert_eq!(drop_columns("\u{65e5}\u{672c}x", 3), (4, "x"));
        assert_eq!(drop_columns("ab", 9), (2, ""));
    }
}
