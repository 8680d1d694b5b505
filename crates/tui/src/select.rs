//! The selected row.

use crate::app::{App, Selection};
use crate::choices::View;
use crate::{table, tree};

impl App {
    /// The identities of the rows of the view.
    fn keys(&self) -> Vec<u64> {
        match self.choices.view {
            View::Table => table::keys(self),
            View::Tree => tree::keys(self),
            View::Timeline | View::Collector => Vec::new(),
        }
    }

    pub(crate) fn selection(&self) -> &Selection {
        match self.choices.view {
            View::Tree => &self.nodes,
            View::Table | View::Timeline | View::Collector => &self.rows,
        }
    }

    fn selection_mut(&mut self) -> &mut Selection {
        match self.choices.view {
            View::Tree => &mut self.nodes,
            View::Table | View::Timeline | View::Collector => &mut self.rows,
        }
    }

    /// The place of the selected row.
    pub(crate) fn selected(&self) -> usize {
        self.selection().place(&self.keys())
    }

    /// Selects the row at a place, or the last.
    pub(crate) fn select(&mut self, index: usize) {
        let keys = self.keys();
        let index = index.min(keys.len().saturating_sub(1));
        let selection = self.selection_mut();
        selection.index = index;
        // At the top, it stays there: the largest is of interest.
        selection.key = (index > 0).then(|| keys.get(index).copied()).flatten();
    }

    /// Scrolls so that the selected row is among `page` rows; returns the first row and the selected
    /// one.
    pub(crate) fn window(&mut self, keys: &[u64], page: usize) -> (usize, usize) {
        let selected = self.selection().place(keys);
        let selection = self.selection_mut();
        let last_top = keys.len().saturating_sub(page);
        let lowest = (selected + 1).saturating_sub(page);
        selection.top = selection
            .top
            .clamp(lowest, selected.max(lowest))
            .min(last_top);
        (selection.top, selected)
    }
}

impl Selection {
    fn place(&self, keys: &[u64]) -> usize {
        let found = self
            .key
            .and_then(|key| keys.iter().position(|one| *one == key));
        found.unwrap_or(self.index.min(keys.len().saturating_sub(1)))
    }
}
