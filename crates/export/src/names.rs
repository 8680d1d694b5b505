//! Formats names and numbers for exports.

use std::borrow::Cow;

use heapline_model::Header;
use heapline_profile::{FrameInfo, Symbols};

/// The placeholder for an unknown name, and for a stack without frames.
pub(crate) const UNKNOWN: &str = "(unknown)";

/// A name as there is always one.
pub(crate) fn or_unknown(name: &str) -> &str {
    if name.trim().is_empty() {
        UNKNOWN
    } else {
        name
    }
}

/// The program that was traced, without its folders.
pub(crate) fn program(header: &Header) -> &str {
    let name = &header.program;
    or_unknown(name.rsplit_once('/').map_or(name, |(_, name)| name))
}

/// The place of an allocation: `list.ml:92`.
pub(crate) fn site(symbols: &Symbols, frame: FrameInfo) -> String {
    let file = or_unknown(&symbols.files()[frame.file]);
    match frame.line {
        0 => file.to_owned(),
        line => format!("{file}:{line}"),
    }
}

/// A name that can be a part of a folded stack, and of XML.
///
/// Semicolons separate frames, lines stacks, and the last space the number. Two numbers at the end
/// of a line are taken for a difference, and a line with `# ` at its start for a comment.
pub(crate) fn foldable(name: &str) -> Cow<'_, str> {
    let unfit = |c: char| {
        matches!(c, ';' | '\u{fffe}' | '\u{ffff}')
            || c.is_control()
            || (c.is_whitespace() && c != ' ')
    };
    let name = or_unknown(name).trim();
    let number_at = name.rfind(' ').filter(|&at| {
        let end = &name.as_bytes()[at + 1..];
        end.iter().all(|c| c.is_ascii_digit() || *c == b'.')
    });
    let comment = name.starts_with('#');
    if number_at.is_none() && !comment && !name.contains(unfit) {
        return Cow::Borrowed(name);
    }
    let replaced = name.char_indices().map(|(at, c)| {
        let replace = unfit(c) || Some(at) == number_at || (comment && at == 0);
        if replace { '_' } else { c }
    });
    Cow::Owned(replaced.collect())
}

/// The nearest whole number, or the largest one that there is.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts of floating-point numbers saturate"
)]
pub(crate) fn whole(amount: f64) -> u64 {
    amount.round() as u64
}

/// The nearest whole number, for formats whose numbers have a sign.
pub(crate) fn signed(amount: f64) -> i64 {
    saturated(whole(amount))
}

/// A number as one with a sign, or the largest one that there is.
pub(crate) fn saturated(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_break_folded_lines() {
        for (name, expected) in [
            ("Stdlib.List.map", "Stdlib.List.map"),
            ("f<[u8; 4]>", "f<[u8_ 4]>"),
            ("two\nlines\u{2028}", "two_lines"),
            ("f 12", "f_12"),
            ("f 1.5", "f_1.5"),
            ("f 12x", "f 12x"),
            ("# f", "_ f"),
            ("\u{1}", "_"),
            (" ", UNKNOWN),
            ("", UNKNOWN),
        ] {
            assert_eq!(foldable(name), expected, "{name:?}");
        }
    }

    #[test]
    fn huge_amounts_are_the_largest_number() {
        assert_eq!(whole(1e300), u64::MAX);
        assert_eq!(signed(1e300), i64::MAX);
        assert_eq!(signed(2.5), 3);
        assert_eq!(whole(f64::NAN), 0);
    }
}
