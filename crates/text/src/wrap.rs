//! Breaks long lines at spaces.

use crate::styled::{Line, Style};
use crate::width::columns;

/// Breaks a line into lines of at most `width` columns; all but the first are indented. Words that are
/// too long, such as paths, are not broken.
pub(crate) fn wrap(line: &Line, width: usize, indent: usize) -> Vec<Line> {
    if line.columns() <= width {
        return vec![line.clone()];
    }
    let mut lines = Vec::new();
    let mut current = Line::default();
    let mut used = 0;
    let mut spaces: Vec<(&str, Style)> = Vec::new();
    for word in join_amounts(words(line)) {
        if word.is_space {
            spaces = word.pieces;
            continue;
        }
        let gap = length(&spaces);
        let len = length(&word.pieces);
        let is_first = current.spans().is_empty() && lines.is_empty();
        if !is_first && used + gap + len > width {
            lines.push(std::mem::take(&mut current));
            current.push(&" ".repeat(indent), Style::Plain);
            used = indent;
        } else {
            for (text, style) in &spaces {
                current.push(text, *style);
            }
            used += gap;
        }
        spaces.clear();
        for (text, style) in &word.pieces {
            current.push(text, *style);
        }
        used += len;
    }
    lines.push(current);
    lines
}

/// A run of spaces, or of anything else, over all styles.
struct Word<'a> {
    pieces: Vec<(&'a str, Style)>,
    is_space: bool,
}

/// Joins numbers with their units and errors, such as `1.2 ± 0.3 MiB`.
fn join_amounts(words: Vec<Word<'_>>) -> Vec<Word<'_>> {
    let mut joined: Vec<Word<'_>> = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some(mut word) = words.next() {
        if word.is_space
            && let Some(last) = joined.last_mut()
            && let Some(next) = words.next_if(|next| is_amount(last, next))
        {
            last.pieces.append(&mut word.pieces);
            last.pieces.extend(next.pieces);
        } else {
            joined.push(word);
        }
    }
    joined
}

/// Returns true if a word continues the number at the end of the previous word.
fn is_amount(last: &Word<'_>, next: &Word<'_>) -> bool {
    const UNITS: [&str; 22] = [
        "±", "+-", "B", "KiB", "MiB", "GiB", "TiB", "B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s", "%",
        "k", "M", "G", "µs", "us", "ms", "s", "min", "h",
    ];
    let (Some((last, _)), Some((next, _))) = (last.pieces.last(), next.pieces.first()) else {
        return false;
    };
    let is_number = last.ends_with(|c: char| c.is_ascii_digit());
    let is_sign = ["±", "+-"].contains(last);
    is_sign || (is_number && UNITS.contains(&next.trim_end_matches(['.', ',', ';', ':', ')'])))
}

fn words(line: &Line) -> Vec<Word<'_>> {
    let mut words: Vec<Word<'_>> = Vec::new();
    for span in line.spans() {
        let mut rest = span.text();
        while let Some(first) = rest.chars().next() {
            let is_space = first == ' ';
            let end = rest.find(|c| (c == ' ') != is_space).unwrap_or(rest.len());
            let piece = (&rest[..end], span.style());
            match words.last_mut() {
                Some(last) if last.is_space == is_space => last.pieces.push(piece),
                _ => words.push(Word {
                    pieces: vec![piece],
                    is_space,
                }),
            }
            rest = &rest[end..];
        }
    }
    words
}

fn length(pieces: &[(&str, Style)]) -> usize {
    pieces.iter().map(|(text, _)| columns(text)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(line: &Line, width: usize, indent: usize) -> Vec<String> {
        wrap(line, width, indent)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn breaks_at_spaces_and_indents() {
        let line = Line::plain("  one two three four");
        assert_eq!(wrapped(&line, 40, 2), ["  one two three four"]);
        assert_eq!(wrapped(&line, 11, 2), ["  one two", "  three", "  four"]);
    }

    #[test]
    fn words_of_two_styles_stay_together() {
        let line = Line::plain("aa b")
            .with("b", Style::Bad)
            .with(" cc", Style::Plain);
        assert_eq!(wrapped(&line, 4, 0), ["aa", "bb", "cc"]);
    }

    #[test]
    fn long_words_are_kept_whole() {
        let line = Line::plain("a /very/long/path b");
        assert_eq!(wrapped(&line, 8, 1), ["a", " /very/long/path", " b"]);
    }

    #[test]
    fn numbers_keep_their_errors_and_units() {
        let line = Line::plain("it has 1.2 ± 0.3 MiB, more");
        assert_eq!(wrapped(&line, 12, 0), ["it has", "1.2 ± 0.3 MiB,", "more"]);
        assert_eq!(wrapped(&line, 20, 0), ["it has", "1.2 ± 0.3 MiB, more"]);
    }

    #[test]
    fn wide_characters_count_twice() {
        let line = Line::plain("漢字 漢字");
        assert_eq!(wrapped(&line, 8, 0), ["漢字", "漢字"]);
    }
}
