//! Links that open a line of a source file in an editor.

use std::fmt;
use std::str::FromStr;

/// Schemes of links that run what they contain.
const UNSAFE_SCHEMES: [&str; 3] = ["javascript", "data", "vbscript"];

/// A link with `{file}` for the path of a file, and `{line}` for a line, such as `vscode://file/{file}:{line}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorLink(String);

impl FromStr for EditorLink {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        if !is_scheme || !text.contains("{file}") {
            return Err("expected a link with {file}, such as vscode://file/{file}:{line}");
        }
        if UNSAFE_SCHEMES.contains(&&*scheme.to_ascii_lowercase()) {
            return Err("links of this kind run what they contain");
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for EditorLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for EditorLink {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_a_scheme_and_a_file() {
        for link in [
            "vscode://file/{file}:{line}",
            "idea://open?file={file}&line={line}",
            "x-emacs+client:{file}",
        ] {
            assert_eq!(link.parse(), Ok(EditorLink(link.to_owned())));
        }
        for text in [
            "",
            "{file}",
            "vim {file}",
            "//host/{file}:1",
            "vscode://file/:{line}",
            "1x:{file}",
            "javascript:open('{file}')",
            "JavaScript:{file}",
            "data:text/html,{file}",
        ] {
            assert!(text.parse::<EditorLink>().is_err(), "{text}");
        }
    }
}
