//! Continuations of a query that is being typed. `docs/query.md` has the grammar.

use heapline_profile::GroupBy;

const FIELDS: &[&str] = &[
    "live at",
    "live in",
    "allocated in",
    "collected",
    "promoted",
    "inside",
    "inside module",
    "inside file",
    "inside crate",
    "size",
    "lifetime",
    "heap",
    "function",
    "site",
    "module",
    "crate",
    "file",
    "line",
    "domain",
    "samples",
    "not",
];
const TIMES: &[&str] = &["peak", "end", "start", "50%"];
const WINDOWS: &[&str] = &["..50%", "50%..", "90%..", "start..peak", "peak..end"];
const JOINTS: &[&str] = &["and", "or"];
const COMPARISONS: &[&str] = &[">=", "<=", ">", "<", "=", "in"];
const EQUALITIES: &[&str] = &["=", "!="];
const HEAPS: &[&str] = &["major", "minor", "external", "native"];

/// Words and names that fit at the cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suggestions {
    /// The offset of the word that is being typed.
    pub(crate) start: usize,
    /// Words of the language.
    pub(crate) words: Vec<&'static str>,
    /// The kind of names of the trace that also fit, and the part that was typed.
    pub(crate) names: Option<(GroupBy, String)>,
}

/// Suggests words and names that fit after a text.
pub(crate) fn suggest(before: &str) -> Suggestions {
    let mut tokens = tokens(before);
    let is_typing = tokens
        .last()
        .is_some_and(|&(start, token)| start + token.len() == before.len() && !is_complete(token));
    let typed = if is_typing { tokens.pop() } else { None };
    let (start, typed) = typed.unwrap_or((before.len(), ""));
    let words: Vec<String> = tokens
        .iter()
        .map(|(_, token)| token.to_lowercase())
        .collect();
    let words: Vec<&str> = words.iter().map(|word| &**word).collect();
    let (fitting, kind) = after(&words);
    let lower = typed.to_lowercase();
    Suggestions {
        start,
        words: fitting
            .iter()
            .copied()
            .filter(|word| word.starts_with(&lower) && *word != lower)
            .collect(),
        names: kind.map(|kind| (kind, typed.trim_start_matches(['"', '/']).to_owned())),
    }
}

/// Returns true for tokens that cannot be longer.
fn is_complete(token: &str) -> bool {
    let quoted = |quote| token.len() > 1 && token.starts_with(quote) && token.ends_with(quote);
    quoted('"') || quoted('/') || token.chars().all(is_symbol)
}

fn is_symbol(c: char) -> bool {
    matches!(c, '(' | ')' | '<' | '>' | '=' | '!')
}

/// Words, quoted names and symbols, each with its offset.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let start = text.len() - rest.len();
        let Some(first) = rest.chars().next() else {
            return tokens;
        };
        let end = match first {
            '"' | '/' => rest[1..].find(first).map(|end| end + 2),
            '(' | ')' => Some(1),
            _ if is_symbol(first) => rest.find(|c| !matches!(c, '<' | '>' | '=' | '!')),
            _ => rest.find(|c: char| c.is_whitespace() || c == '"' || is_symbol(c)),
        };
        let (token, after) = rest.split_at(end.unwrap_or(rest.len()));
        tokens.push((start, token));
        rest = after;
    }
}

fn kind_of(field: &str) -> Option<GroupBy> {
    Some(match field {
        "site" | "function" => GroupBy::Function,
        "file" => GroupBy::File,
        "module" => GroupBy::Module,
        "crate" => GroupBy::Crate,
        _ => return None,
    })
}

fn is_operator(word: &str) -> bool {
    matches!(word, "=" | "!=" | "<" | "<=" | ">" | ">=")
}

/// The words and the kind of names that fit after these words.
fn after(words: &[&str]) -> (&'static [&'static str], Option<GroupBy>) {
    let back = |n: usize| words.len().checked_sub(n).map_or("", |i| words[i]);
    let (last, second, third) = (back(1), back(2), back(3));
    let is_value =
        is_operator(second) || matches!(second, "in" | "at" | "inside") || third == "inside";
    match last {
        "" | "(" | "and" | "or" | "not" => (FIELDS, None),
        "live" | "alive" => (&["at", "in"], None),
        "at" => (TIMES, None),
        "in" => match second {
            "size" => (&["2w..16w", "1KiB..64KiB"], None),
            "lifetime" => (&["1ms..10ms", "1s.."], None),
            _ => (WINDOWS, None),
        },
        "inside" => (&["module", "file", "crate"], Some(GroupBy::Function)),
        field if second == "inside" && kind_of(field).is_some() && field != "site" => {
            (&[], kind_of(field))
        }
        operator if is_operator(operator) => match second {
            "size" => (&["64KiB", "1KiB", "16w"], None),
            "lifetime" => (&["1s", "10ms", "1MiB"], None),
            "heap" => (HEAPS, None),
            field if kind_of(field).is_some() => (&[], kind_of(field)),
            _ => (TIMES, None),
        },
        _ if is_value => (JOINTS, None),
        "size" | "lifetime" | "domain" | "samples" | "line" => (COMPARISONS, None),
        "heap" => (HEAPS, None),
        "allocated" => (&["in", ">=", "<=", ">", "<"], None),
        "collected" | "promoted" => (&["in", "and", "or"], None),
        field if kind_of(field).is_some() => (EQUALITIES, kind_of(field)),
        _ => (JOINTS, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&'static str> {
        suggest(text).words
    }

    #[test]
    fn words_of_the_language() {
        assert_eq!(words("li"), ["live at", "live in", "lifetime", "line"]);
        assert_eq!(words("live at p"), ["peak"]);
        assert_eq!(words("live at peak "), JOINTS);
        assert_eq!(words("size "), COMPARISONS);
        assert_eq!(words("heap = ma"), ["major"]);
        assert_eq!(words("(size > 1k and not "), FIELDS);
        assert_eq!(words("inside \"a b\" "), JOINTS);
    }

    #[test]
    fn names_of_the_trace() {
        let names = |text: &str| suggest(text).names;
        let of = |kind, part: &str| Some((kind, part.to_owned()));
        assert_eq!(names("inside Lis"), of(GroupBy::Function, "Lis"));
        assert_eq!(names("inside \"Lis"), of(GroupBy::Function, "Lis"));
        assert_eq!(names("inside module "), of(GroupBy::Module, ""));
        assert_eq!(names("file = m"), of(GroupBy::File, "m"));
        assert_eq!(names("size > 1"), None);
        assert_eq!(suggest("inside \"Lis").start, 7);
    }

    #[test]
    fn the_longest_words_are_read_without_slips_between_characters() {
        for text in ["é", "\"é", "/é/", "é<é", "  ", "a\u{3000}b"] {
            let _ = suggest(text);
        }
    }
}
