//! Patterns of names.

use std::fmt;
use std::str::FromStr;

use regex::Regex;
use serde::{Serialize, Serializer};

use super::ast::Part;
use super::unmatched;
use crate::store::{Function, FunctionId, IdVec, ModuleId, Profile};

/// A pattern for names: `"Parser.*"` or `/List/`.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    text: String,
}

impl Pattern {
    /// Understands `Parser.*`, `/regex/` and, in upper and lower case, `/regex/i`.
    pub fn parse(text: &str) -> Result<Self, regex::Error> {
        let regex = text
            .strip_prefix('/')
            .and_then(|rest| rest.strip_suffix("/i").or(rest.strip_suffix('/')));
        match regex {
            Some(regex) => Self::regex(regex, text.ends_with('i')),
            None => Ok(Self::glob(text)),
        }
    }

    /// All names that look like `glob`: `*` is any text, `?` any character. `\*`, `\?` and `\\` are
    /// those characters themselves; any other `\` is a backslash.
    #[must_use]
    pub fn glob(glob: &str) -> Self {
        let mut pieces = Vec::new();
        let mut chars = glob.chars().peekable();
        while let Some(c) = chars.next() {
            pieces.push(match c {
                '*' => Piece::AnyText,
                '?' => Piece::AnyChar,
                '\\' => Piece::Char(chars.next_if(|&c| is_special(c)).unwrap_or(c)),
                _ => Piece::Char(c),
            });
        }
        Self::of(&pieces)
    }

    /// The name itself, whatever characters it has; but each control character is any character,
    /// so that the [text](Self::text) can be shown and typed.
    #[must_use]
    pub fn literal(name: &str) -> Self {
        Self::of(&literal_pieces(name).collect::<Vec<_>>())
    }

    /// All names that begin with a text.
    pub(crate) fn literal_prefix(start: &str) -> Self {
        let pieces = literal_pieces(start).chain([Piece::AnyText]);
        Self::of(&pieces.collect::<Vec<_>>())
    }

    fn of(pieces: &[Piece]) -> Self {
        let mut regex = String::from("^(?s:");
        let mut text = String::from("\"");
        for piece in pieces {
            match *piece {
                Piece::AnyText => {
                    regex.push_str(".*");
                    text.push('*');
                }
                Piece::AnyChar => {
                    regex.push('.');
                    text.push('?');
                }
                Piece::Char(c) => {
                    regex.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
                    if c == '"' || is_special(c) {
                        text.push('\\');
                    }
                    text.push(c);
                }
            }
        }
        regex.push_str(")$");
        text.push('"');
        Self {
            // Only very long texts fail to compile; they match nothing.
            regex: Regex::new(&regex).unwrap_or_else(|_| never()),
            text,
        }
    }

    /// All names that a regular expression is found in.
    pub fn regex(pattern: &str, ignore_case: bool) -> Result<Self, regex::Error> {
        Ok(Self {
            regex: regex::RegexBuilder::new(pattern)
                .case_insensitive(ignore_case)
                .size_limit(1 << 20)
                .build()?,
            text: format!(
                "/{}/{}",
                escape_slashes(pattern),
                if ignore_case { "i" } else { "" }
            ),
        })
    }

    /// Returns true if a text matches.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// A regular expression that matches the whole of the names that match, in the syntax that RE2,
    /// the engine of many databases, shares with Rust's.
    #[must_use]
    pub fn whole_regex(&self) -> String {
        let pattern = self.regex.as_str();
        match self.text.as_bytes() {
            // Globs match whole names already.
            [b'"', ..] => pattern.to_owned(),
            [.., b'i'] => format!("^(?s:.*)(?i:{pattern})(?s:.*)$"),
            _ => format!("^(?s:.*)(?:{pattern})(?s:.*)$"),
        }
    }

    /// Returns true if a function matches, by its readable or its raw name.
    #[must_use]
    pub fn matches_function(&self, function: &Function) -> bool {
        self.matches(&function.name)
            || (function.raw != function.name && self.matches(&function.raw))
    }

    /// The functions that are meant: those that match or, if none does, those whose names end with what matches, as `List.map` for
    /// `Stdlib.List.map`.
    pub(crate) fn functions(
        &self,
        functions: &IdVec<FunctionId, Function>,
    ) -> IdVec<FunctionId, bool> {
        let matches = functions
            .iter()
            .map(|function| self.matches_function(function));
        let matches: IdVec<_, _> = matches.collect();
        if matches.iter().any(|&is_meant| is_meant) {
            return matches;
        }
        functions
            .iter()
            .map(|function| self.matches_end(&function.name))
            .collect()
    }

