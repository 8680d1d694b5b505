//! The service that profiles are of, with its labels.

use std::str::FromStr;

use crate::heap_profile::HeapProfile;

/// The service that profiles are of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its name; that of the program if it is `None`.
    pub service: Option<String>,
    /// Labels by which profiles can be found.
    pub labels: Vec<Label>,
}

impl Identity {
    pub(crate) fn service<'a>(&'a self, profile: &'a HeapProfile) -> &'a str {
        self.service.as_deref().unwrap_or(profile.program_name())
    }

    /// The labels as Prometheus and its relatives want them: the machine, and those of the user, each name once.
    pub(crate) fn plain_labels(&self, profile: &HeapProfile) -> Vec<(String, String)> {
        let mut labels: Vec<(String, String)> = Vec::new();
        if !profile.host.trim().is_empty() {
            let host = profile.host.replace(is_special, "_");
            labels.push(("host".to_owned(), host));
        }
        for label in &self.labels {
            let name = label.plain_name();
            labels.retain(|(other, _)| *other != name);
            labels.push((name, label.value.clone()));
        }
        labels
    }
}

/// Characters that end a value in Pyroscope's names, which have no escapes.
fn is_special(c: char) -> bool {
    matches!(c, ',' | '{' | '}') || c.is_control()
}

/// A label: `env=production`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Letters, digits, underscores and dots.
    pub name: String,
    /// Text without commas and braces.
    pub value: String,
}

impl Label {
    /// The name without dots.
    fn plain_name(&self) -> String {
        self.name.replace('.', "_")
    }
}

/// Error of a label that not all servers take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLabel {
    /// There is no `=`.
    #[error("expected NAME=VALUE, such as env=production")]
    NoValue,
    /// The name has other characters than are allowed.
    #[error(
        "the name of a label has letters, digits, _ and . only, and does not begin with a digit or __"
    )]
    Name,
    /// The value has characters that end it in Pyroscope's names.
    #[error(
        "the value of a label cannot be empty, and cannot contain commas, braces and control characters"
    )]
    Value,
}

impl FromStr for Label {
    type Err = InvalidLabel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = text.split_once('=').ok_or(InvalidLabel::NoValue)?;
        let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
        let is_allowed = |c: char| is_letter(c) || c.is_ascii_digit() || c == '.';
        if !name.starts_with(is_letter) || name.starts_with("__") || !name.chars().all(is_allowed) {
            return Err(InvalidLabel::Name);
        }
        if value.trim().is_empty() || value.contains(is_special) {
            return Err(InvalidLabel::Value);
        }
        Ok(Self {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_what_all_servers_take() {
        let label: Label = "deployment.env=prod=1".parse().unwrap();
        assert_eq!((&*label.name, &*label.value), ("deployment.env", "prod=1"));
        assert_eq!(label.plain_name(), "deployment_env");
        for (text, expected) in [
            ("env", InvalidLabel::NoValue),
            ("=x", InvalidLabel::Name),
            ("1a=x", InvalidLabel::Name),
            ("__name__=x", InvalidLabel::Name),
            ("a-b=x", InvalidLabel::Name),
            ("a=", InvalidLabel::Value),
            ("a=x,b", InvalidLabel::Value),
            ("a=x}", InvalidLabel::Value),
            ("a=x\n", InvalidLabel::Value),
        ] {
            assert_eq!(text.parse::<Label>(), Err(expected), "{text:?}");
        }
    }
}
