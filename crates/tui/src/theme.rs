//! The look of styled text on the terminal.

use heapline_text as text;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// The abilities of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// Use colours.
    pub has_colors: bool,
    /// Use only ASCII characters.
    pub is_ascii: bool,
}

impl Theme {
    /// The screen of a width, for the text crate.
    pub(crate) fn screen(self, width: u16) -> text::Screen {
        text::Screen::new(usize::from(width), self.is_ascii)
    }

    pub(crate) fn style(self, style: text::Style) -> Style {
        let plain = Style::new();
        let color = |color: Color| {
            if self.has_colors {
                plain.fg(color)
            } else {
                plain
            }
        };
        match style {
            text::Style::Plain => plain,
            text::Style::Title => plain.add_modifier(Modifier::BOLD),
            text::Style::Label => color(Color::Cyan),
            text::Style::Faint => plain.add_modifier(Modifier::DIM),
            text::Style::Good => color(Color::Green),
            text::Style::Warning => color(Color::Yellow).add_modifier(Modifier::BOLD),
            text::Style::Bad => color(Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    /// A bar at the top or the bottom.
    pub(crate) fn bar(self) -> Style {
        if self.has_colors {
            Style::new().fg(Color::White).bg(Color::Blue)
        } else {
            Style::new().add_modifier(Modifier::REVERSED)
        }
    }

    /// The selected row.
    pub(crate) fn selected(self) -> Style {
        if self.has_colors {
            Style::new().fg(Color::Black).bg(Color::Cyan)
        } else {
            Style::new().add_modifier(Modifier::REVERSED)
        }
    }

    pub(crate) fn line(self, line: &text::Line) -> Line<'static> {
        let screen = self.screen(0);
        let spans = line.spans().iter().map(|span| {
            let text = screen.displayable(span.text()).into_owned();
            Span::styled(text, self.style(span.style()))
        });
        Line::from(spans.collect::<Vec<_>>())
    }
}