    /// The modules that are meant, likewise.
    pub(crate) fn modules(&self, modules: &IdVec<ModuleId, String>) -> IdVec<ModuleId, bool> {
        let matches: IdVec<_, _> = modules.iter().map(|name| self.matches(name)).collect();
        if matches.iter().any(|&is_meant| is_meant) {
            return matches;
        }
        modules.iter().map(|name| self.matches_end(name)).collect()
    }

    /// A description of the function that it stands for, if the profile has none, such as
    /// `function "Pasrer.*"; did you mean "Parser.*"?`.
    #[must_use]
    pub fn unmatched(&self, profile: &Profile) -> Option<String> {
        unmatched::description(Part::Function, self, profile)
    }

    /// Returns true if a crate of the profile matches.
    #[must_use]
    pub fn is_of_crate(&self, profile: &Profile) -> bool {
        unmatched::is_there(Part::Crate, self, profile)
    }

    /// Returns true if the last parts of a name match. Regular expressions match anywhere already.
    pub(crate) fn matches_end(&self, name: &str) -> bool {
        self.text.starts_with('"')
            && name
                .match_indices(['.', ':'])
                .any(|(at, separator)| self.matches(&name[at + separator.len()..]))
    }

    /// Returns true if a file matches, by its path or its file name.
    #[must_use]
    pub fn matches_file(&self, file: &str) -> bool {
        self.matches(file)
            || file
                .rsplit_once('/')
                .is_some_and(|(_, name)| self.matches(name))
    }

    /// The pattern that was most likely meant, given the names that exist, whose parts end with
    /// `separator`. Parts with `*` or `?` stay as they are; a glob without such is also compared to
    /// the last parts of longer names. `None` for regular expressions, and if nothing is similar.
    pub(super) fn similar<'a>(
        &self,
        separator: char,
        names: impl Iterator<Item = &'a str>,
    ) -> Option<Self> {
        let glob = self.text.strip_prefix('"')?.strip_suffix('"')?;
        let parts: Vec<&str> = glob.split(separator).collect();
        let has_wild = glob.contains(is_special);
        let letters = glob.chars().filter(|&c| !is_special(c)).count();
        let similar = |name: &'a str| {
            let others: Vec<&str> = name.split(separator).collect();
            let skip = if has_wild {
                0
            } else {
                others.len().checked_sub(parts.len())?
            };
            let mut distance = 0;
            let mut found = Vec::with_capacity(parts.len());
            for (i, part) in parts.iter().enumerate() {
                if part.contains(is_special) {
                    found.push(*part);
                } else {
                    let other = *others.get(skip + i)?;
                    distance += strsim::osa_distance(part, other);
                    found.push(other);
                }
            }
            let pattern = if has_wild {
                Self::glob(&found.join(&separator.to_string()))
            } else {
                Self::literal(name)
            };
            (distance <= (letters / 4).clamp(1, 4) && distance < letters)
                .then_some((distance, pattern))
        };
        names
            .filter_map(similar)
            .min_by_key(|&(distance, _)| distance)
            .map(|(_, pattern)| pattern)
    }

    /// Its text in a query.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A part of a glob.
#[derive(Clone, Copy)]
enum Piece {
    AnyText,
    AnyChar,
    Char(char),
}

/// The characters of a text, with any character in place of those that cannot be shown.
fn literal_pieces(text: &str) -> impl Iterator<Item = Piece> {
    text.chars().map(|c| {
        if c.is_control() {
            Piece::AnyChar
        } else {
            Piece::Char(c)
        }
    })
}

/// Returns true for characters that are escaped by a backslash in a glob.
fn is_special(c: char) -> bool {
    matches!(c, '*' | '?' | '\\')
}

/// A regular expression as it stands between slashes.
fn escape_slashes(regex: &str) -> String {
    let mut text = String::with_capacity(regex.len());
    let mut escaped = false;
    for c in regex.chars() {
        if c == '/' && !escaped {
            text.push('\\');
        }
        escaped = c == '\\' && !escaped;
        text.push(c);
    }
    text
}

