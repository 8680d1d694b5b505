//! Aligned columns that fit the screen.

use crate::sanitize::sanitize;
use crate::screen::Screen;
use crate::styled::{Line, Style};
use crate::width::{columns, fit, padding};

/// The side of its column that a cell is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Left.
    Left,
    /// Right, as numbers are.
    Right,
}

/// Rows of cells. One column is flexible: it shrinks if the screen is too narrow and not unlimited.
#[derive(Clone, Debug)]
pub struct Table {
    screen: Screen,
    columns: Vec<(String, Align)>,
    flexible: usize,
    droppable: Vec<usize>,
    indent: usize,
    rows: Vec<Vec<(String, Style)>>,
}

impl Table {
    /// The flexible column keeps this width as long as other columns can be dropped.
    const PREFERRED: usize = 28;
    /// The flexible column never gets narrower than this.
    const NARROWEST: usize = 12;
    const GAP: usize = 2;

    /// A table with these titles; `flexible` is the index of the flexible column. Without any title
    /// there is no title line.
    #[must_use]
    pub fn new(screen: Screen, columns: &[(&str, Align)], flexible: usize) -> Self {
        Self {
            screen,
            columns: columns
                .iter()
                .map(|&(title, align)| (screen.displayable(title).into_owned(), align))
                .collect(),
            flexible,
            droppable: Vec::new(),
            indent: 2,
            rows: Vec::new(),
        }
    }

    /// Allows dropping columns, in this order, if the screen is too narrow.
    #[must_use]
    pub fn droppable(mut self, columns: &[usize]) -> Self {
        self.droppable = columns.to_vec();
        self
    }

    /// Sets the indentation, 2 by default.
    #[must_use]
    pub fn indent(mut self, indent: usize) -> Self {
        self.indent = indent;
        self
    }

    /// Adds a row with a cell for each column.
    pub fn row(&mut self, cells: Vec<(String, Style)>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        let cells = cells
            .into_iter()
            .map(|(text, style)| {
                let text = sanitize(&text);
                (self.screen.displayable(&text).into_owned(), style)
            })
            .collect();
        self.rows.push(cells);
    }

    /// The lines.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        let widths = self.widths();
        let titles: Vec<(String, Style)> = self
            .columns
            .iter()
            .map(|(title, _)| (title.clone(), Style::Faint))
            .collect();
        let has_titles = titles.iter().any(|(title, _)| !title.is_empty());
        has_titles
            .then_some(&titles)
            .into_iter()
            .chain(&self.rows)
            .map(|cells| self.line(cells, &widths))
            .collect()
    }

    /// The width of each column; 0 if it is not shown.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| columns(&row[column].0));
                match cells.max().unwrap_or(0) {
                    // An empty column needs no title either.
                    0 => 0,
                    widest => widest.max(columns(&self.columns[column].0)),
                }
            })
            .collect();
        let used = |widths: &[usize]| {
            let shown = widths.iter().filter(|width| **width > 0).count();
            self.indent + widths.iter().sum::<usize>() + shown.saturating_sub(1) * Self::GAP
        };
        let screen = self.screen.width();
        let flexible = widths[self.flexible];
        for &column in &self.droppable {
            if used(&widths) > screen + flexible.saturating_sub(Self::PREFERRED) {
                widths[column] = 0;
            }
        }
        if self.screen.is_unlimited() {
            return widths;
        }
        let excess = used(&widths).saturating_sub(screen);
        let flexible = &mut widths[self.flexible];
        *flexible = flexible
            .saturating_sub(excess)
            .max((*flexible).min(Self::NARROWEST));
        widths
    }

    fn line(&self, cells: &[(String, Style)], widths: &[usize]) -> Line {
        let mut line = Line::default();
        let mut gap = self.indent;
        for (((text, style), (_, align)), &width) in cells.iter().zip(&self.columns).zip(widths) {
            if width == 0 {
                continue;
            }
            line.push(&" ".repeat(gap), Style::Plain);
            gap = Self::GAP;
            let text = fit(text, width);
            let text = self.screen.displayable(&text);
            let space = padding(&text, width);
            if *align == Align::Right {
                line.push(&space, Style::Plain);
            }
            line.push(&text, *style);
            if *align == Align::Left {
                line.push(&space, Style::Plain);
            }
        }
        line.trim_end();
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [(&str, Align); 3] = [
        ("bytes", Align::Right),
        ("note", Align::Left),
        ("function", Align::Left),
    ];

    fn lines(width: usize, ascii: bool, rows: &[[&str; 3]]) -> Vec<String> {
        let screen = Screen::new(width, ascii);
        let mut table = Table::new(screen, &COLUMNS, 2).droppable(&[1]);
        for row in rows {
            table.row(
                row.iter()
                    .map(|cell| ((*cell).to_owned(), Style::Plain))
                    .collect(),
            );
        }
        table.lines().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn cells_are_aligned() {
        assert_eq!(
            lines(80, false, &[["1 B", "a", "f"], ["20 KiB", "bc", "g"]]),
            [
                "   bytes  note  function",
                "     1 B  a     f",
                "  20 KiB  bc    g",
            ]
        );
    }

    #[test]
    fn empty_columns_are_not_shown() {
        assert_eq!(
            lines(80, false, &[["1 B", "", "f"]]),
            ["  bytes  function", "    1 B  f"]
        );
    }

    #[test]
    fn wide_names_keep_columns_aligned() {
        let rows = [
            ["1", "漢字", "f"],
            ["2", "e\u{301}", "g"],
            ["3", "👩\u{200d}💻", "h"],
        ];
        assert_eq!(
            lines(80, false, &rows),
            [
                "  bytes  note  function",
                "      1  漢字  f",
                "      2  e\u{301}     g",
                "      3  👩\u{200d}💻    h",
            ]
        );
    }

    #[test]
    fn the_flexible_column_shrinks_to_the_screen() {
        let name = "漢字".repeat(30);
        let row = ["1", "", name.as_str()];
        for line in lines(50, false, &[row]) {
            assert!(columns(&line) <= 50, "{line}");
        }
        assert!(lines(50, false, &[row])[1].contains('…'));
        assert!(lines(50, true, &[row])[1].is_ascii());
    }

    #[test]
    fn names_are_whole_where_the_width_is_not_that_of_a_terminal() {
        let name = "Module.".repeat(30);
        let mut table = Table::new(Screen::new(50, false).unlimited(), &COLUMNS, 2);
        let cells = ["1", "", name.as_str()];
        let cells = cells.map(|cell| (cell.to_owned(), Style::Plain));
        table.row(cells.to_vec());
        assert_eq!(table.lines()[1].to_string(), format!("      1  {name}"));
    }

    #[test]
    fn columns_are_dropped_before_names_get_short() {
        let note = "n".repeat(20);
        let name = "f".repeat(40);
        let lines = lines(40, false, &[["1", &note, &name]]);
        assert!(!lines[0].contains("note"));
    }

    #[test]
    fn cells_cannot_control_the_terminal() {
        let lines = lines(80, false, &[["1", "", "f\u{1b}[2J\n\u{202e}g"]]);
        assert_eq!(lines[1], "      1  f\u{fffd}[2J\u{fffd}\u{fffd}g");
    }
}
