//! Makes text from a trace harmless for terminals.
//!
//! Names in a trace come from the recorded program. Printed as they are, they could move the cursor,
//! set the terminal's title, forge lines of output, or reorder text with bidirectional overrides.

use std::borrow::Cow;

/// Replaces control characters (C0, C1, DEL, line breaks, tabs), bidirectional controls and line
/// separators by U+FFFD, the replacement character.
///
/// ```
/// use heapline_text::sanitize;
///
/// assert_eq!(sanitize("f\u{1b}[2J\n\u{202e}g"), "f\u{fffd}[2J\u{fffd}\u{fffd}g");
/// assert_eq!(sanitize("Parser.token"), "Parser.token");
/// ```
#[must_use]
pub fn sanitize(text: &str) -> Cow<'_, str> {
    replace(text, is_unsafe)
}

/// Like [`sanitize`], but keeps line feeds: for messages that have several lines by intention.
#[must_use]
pub fn sanitize_lines(text: &str) -> Cow<'_, str> {
    replace(text, |c| c != '\n' && is_unsafe(c))
}

fn replace(text: &str, is_unsafe: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.contains(&is_unsafe) {
        Cow::Owned(text.replace(&is_unsafe, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            // Bidirectional marks, embeddings, overrides and isolates.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Line and paragraph separators.
            | '\u{2028}' | '\u{2029}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_replaced_one_by_one() {
        let hostile = "\0\u{7}\t\n\r\u{1b}\u{7f}\u{80}\u{85}\u{9b}\u{9f}";
        assert_eq!(sanitize(hostile), "\u{fffd}".repeat(11));
        let bidi = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}\u{2028}\u{2029}";
        assert_eq!(sanitize(bidi), "\u{fffd}".repeat(9));
    }

    #[test]
    fn other_text_is_kept() {
        // Joiners are part of emoji and of the spelling of some languages.
        for text in [
            "Stdlib.List.map",
            "漢字",
            "e\u{301}",
            "👩\u{200d}💻",
            "נתונים",
        ] {
            assert_eq!(sanitize(text), text);
        }
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(sanitize_lines("a\n\u{1b}b\r\n"), "a\n\u{fffd}b\u{fffd}\n");
    }
}
