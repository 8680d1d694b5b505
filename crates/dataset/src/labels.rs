//! Labels of runs.

use std::collections::BTreeMap;

/// Bytes of a key, at most.
const LONGEST_KEY: usize = 63;
/// Bytes of a value, at most. The service is also the name of a folder, so it is shorter: see
/// [`path`](crate::path).
const LONGEST_VALUE: usize = 1024;
/// Labels of a run, at most.
const MOST: usize = 64;

/// The label that is the name of the service.
pub(crate) const SERVICE: &str = "service";
/// The label that is the version of the program.
pub(crate) const VERSION: &str = "version";

/// Labels of a run: the service, the version, and others to select runs by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(BTreeMap<String, String>);

/// The reason why labels were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelError {
    /// There is no `=`.
    #[error("'{0}' is not a label; write KEY=VALUE, such as version=1.4.2")]
    NoValue(String),
    /// The key has other characters than allowed, or too many.
    #[error(
        "'{0}' cannot be the key of a label; use up to {LONGEST_KEY} letters, digits and the characters _ . - /, \
         beginning with a letter"
    )]
    Key(String),
    /// The value is empty, too long or has control characters.
    #[error(
        "the value of the label '{0}' must have 1 to {LONGEST_VALUE} bytes, and no control characters"
    )]
    Value(String),
    /// The name of the service does not fit into the name of a folder.
    #[error(
        "the name of the service is too long: it is the name of a folder, which may have {} bytes, \
         and characters other than A-Z a-z 0-9 _ . - take three each",
        crate::path::LONGEST
    )]
    Service,
    /// A key was given twice.
    #[error("the label '{0}' was given twice")]
    Twice(String),
    /// There are too many.
    #[error("a run can have up to {MOST} labels")]
    TooMany,
}

impl Labels {
    /// Parses labels of the form `KEY=VALUE`.
    pub fn parse<T: AsRef<str>>(labels: impl IntoIterator<Item = T>) -> Result<Self, LabelError> {
        let mut all = Self::default();
        for label in labels {
            let label = label.as_ref();
            let no_value = || LabelError::NoValue(label.chars().take(100).collect());
            let (key, value) = label.split_once('=').ok_or_else(no_value)?;
            all.add(key, value)?;
        }
        Ok(all)
    }

    /// Adds a label.
    pub fn add(&mut self, key: &str, value: &str) -> Result<(), LabelError> {
        let shown = || key.chars().take(LONGEST_KEY + 1).collect();
        let is_allowed = |c: u8| c.is_ascii_alphanumeric() || b"_.-/".contains(&c);
        let starts_well = key.starts_with(|c: char| c.is_ascii_alphabetic());
        if !starts_well || key.len() > LONGEST_KEY || !key.bytes().all(is_allowed) {
            return Err(LabelError::Key(shown()));
        }
        if value.is_empty() || value.len() > LONGEST_VALUE || value.contains(char::is_control) {
            return Err(LabelError::Value(shown()));
        }
        if key == SERVICE && crate::path::escape(value).len() > crate::path::LONGEST {
            return Err(LabelError::Service);
        }
        if self.0.len() == MOST {
            return Err(LabelError::TooMany);
        }
        match self.0.insert(key.to_owned(), value.to_owned()) {
            None => Ok(()),
            Some(_) => Err(LabelError::Twice(shown())),
        }
    }

    /// The value of a label.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// All labels, by key.
    #[must_use]
    pub fn all(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_keys_and_values() {
        let labels = Labels::parse(["version=1.4.2", "k8s.io/pod=a=b c"]).unwrap();
        assert_eq!(labels.get("version"), Some("1.4.2"));
        assert_eq!(labels.get("k8s.io/pod"), Some("a=b c"));
        assert_eq!(labels.get("service"), None);
    }

    #[test]
    fn hostile_labels_are_refused() {
        let long = "x".repeat(2000);
        for (label, error) in [
            ("version".to_owned(), "is not a label"),
            ("=1".to_owned(), "cannot be the key"),
            ("../x=1".to_owned(), "cannot be the key"),
            ("a\0b=1".to_owned(), "cannot be the key"),
            (format!("{long}=1"), "cannot be the key"),
            ("version=".to_owned(), "1 to 1024 bytes"),
            ("version=a\0b".to_owned(), "1 to 1024 bytes"),
            ("version=\u{1b}[31m".to_owned(), "1 to 1024 bytes"),
            (format!("version={long}"), "1 to 1024 bytes"),
            (format!("service={}", "é".repeat(50)), "name of the service"),
        ] {
            let found = Labels::parse([&label]).unwrap_err().to_string();
            assert!(found.contains(error), "{label}: {found}");
            assert!(found.len() < 400, "{found}");
        }
        let twice = Labels::parse(["a=1", "a=2"]).unwrap_err();
        assert_eq!(twice, LabelError::Twice("a".to_owned()));
        let many = (0..100).map(|n| format!("a{n}=1"));
        assert_eq!(Labels::parse(many), Err(LabelError::TooMany));
    }
}
