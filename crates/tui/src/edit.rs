//! A line that is being edited.

use std::ops::Range;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A line of text with a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    text: String,
    /// A byte offset between two characters.
    cursor: usize,
}

impl Line {
    /// A line with the cursor at its end.
    pub(crate) fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            cursor: text.len(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor.
    pub(crate) fn before(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Replaces a part of the text. The cursor is after the new one.
    pub(crate) fn replace(&mut self, range: Range<usize>, text: &str) {
        self.cursor = range.start + text.len();
        self.text.replace_range(range, text);
    }

    /// Replaces the text from an offset to the cursor.
    fn replace_from(&mut self, start: usize, text: &str) {
        self.replace(start..self.cursor, text);
    }

    /// Inserts text at the cursor, without line breaks and other control characters.
    pub(crate) fn insert(&mut self, text: &str) {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        self.replace_from(self.cursor, &text);
    }

    /// Handles a key; false if it means nothing here.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if control => self.cursor = 0,
            KeyCode::Char('e') if control => self.cursor = self.text.len(),
            KeyCode::Char('u') if control => self.replace_from(0, ""),
            KeyCode::Char('k') if control => self.text.truncate(self.cursor),
            KeyCode::Char('w') if control => {
                let word = self.before().trim_end().rfind([' ', '(', '"']);
                self.replace_from(word.map_or(0, |space| space + 1), "");
            }
            KeyCode::Char(c) if !control => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => {
                let start = self.cursor - self.width_before();
                self.replace_from(start, "");
            }
            KeyCode::Delete => {
                if let Some(next) = self.text[self.cursor..].chars().next() {
                    let end = self.cursor + next.len_utf8();
                    self.text.replace_range(self.cursor..end, "");
                }
            }
            KeyCode::Left => self.cursor -= self.width_before(),
            KeyCode::Right => {
                let next = self.text[self.cursor..].chars().next();
                self.cursor += next.map_or(0, char::len_utf8);
            }
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => return false,
        }
        true
    }

    /// The bytes of the character before the cursor.
    fn width_before(&self) -> usize {
        let last = self.before().chars().next_back();
        last.map_or(0, char::len_utf8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, keys: &[KeyCode]) -> String {
        let mut line = Line::new(text);
        for &code in keys {
            line.key(KeyEvent::from(code));
        }
        let after = &line.text()[line.before().len()..];
        format!("{}|{after}", line.before())
    }

    #[test]
    fn characters_are_inserted_and_removed_at_the_cursor() {
        use KeyCode::{Backspace, Char, Delete, End, Home, Left, Right};
        assert_eq!(edited("sze", &[Left, Left, Char('i')]), "si|ze");
        assert_eq!(edited("né", &[Backspace]), "n|");
        assert_eq!(edited("né", &[Left, Delete, Delete]), "n|");
        assert_eq!(edited("né", &[Home, Left, Backspace]), "|né");
        assert_eq!(edited("né", &[Home, Right, Right, Right]), "né|");
        assert_eq!(edited("né", &[Home, End]), "né|");
    }

    #[test]
    fn words_and_the_whole_line_are_removed() {
        let mut line = Line::new("size > 1k and live at end");
        let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        line.key(control('w'));
        assert_eq!(line.text(), "size > 1k and live at ");
        line.key(control('u'));
        assert_eq!(line, Line::default());
    }

    #[test]
    fn pasted_line_breaks_are_dropped() {
        let mut line = Line::new("a");
        line.insert("b\n\u{1b}c");
        assert_eq!(line.text(), "abc");
    }
}
