//! Display columns of text.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The columns that text takes on a terminal.
#[must_use]
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Shortens text to at most `width` columns. It loses its middle, because the start and the end of a
/// qualified name tell most. User-perceived characters stay whole.
#[must_use]
pub fn fit(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    if width < 2 {
        return text[..prefix(text.graphemes(true), width)].to_owned();
    }
    let head = (width - 1) / 2;
    let tail = width - 1 - head;
    let start = prefix(text.graphemes(true), head);
    let end = text.len() - prefix(text.graphemes(true).rev(), tail);
    format!("{}…{}", &text[..start], &text[end..])
}

/// Shortens text to at most `width` columns by its end.
pub(crate) fn start(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let end = prefix(text.graphemes(true), width.saturating_sub(1));
    format!("{}…", &text[..end])
}

/// The bytes of the first graphemes that fit into `width` columns.
fn prefix<'a>(graphemes: impl Iterator<Item = &'a str>, width: usize) -> usize {
    let mut used = 0;
    graphemes
        .take_while(|grapheme| {
            used += columns(grapheme);
            used <= width
        })
        .map(str::len)
        .sum()
}

/// Spaces that fill text up to `width` columns.
pub(crate) fn padding(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(columns(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_texts_lose_their_middle() {
        assert_eq!(fit("Stdlib.List.map", 20), "Stdlib.List.map");
        assert_eq!(fit("Stdlib.List.map", 9), "Stdl….map");
        assert_eq!(fit("Stdlib", 1), "S");
        assert_eq!(fit("Stdlib", 0), "");
    }

    #[test]
    fn wide_characters_count_twice_and_are_not_cut() {
        assert_eq!(columns("漢字"), 4);
        assert_eq!(fit("漢字漢字漢字", 7), "漢…字");
        assert_eq!(fit("漢字", 1), "");
    }

    #[test]
    fn combining_marks_stay_with_their_letters() {
        let name = "e\u{301}".repeat(6);
        assert_eq!(columns(&name), 6);
        assert_eq!(fit(&name, 3), "e\u{301}…e\u{301}");
    }

    #[test]
    fn emoji_sequences_are_one_character() {
        let coder = "👩\u{200d}💻";
        assert_eq!(columns(coder), 2);
        assert_eq!(fit(&coder.repeat(4), 5), format!("{coder}…{coder}"));
    }

    proptest! {
        #[test]
        fn fitted_text_fits(text in "\\PC{0,40}", width in 0_usize..40) {
            prop_assert!(columns(&fit(&text, width)) <= width);
        }
    }
}