/// The pattern as options take it: a glob without quotes, or `/regex/`.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let glob = self.text.strip_prefix('"');
        let Some(glob) = glob.and_then(|text| text.strip_suffix('"')) else {
            return f.write_str(&self.text);
        };
        // Quotes are escaped in queries only.
        let mut chars = glob.chars();
        while let Some(c) = chars.next() {
            match (c, chars.clone().next()) {
                ('\\', Some('"')) => {}
                ('\\', Some(next)) => {
                    chars.next();
                    write!(f, "\\{next}")?;
                }
                _ => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text).map_err(|error| format!("not a valid regular expression: {error}"))
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

fn never() -> Regex {
    Regex::new(r"[^\s\S]").unwrap_or_else(|_| unreachable!("it is a constant"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_are_whole_names() {
        let pattern = Pattern::glob("Parser.*");
        assert!(pattern.matches("Parser.parse"));
        assert!(!pattern.matches("MyParser.parse"));
        assert!(!pattern.matches("Parser"));
        assert!(Pattern::glob("a.(fun)").matches("a.(fun)"));
        assert!(!Pattern::glob("a.b").matches("aXb"));
        assert!(Pattern::glob("?.b").matches("é.b"));
    }

    #[test]
    fn backslashes_make_characters_ordinary() {
        let pattern = Pattern::glob(r"Ops.\*\?\\");
        assert!(pattern.matches(r"Ops.*?\"));
        assert!(!pattern.matches(r"Ops.xy\"));
        assert_eq!(pattern.text(), r#""Ops.\*\?\\""#);
        // Elsewhere they are backslashes.
        assert!(Pattern::glob(r"src\a.ml").matches(r"src\a.ml"));
        assert!(Pattern::glob(r"a\").matches(r"a\"));
    }

    #[test]
    fn literals_are_only_themselves() {
        assert!(!Pattern::literal("Ops.*").matches("Ops.add"));
        assert!(Pattern::literal("Ops.*").matches("Ops.*"));
        assert_eq!(Pattern::literal("a\"b").text(), r#""a\"b""#);
        assert_eq!(Pattern::literal("a\x1b[m").text(), r#""a?[m""#);
    }

    #[test]
    fn whole_regexes_match_the_same_names() {
        let names = ["Parser.parse", "MyParser", "parser.token", "a.b", "aXb", ""];
        for text in [
            "Parser.*",
            "/Parser/",
            "/parser/i",
            "/^a.b$|Tok/",
            "a.b",
            "*",
        ] {
            let pattern = Pattern::parse(text).unwrap();
            let whole = Regex::new(&pattern.whole_regex()).unwrap();
            for name in names {
                assert_eq!(whole.is_match(name), pattern.matches(name), "{text} {name}");
            }
        }
    }

    #[test]
    fn similar_patterns_are_found() {
        let names = [
            "Stdlib.List.map",
            "Parser.parse",
            "Parser.token",
            "Main.run",
        ];
        let similar = |glob: &str| {
            let pattern = Pattern::glob(glob).similar('.', names.into_iter());
            pattern.map(|pattern| pattern.text().to_owned())
        };
        assert_eq!(similar("Pasrer.*").unwrap(), "\"Parser.*\"");
        assert_eq!(similar("Parser.prase").unwrap(), "\"Parser.parse\"");
        assert_eq!(similar("List.map").unwrap(), "\"Stdlib.List.map\"");
        assert_eq!(similar("Stdlb.*.map").unwrap(), "\"Stdlib.*.map\"");
        assert_eq!(similar("Lexer.*"), None);
        assert_eq!(similar("*"), None);
        assert_eq!(similar(""), None);
    }

    #[test]
    fn expressions_are_found_anywhere() {
        let pattern = Pattern::regex("list", true).unwrap();
        assert!(pattern.matches("Stdlib.List.map"));
        assert!(Pattern::regex("(", false).is_err());
        assert_eq!(Pattern::parse("/list/i").unwrap(), pattern);
        assert_eq!(Pattern::parse("/a/").unwrap().text(), "/a/");
        assert_eq!(Pattern::parse("/a").unwrap(), Pattern::glob("/a"));
        assert_eq!(
            Pattern::regex(r"a/b\/c\\/", false).unwrap().text(),
            r"/a\/b\/c\\\//"
        );
        for text in ["/list/i", "/a/", "/a", "Parser.*", "a\"b", ""] {
            assert_eq!(Pattern::parse(text).unwrap().to_string(), text);
        }
    }
}
