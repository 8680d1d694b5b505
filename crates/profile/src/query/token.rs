//! The tokenizer of the query language.

use std::ops::Range;

use super::error::QueryError;

/// A piece of a query, and where it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// Bytes of the text.
    pub(crate) span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    /// `live`, `Parser.*`, `10s`, `64KiB`, `@14:30`: anything without spaces or quotes.
    Word(String),
    /// `"Parser.*"`, without the quotes. `\"` stands for a quote; other escapes are the pattern's.
    Text(String),
    /// `/List/i`, without the slashes; whether upper and lower case are the same.
    Regex(String, bool),
    Compare(Comparison),
    /// `..`
    To,
    Open,
    Close,
    Comma,
    End,
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

impl Comparison {
    /// Returns true if the comparison holds.
    #[must_use]
    pub fn holds<T: PartialOrd>(self, left: &T, right: &T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::More => left > right,
            Self::AtLeast => left >= right,
        }
    }

    /// Its sign in a query.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
        }
    }
}

/// Splits a query. The last token is always the end.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, QueryError> {
    let (mut tokens, error) = scan(text);
    if let Some(error) = error {
        return Err(error);
    }
    tokens.push(Token {
        kind: TokenKind::End,
        span: text.len()..text.len(),
    });
    Ok(tokens)
}

/// Splits a query up to the first quote that is not closed, which is the error.
pub(super) fn scan(text: &str) -> (Vec<Token>, Option<QueryError>) {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let rest = &text[at..];
        let token = match first {
            '(' => Ok((TokenKind::Open, 1)),
            ')' => Ok((TokenKind::Close, 1)),
            ',' => Ok((TokenKind::Comma, 1)),
            '"' | '\'' => quoted(rest, first, at),
            '/' => regex(rest, at),
            _ => Ok(match comparison(rest) {
                Some((comparison, len)) => (TokenKind::Compare(comparison), len),
                None if rest.starts_with("..") => (TokenKind::To, 2),
                None => {
                    let len = word_len(rest);
                    (TokenKind::Word(rest[..len].to_owned()), len)
                }
            }),
        };
        let (kind, len) = match token {
            Ok(token) => token,
            Err(error) => return (tokens, Some(error)),
        };
        tokens.push(Token {
            kind,
            span: at..at + len,
        });
        at += len;
    }
    (tokens, None)
}

fn comparison(text: &str) -> Option<(Comparison, usize)> {
    use Comparison::{AtLeast, AtMost, Equal, Less, More, NotEqual};
    const SIGNS: [(&str, Comparison); 11] = [
        ("==", Equal),
        ("=", Equal),
        ("!=", NotEqual),
        ("<>", NotEqual),
        ("≠", NotEqual),
        ("<=", AtMost),
        ("≤", AtMost),
        (">=", AtLeast),
        ("≥", AtLeast),
        ("<", Less),
        (">", More),
    ];
    SIGNS
        .iter()
        .find(|(sign, _)| text.starts_with(sign))
        .map(|&(sign, comparison)| (comparison, sign.len()))
}

/// A word ends at a space, a bracket, a comma, a sign or `..`; never before its first character.
pub(super) fn word_len(text: &str) -> usize {
    let ends = |at: usize, c: char| {
        c.is_whitespace()
            || matches!(c, '(' | ')' | ',' | '"' | '\'')
            || comparison(&text[at..]).is_some()
            || text[at..].starts_with("..")
    };
    text.char_indices()
        .skip(1)
        .find(|&(at, c)| ends(at, c))
        .map_or(text.len(), |(at, _)| at)
}

fn quoted(text: &str, quote: char, at: usize) -> Result<(TokenKind, usize), QueryError> {
    let mut content = String::new();
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => {
                escaped = false;
                if c != quote {
                    content.push('\\');
                }
                content.push(c);
            }
            '\\' => escaped = true,
            _ if c == quote => return Ok((TokenKind::Text(content), i + 1)),
            _ => content.push(c),
        }
    }
    Err(QueryError::new(
        at..at + text.len(),
        "unterminated text",
        &format!("a closing {quote} (use \\{quote} inside the text)"),
    ))
}

fn regex(text: &str, at: usize) -> Result<(TokenKind, usize), QueryError> {
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '/' => {
                let ignore_case = text[i + 1..].starts_with('i');
                let pattern = text[1..i].replace("\\/", "/");
                let len = i + 1 + usize::from(ignore_case);
                return Ok((TokenKind::Regex(pattern, ignore_case), len));
            }
            _ => {}
        }
    }
    Err(QueryError::new(
        at..at + text.len(),
        "unterminated regular expression",
        "a closing /",
    ))
}
