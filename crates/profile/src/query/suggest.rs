//! Suggestions for a query that is being typed.

use std::borrow::Cow;
use std::ops::Range;

use heapline_model::Capabilities;
use serde::Serialize;

use super::ast::Part;
use super::parser::offers;
use super::pattern::Pattern;
use super::token::{TokenKind, scan, word_len};
use crate::groups::GroupBy;
use crate::reports::Name;

/// Continuations of a query at the cursor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suggestions {
    /// The bytes of the text that a suggestion replaces.
    pub replace: Range<usize>,
    /// Words of the language, then names, those with the most allocation first.
    pub items: Vec<Suggestion>,
    /// The kind of names that fit here.
    pub names: Option<GroupBy>,
}

/// A word of the query language or a name of the trace that can be inserted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Suggestion {
    /// The text to insert. Names are quoted.
    pub text: String,
    /// A description of the word; empty for names.
    pub hint: &'static str,
    /// The name of the trace, if it is one.
    pub name: Option<SuggestedName>,
}

/// A name that occurs in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SuggestedName {
    /// The kind of the name: function, file, module or crate.
    pub kind: GroupBy,
    /// Bytes allocated there or by what it calls.
    pub bytes: f64,
}

/// Suggests words and names that fit at the cursor, a byte offset. Words that need something that
/// the source does not tell are omitted. `names` returns all names of a kind; at most `rows` of those
/// that contain the part that was typed are suggested.
///
/// ```
/// use heapline_model::Capabilities;
/// use heapline_profile::query::suggest;
///
/// let tells = Capabilities { lifetimes: true, ..Capabilities::default() };
/// let found = suggest("promoted and lif > 2s", 16, tells, 10, |_| &[]);
/// assert_eq!(found.items[0].text, "lifetime");
/// assert_eq!(found.replace, 13..16);
/// ```
#[must_use]
pub fn suggest<'a>(
    text: &str,
    cursor: usize,
    tells: Capabilities,
    rows: usize,
    names: impl FnOnce(GroupBy) -> &'a [Name],
) -> Suggestions {
    let cursor = char_boundary(text, cursor);
    let (mut tokens, open_quote) = scan(&text[..cursor]);
    // The word or the quote at the cursor is still being typed.
    let (start, end) = if let Some(error) = open_quote {
        (error.start, quote_end(text, error.start, cursor))
    } else {
        let is_word = |kind: &TokenKind| matches!(kind, TokenKind::Word(_));
        let word = tokens.pop_if(|last| last.span.end == cursor && is_word(&last.kind));
        word.map_or((cursor, cursor), |word| {
            let start = word.span.start;
            (start, cursor.max(start + word_len(&text[start..])))
        })
    };
    let typed = &text[start..cursor];
    let offers = offers(tokens, start);
    let prefix = typed.to_lowercase();
    let words = offers.words.iter();
    let mut items: Vec<Suggestion> = words
        .filter(|word| word.need.is_met(tells) && word.text.to_lowercase().starts_with(&prefix))
        .map(|word| Suggestion {
            text: word.text.to_owned(),
            hint: word.hint,
            name: None,
        })
        .collect();
    let kind = offers.names.map(Part::group);
    if let Some(kind) = kind {
        let part = unquoted(typed).to_lowercase();
        let names = names(kind).iter();
        let fitting = names.filter(|name| name.name.to_lowercase().contains(&part));
        items.extend(fitting.take(rows).map(|name| Suggestion {
            text: Pattern::literal(&name.name).text().to_owned(),
            hint: "",
            name: Some(SuggestedName {
                kind,
                bytes: name.bytes,
            }),
        }));
    }
    Suggestions {
        replace: start..end,
        items,
        names: kind,
    }
}

fn char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The end of the quoted name or regular expression that starts at an offset. If quotes do not
/// match, the one that closes it may be missing, and it ends with its word.
fn quote_end(text: &str, start: usize, cursor: usize) -> usize {
    if let (tokens, None) = scan(&text[start..])
        && let Some(quote) = tokens.first()
    {
        return start + quote.span.end;
    }
    let rest = &text[cursor..];
    let is_end = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"');
    let word = rest.find(is_end).unwrap_or(rest.len());
    let quote = rest[word..].starts_with('"');
    cursor + word + usize::from(quote)
}

/// The beginning of a name that was typed, without its quote and escapes.
fn unquoted(typed: &str) -> Cow<'_, str> {
    let Some(name) = typed.strip_prefix(['"', '\'']) else {
        return Cow::Borrowed(typed.strip_prefix('/').unwrap_or(typed));
    };
    if !name.contains('\\') {
        return Cow::Borrowed(name);
    }
    let mut chars = name.chars();
    let next = || match chars.next()? {
        '\\' => chars.next(),
        c => Some(c),
    };
    Cow::Owned(std::iter::from_fn(next).collect())
}

#[cfg(test)]
mod tests;
