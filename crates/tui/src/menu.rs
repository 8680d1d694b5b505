//! Menus: a list to choose from.

use heapline_profile::GroupBy;
use ratatui::crossterm::event::{KeyCode, KeyEvent};

use crate::app::App;
use crate::choices::Column;

/// The choice in a menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    Nothing,
    Column(Column),
    Group(GroupBy),
}

/// A list to choose from.
#[derive(Clone, Debug)]
pub(crate) struct Menu {
    pub(crate) title: &'static str,
    pub(crate) items: Vec<(&'static str, Chosen)>,
    pub(crate) selected: usize,
}

impl Menu {
    pub(crate) fn columns(now: Column) -> Self {
        let items = Column::ALL.map(|column| (column.title(), Chosen::Column(column)));
        Self::new("Sort by", &items, Chosen::Column(now))
    }

    pub(crate) fn groups(now: GroupBy) -> Self {
        let items = App::GROUPS.map(|by| (by.name(), Chosen::Group(by)));
        Self::new("Group by", &items, Chosen::Group(now))
    }

    fn new(title: &'static str, items: &[(&'static str, Chosen)], now: Chosen) -> Self {
        Self {
            title,
            items: items.to_vec(),
            selected: items.iter().position(|item| item.1 == now).unwrap_or(0),
        }
    }

    /// Handles a key; the result if the menu is done.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Chosen> {
        let last = self.items.len() - 1;
        match key.code {
            KeyCode::Up | KeyCode::BackTab => {
                self.selected = self.selected.checked_sub(1).unwrap_or(last);
            }
            KeyCode::Down | KeyCode::Tab => {
                self.selected = if self.selected == last {
                    0
                } else {
                    self.selected + 1
                };
            }
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            KeyCode::Enter => return Some(self.items[self.selected].1),
            // The first letter chooses, if only one item begins with it.
            KeyCode::Char(c) => {
                let mut items = self.items.iter().filter(|item| item.0.starts_with(c));
                match (items.next(), items.next()) {
                    (Some(item), None) => return Some(item.1),
                    (Some(_), Some(_)) => self.next_with(c),
                    _ => return Some(Chosen::Nothing),
                }
            }
            _ => return Some(Chosen::Nothing),
        }
        None
    }

    /// Selects the next item that begins with a letter.
    fn next_with(&mut self, c: char) {
        let len = self.items.len();
        let places = (1..=len).map(|step| (self.selected + step) % len);
        let next = places.into_iter().find(|&i| self.items[i].0.starts_with(c));
        self.selected = next.unwrap_or(self.selected);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_chooses_or_selects() {
        let mut menu = Menu::groups(GroupBy::Function);
        let key = |c| KeyEvent::from(KeyCode::Char(c));
        assert_eq!(menu.key(key('m')), Some(Chosen::Group(GroupBy::Module)));
        // Site and size.
        assert_eq!(menu.key(key('s')), None);
        assert_eq!(menu.key(key('s')), None);
        let enter = menu.key(KeyEvent::from(KeyCode::Enter));
        assert_eq!(enter, Some(Chosen::Group(GroupBy::Size)));
    }

    #[test]
    fn the_list_goes_round() {
        let mut menu = Menu::columns(Column::Live);
        assert_eq!(menu.key(KeyEvent::from(KeyCode::Up)), None);
        let enter = menu.key(KeyEvent::from(KeyCode::Enter));
        assert_eq!(enter, Some(Chosen::Column(Column::Allocated)));
    }
}
