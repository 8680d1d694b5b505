//! Key bindings.

use heapline_profile::{GroupBy, Look, Share};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::app::{Action, App, Mode};
use crate::choices::{Column, Unit, View};
use crate::filter::{FilterLine, Outcome};
use crate::menu::{Chosen, Menu};
use crate::moment::Moment;
use crate::table;
use crate::tree;

/// Shares below which nodes of the tree are merged, one after another.
const MINIMA: [f64; 4] = [0.01, 0.001, 0.0, 0.05];

impl App {
    /// Changes the state by a key.
    pub fn update(&mut self, key: KeyEvent) -> Action {
        self.message = None;
        let before = self.choices.clone();
        let action = self.handle(key);
        self.version += u64::from(self.choices != before);
        action
    }

    fn handle(&mut self, key: KeyEvent) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return self.interrupt(),
                KeyCode::Char('z') => return Action::Suspend,
                _ => {}
            }
        }
        match std::mem::take(&mut self.mode) {
            Mode::Browse => return self.browse(key),
            Mode::Filter(line) => self.filter_key(line, key),
            Mode::Menu(menu) => self.menu_key(menu, key),
            Mode::Help(top) => self.help_key(top, key),
            Mode::Quit => match key.code {
                KeyCode::Char('k') => return Action::Kill,
                KeyCode::Char('l') => return Action::Quit,
                KeyCode::Esc | KeyCode::Backspace | KeyCode::Char('c' | 'q' | 'n') => {}
                _ => self.mode = Mode::Quit,
            },
        }
        Action::Redraw
    }

    /// Leaves, but asks before if a program runs that was started for this. The second time ends it.
    fn interrupt(&mut self) -> Action {
        if !(self.settings.is_own_program && self.is_recording) {
            return Action::Quit;
        }
        if matches!(self.mode, Mode::Quit) {
            return Action::Kill;
        }
        self.mode = Mode::Quit;
        Action::Redraw
    }

    /// Inserts pasted text into the filter.
    pub fn paste(&mut self, text: &str) {
        if let Mode::Filter(line) = &mut self.mode {
            line.paste(text);
            self.naming = line.needs_names();
        }
    }

    /// Selects the row at a place of the screen.
    pub fn click(&mut self, row: u16) {
        if !matches!(self.mode, Mode::Browse) || row < self.first_row {
            return;
        }
        let row = usize::from(row - self.first_row);
        if row < self.page {
            let selection = self.selection();
            let index = selection.top + row;
            self.select(index);
        }
    }

    /// Moves the selection by so many rows.
    pub fn scroll(&mut self, by: isize) {
        if self.choices.view == View::Collector {
            self.collector_top = self.collector_top.saturating_add_signed(by);
            return;
        }
        let index = self.selected().saturating_add_signed(by);
        self.select(index);
    }

    /// Selects a row; of a view without rows, the first line that is shown.
    fn go_to_row(&mut self, index: usize) {
        if self.choices.view == View::Collector {
            self.collector_top = index;
        } else {
            self.select(index);
        }
    }

    fn browse(&mut self, key: KeyEvent) -> Action {
        let page = isize::try_from(self.page).unwrap_or(1).max(1);
        let steps = if key.modifiers.contains(KeyModifiers::SHIFT) {
            10
        } else {
            1
        };
        match key.code {
            KeyCode::Char('q' | 'Q') | KeyCode::F(10) => {
                return self.interrupt();
            }
            KeyCode::Char('h' | '?') | KeyCode::F(1) => self.mode = Mode::Help(0),
            KeyCode::Up | KeyCode::Char('k') => self.scroll(-1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll(1),
            KeyCode::PageUp => self.scroll(-page),
            KeyCode::PageDown => self.scroll(page),
            KeyCode::Home => self.go_to_row(0),
            KeyCode::End => self.go_to_row(usize::MAX),
            KeyCode::Left => self.step(-steps),
            KeyCode::Right => self.step(steps),
            KeyCode::Char('[') => self.step(-10),
            KeyCode::Char(']') => self.step(10),
            KeyCode::Char('p') => self.go_to(Moment::Peak),
            KeyCode::Char('e' | 'n') => self.go_to(Moment::Now),
            KeyCode::Char('0') => self.go_to(Moment::At(0)),
            KeyCode::Tab | KeyCode::Char('>') => self.next_column(1),
            KeyCode::BackTab | KeyCode::Char('<') => self.next_column(-1),
            KeyCode::Char('b') => {
                self.choices.unit = match self.choices.unit {
                    Unit::Bytes => Unit::Blocks,
                    Unit::Blocks => Unit::Bytes,
                }
            }
            KeyCode::Char('s') | KeyCode::F(6) => {
                self.mode = Mode::Menu(Menu::columns(self.choices.column));
            }
            KeyCode::Char('g') | KeyCode::F(2) => {
                self.mode = Mode::Menu(Menu::groups(self.choices.by));
            }
            KeyCode::Char('t') | KeyCode::F(5) => self.toggle(View::Tree),
            KeyCode::Char('v') => self.toggle(View::Timeline),
            KeyCode::Char('G') => self.toggle(View::Collector),
            KeyCode::Char('1') => self.choices.view = View::Table,
            KeyCode::Char('2') => self.choices.view = View::Tree,
            KeyCode::Char('3') => self.choices.view = View::Timeline,
            KeyCode::Char('4') => self.choices.view = View::Collector,
            KeyCode::Char('i') => self.invert(),
            KeyCode::Char('m') => self.choices.own_code = Some(!self.choices.is_of_own_code()),
            KeyCode::Char('%') => self.next_minimum(),
            KeyCode::Char('d') => self.mark(),
            KeyCode::Char('D') => self.unmark(),
            KeyCode::Char(' ') => self.freeze(),
            KeyCode::Char('/' | '\\') | KeyCode::F(3 | 4) => {
                let line = FilterLine::new(self.choices.query.text(), self.tells());
                self.naming = line.needs_names();
                self.mode = Mode::Filter(line);
            }
            KeyCode::Char('c') => {
                self.message = self.command();
            }
            KeyCode::Enter => self.open(),
            KeyCode::Char('+' | '-' | '*') if self.choices.view == View::Tree => {
                tree::fold(self, key.code);
            }
            KeyCode::Esc | KeyCode::Backspace => self.back(),
            _ => {}
        }
        Action::Redraw
    }

    fn filter_key(&mut self, mut line: FilterLine, key: KeyEvent) {
        match line.key(key) {
            Outcome::Editing => {
                self.naming = line.needs_names();
                self.mode = Mode::Filter(line);
            }
            Outcome::Cancelled => {}
            Outcome::Entered(query) => {
                if !query.is_all() {
                    self.checking = Some((query.clone(), Look::default()));
                }
                self.choices.query = query;
            }
        }
    }

    fn menu_key(&mut self, mut menu: Menu, key: KeyEvent) {
        match menu.key(key) {
            None => self.mode = Mode::Menu(menu),
            Some(Chosen::Nothing) => {}
            Some(Chosen::Column(column)) => self.choose_column(column),
            Some(Chosen::Group(by)) => self.choices.by = by,
        }
    }

    fn help_key(&mut self, top: usize, key: KeyEvent) {
        self.mode = match key.code {
            KeyCode::Up | KeyCode::Char('k') => Mode::Help(top.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => Mode::Help(top + 1),
            KeyCode::PageUp => Mode::Help(top.saturating_sub(10)),
            KeyCode::PageDown | KeyCode::Char(' ') => Mode::Help(top + 10),
            _ => Mode::Browse,
        };
    }

    fn step(&mut self, by: i64) {
        if let Some(situation) = &self.situation {
            let moment = self.choices.moment.step(by, situation);
            self.go_to(moment);
        }
    }

    fn next_column(&mut self, by: isize) {
        let columns = Column::ALL;
        let here = columns.iter().position(|one| *one == self.choices.column);
        let len = isize::try_from(columns.len()).unwrap_or(1);
        let mut place = isize::try_from(here.unwrap_or(0)).unwrap_or(0);
        loop {
            place = (place + by).rem_euclid(len);
            let column = columns[usize::try_from(place).unwrap_or(0)];
            if column != Column::Growth || self.choices.mark.is_some() {
                self.choices.column = column;
                return;
            }
        }
    }

    fn choose_column(&mut self, column: Column) {
        if column == Column::Growth && self.choices.mark.is_none() {
            self.message =
                Some("growth needs a mark: press d at the moment to start from".to_owned());
        } else {
            self.choices.column = column;
        }
    }

    fn toggle(&mut self, view: View) {
        self.choices.view = if self.choices.view == view {
            View::Table
        } else {
            view
        };
    }

    fn invert(&mut self) {
        if self.choices.view == View::Tree {
            self.choices.is_top_down = !self.choices.is_top_down;
            self.flipped.clear();
        }
        self.choices.view = View::Tree;
    }

    fn next_minimum(&mut self) {
        let now = self.choices.min.map_or(MINIMA[0], |min| min.0);
        let place = MINIMA.iter().position(|one| (one - now).abs() < 1e-9);
        let next = MINIMA[place.map_or(0, |place| (place + 1) % MINIMA.len())];
        self.choices.min = Some(Share(next));
        self.message = Some(match next {
            0.0 => "the tree has all nodes".to_owned(),
            _ => format!("nodes below {} of the total are merged", Share(next)),
        });
    }

    fn mark(&mut self) {
        if let Some(situation) = &self.situation {
            self.choices.mark = Some(self.choices.moment.micros(situation));
            self.message = Some("marked: growth is measured from here".to_owned());
        }
    }

    fn unmark(&mut self) {
        self.choices.mark = None;
        if self.choices.column == Column::Growth {
            self.choices.column = Column::Live;
        }
    }

    fn freeze(&mut self) {
        if self.is_frozen || self.is_recording {
            self.is_frozen = !self.is_frozen;
        } else {
            self.message = Some("the recording has ended: nothing changes".to_owned());
        }
    }

    /// Shows the callers of the selected row, or folds the selected node.
    fn open(&mut self) {
        match self.choices.view {
            View::Tree => tree::fold(self, KeyCode::Enter),
            View::Timeline | View::Collector => self.choices.view = View::Table,
            View::Table => {
                let Some(query) = table::selected_blocks(self) else {
                    self.message = Some("select the row of a group to open it".to_owned());
                    return;
                };
                self.choices.opened.push(query);
                self.choices.view = View::Tree;
                self.choices.is_top_down = false;
                self.flipped.clear();
            }
        }
    }

    /// Goes back to where the last row was opened, or to the table.
    fn back(&mut self) {
        if self.choices.opened.pop().is_some() || self.choices.view != View::Table {
            self.choices.view = View::Table;
        } else if !self.choices.query.is_all() {
            self.message = Some("to remove the filter: / Ctrl-U Enter".to_owned());
        }
    }

    /// The groupings, in the order of the menu.
    pub(crate) const GROUPS: [GroupBy; 9] = [
        GroupBy::Function,
        GroupBy::Site,
        GroupBy::Address,
        GroupBy::File,
        GroupBy::Module,
        GroupBy::Crate,
        GroupBy::Domain,
        GroupBy::Size,
        GroupBy::Age,
    ];
}
