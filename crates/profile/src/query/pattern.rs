//! Patterns of names.

use regex::Regex;

use crate::store::Function;

/// Which names are meant: `"Parser.*"` or `/List/`.
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

    /// All names that look like `glob`: `*` is any text, `?` any character.
    #[must_use]
    pub fn glob(glob: &str) -> Self {
        let mut regex = String::from("^(?s:");
        for c in glob.chars() {
            match c {
                '*' => regex.push_str(".*"),
                '?' => regex.push('.'),
                _ => regex.push_str(&regex::escape(&c.to_string())),
            }
        }
        regex.push_str(")$");
        Self {
            // Only very long texts fail to compile; they match nothing.
            regex: Regex::new(&regex).unwrap_or_else(|_| never()),
            text: format!("\"{glob}\""),
        }
    }

    /// All names that a regular expression is found in.
    pub fn regex(pattern: &str, ignore_case: bool) -> Result<Self, regex::Error> {
        Ok(Self {
            regex: regex::RegexBuilder::new(pattern)
                .case_insensitive(ignore_case)
                .size_limit(1 << 20)
                .build()?,
            text: format!("/{pattern}/{}", if ignore_case { "i" } else { "" }),
        })
    }

    /// Whether a text matches.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Whether a function matches, by its readable or its raw name.
    #[must_use]
    pub fn matches_function(&self, function: &Function) -> bool {
        self.matches(&function.name)
            || (function.raw != function.name && self.matches(&function.raw))
    }

    /// Whether a file matches, by its whole path or by its last part.
    #[must_use]
    pub fn matches_file(&self, file: &str) -> bool {
        self.matches(file)
            || file
                .rsplit_once('/')
                .is_some_and(|(_, name)| self.matches(name))
    }

    /// How it is written in a query.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
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
    fn expressions_are_found_anywhere() {
        let pattern = Pattern::regex("list", true).unwrap();
        assert!(pattern.matches("Stdlib.List.map"));
        assert!(Pattern::regex("(", false).is_err());
        assert_eq!(Pattern::parse("/list/i").unwrap(), pattern);
        assert_eq!(Pattern::parse("/a/").unwrap().text(), "/a/");
        assert_eq!(Pattern::parse("/a").unwrap(), Pattern::glob("/a"));
    }
}
