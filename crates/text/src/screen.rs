//! The screen that a report is shown on.

use std::borrow::Cow;

/// The size and abilities of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    width: usize,
    ascii: bool,
    is_unlimited: bool,
}

impl Screen {
    /// The width where the output is not a terminal.
    pub const DEFAULT_WIDTH: usize = 100;

    /// A screen of `width` columns, at least 40 and at most 400. `ascii` limits the output to ASCII.
    #[must_use]
    pub fn new(width: usize, ascii: bool) -> Self {
        Self {
            width: width.clamp(40, 400),
            ascii,
            is_unlimited: false,
        }
    }

    /// Does not cut names and lines of source to the width, for output that programs read: the width only decides which
    /// columns there are.
    #[must_use]
    pub fn unlimited(self) -> Self {
        Self {
            is_unlimited: true,
            ..self
        }
    }

    /// Returns true if names and lines of source are not cut to the width.
    #[must_use]
    pub fn is_unlimited(self) -> bool {
        self.is_unlimited
    }

    /// The columns that are left for a name or a line of source beside `used` others.
    #[must_use]
    pub fn room_beside(self, used: usize) -> usize {
        /// Longer than any name, and small enough to calculate with.
        const UNLIMITED: usize = 1 << 24;
        if self.is_unlimited {
            UNLIMITED
        } else {
            self.width.saturating_sub(used)
        }
    }

    /// The columns of a bar beside a name: more on wide screens.
    #[must_use]
    pub fn bar_width(self) -> usize {
        (self.width / 16).clamp(6, 16)
    }

    /// Its columns.
    #[must_use]
    pub fn width(self) -> usize {
        self.width
    }

    /// Returns true if it only shows ASCII.
    #[must_use]
    pub fn is_ascii(self) -> bool {
        self.ascii
    }

    /// Replaces characters that the screen cannot show; `?` for those without a lookalike.
    #[must_use]
    pub fn displayable(self, text: &str) -> Cow<'_, str> {
        if !self.ascii || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '±' => out.push_str("+-"),
                'µ' => out.push('u'),
                '…' => out.push('~'),
                '▁' => out.push('_'),
                '▂' => out.push('.'),
                '▃' | '─' | '▾' => out.push('-'),
                '▲' => out.push('^'),
                '▼' => out.push('v'),
                '◆' => out.push('@'),
                '←' => out.push('<'),
                '→' => out.push('>'),
                '▄' => out.push('='),
                '▅' | '└' | '├' | '▸' => out.push('+'),
                '▆' | '●' => out.push('*'),
                '▇' => out.push('%'),
                '█' | '▉' | '▊' | '▋' | '▌' => out.push('#'),
                '▍' | '▎' | '▏' => out.push(' '),
                '│' | '┤' => out.push('|'),
                '○' => out.push('o'),
                c if c.is_ascii() => out.push(c),
                _ => out.push('?'),
            }
        }
        Cow::Owned(out)
    }
}

impl Default for Screen {
    fn default() -> Self {
        Self::new(Self::DEFAULT_WIDTH, false)
    }
}

/// Writes the command line of a report on the same trace with the same filter: the report's name and
/// more arguments, one shell word each. The function quotes them.
pub type Suggest<'a> = &'a dyn Fn(&str, &[&str]) -> String;

/// The inputs of rendering besides the report.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The screen that it is shown on.
    pub screen: Screen,
    /// Writes the commands of the "Next" section; without it there is no such section.
    pub suggest: Option<Suggest<'a>>,
}

impl Context<'_> {
    /// A context without suggestions.
    #[must_use]
    pub fn new(screen: Screen) -> Self {
        Self {
            screen,
            suggest: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_screens_get_lookalikes() {
        let ascii = Screen::new(80, true);
        assert_eq!(ascii.displayable("1 ± 2 µs │█ ●"), "1 +- 2 us |# *");
        assert_eq!(ascii.displayable("漢é"), "??");
        assert_eq!(Screen::new(80, false).displayable("漢é ±"), "漢é ±");
    }

    #[test]
    fn widths_are_limited() {
        assert_eq!(Screen::new(0, false).width(), 40);
        assert_eq!(Screen::new(usize::MAX, false).width(), 400);
    }
}
