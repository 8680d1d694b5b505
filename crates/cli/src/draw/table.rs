//! Aligned columns that fit the terminal.

use std::fmt::Write;

use anstyle::Style;

use super::{FAINT, columns, fit, shown, width};

/// Which side of its column a cell is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of cells. One column, the flexible one, gives way if the terminal is too narrow.
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    /// Which column gives way.
    flexible: usize,
    /// Which columns are left out, in this order, if that is not enough.
    droppable: Vec<usize>,
    rows: Vec<Vec<(String, Style)>>,
}

impl Table {
    /// The narrowest that the flexible column is made while others can be left out.
    const LEAST: usize = 28;
    /// The narrowest that it becomes.
    const NARROWEST: usize = 12;
    const GAP: usize = 2;

    pub(crate) fn new(columns: &[(&str, Align)], flexible: usize) -> Self {
        Self {
            columns: columns
                .iter()
                .map(|&(title, align)| (shown(title), align))
                .collect(),
            flexible,
            droppable: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Allows to leave out columns if the terminal is too narrow.
    pub(crate) fn droppable(mut self, columns: &[usize]) -> Self {
        self.droppable = columns.to_vec();
        self
    }

    pub(crate) fn row(&mut self, cells: Vec<(String, Style)>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        let cells = cells
            .into_iter()
            .map(|(text, style)| (shown(&text), style))
            .collect();
        self.rows.push(cells);
    }

    /// The lines, indented by two.
    pub(crate) fn finish(&self) -> String {
        let mut widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| columns(&row[column].0));
                let widest = cells.max().unwrap_or(0);
                // A column without anything in it needs no title either.
                if widest == 0 {
                    0
                } else {
                    widest.max(columns(&self.columns[column].0))
                }
            })
            .collect();
        let used = |widths: &[usize]| {
            let shown = widths.iter().filter(|width| **width > 0).count();
            2 + widths.iter().sum::<usize>() + shown.saturating_sub(1) * Self::GAP
        };
        let flexible = widths[self.flexible];
        for &column in &self.droppable {
            let room = width() + flexible.saturating_sub(Self::LEAST);
            if used(&widths) > room {
                widths[column] = 0;
            }
        }
        let too_much = used(&widths).saturating_sub(width());
        let flexible = &mut widths[self.flexible];
        *flexible = flexible
            .saturating_sub(too_much)
            .max((*flexible).min(Self::NARROWEST));

        let mut text = String::new();
        if self.columns.iter().any(|(title, _)| !title.is_empty()) {
            let titles = self.columns.iter().map(|(title, _)| (title.clone(), FAINT));
            self.line(&mut text, &titles.collect::<Vec<_>>(), &widths);
        }
        for row in &self.rows {
            self.line(&mut text, row, &widths);
        }
        text
    }

    fn line(&self, out: &mut String, cells: &[(String, Style)], widths: &[usize]) {
        let mut line = String::from(" ");
        let mut first = true;
        for (((text, style), (_, align)), &width) in cells.iter().zip(&self.columns).zip(widths) {
            if width == 0 {
                continue;
            }
            line.push_str(if first { " " } else { "  " });
            first = false;
            let text = fit(text, width);
            let space = " ".repeat(width.saturating_sub(columns(&text)));
            // Writing to a string does not fail.
            let _ = match align {
                Align::Left => write!(line, "{style}{text}{style:#}{space}"),
                Align::Right => write!(line, "{space}{style}{text}{style:#}"),
            };
        }
        out.push_str(line.trim_end_matches(' '));
        out.push('\n');
    }
}
