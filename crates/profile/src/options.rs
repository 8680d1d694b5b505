//! Building blocks for the options of reports.
//!
//! The options struct of a report is its only definition: names, help texts, defaults and limits.
//! The command line parses it with clap, the API and report files through the same parser, and
//! serialising it gives back the text of every option.

use std::fmt;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Command, ValueEnum};
use serde::{Serialize, Serializer};

use crate::groups::{GroupBy, View};
use crate::query::{self, Pattern};
use crate::store::Profile;

/// The largest number of rows of a report.
pub(crate) const MAX_ROWS: u64 = 100_000;

/// An option whose value does not go with the others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option} {message}")]
pub struct OptionError {
    /// The long name of the option, without `--`.
    pub option: &'static str,
    /// Its value.
    pub value: String,
    /// The error, as the end of a sentence that begins with the name of the option.
    pub message: &'static str,
}

impl OptionError {
    pub(crate) fn new(
        option: &'static str,
        value: impl Into<String>,
        message: &'static str,
    ) -> Self {
        Self {
            option,
            value: value.into(),
            message,
        }
    }
}

/// A share of a whole, from 0 to 1, written `1%` or `0.01`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        query::share(text)
            .map(Self)
            .ok_or("expected a share from 0% to 100%, such as 1% or 0.01")
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Percent where that is exact, so that every share has one canonical text.
        let percent = (self.0 * 1e14).round() / 1e12;
        if Self(percent / 100.0) == *self {
            write!(f, "{percent}%")
        } else {
            write!(f, "{}", self.0)
        }
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Options for the display of functions.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Look {
    /// Hide matching functions; their memory is attributed to the caller
    ///
    /// A pattern is a name with * and ?, or /REGEX/.
    #[arg(long, help_heading = "Attribute", value_name = "PATTERN")]
    pub hide: Vec<Pattern>,

    /// Distinguish anonymous functions by source line
    #[arg(long, help_heading = "Attribute", hide_short_help = true)]
    pub split_anonymous: bool,

    /// Attribute the memory of libraries to your own code in stacks and lists of modules too
    ///
    /// Your own code is the innermost function outside of libraries. Libraries are Rust's and OCaml's standard libraries, the
    /// dependencies of Rust programs, and common libraries of OCaml.
    #[arg(long, help_heading = "Attribute")]
    pub own_code: bool,

    /// Attribute memory to the function that allocates it, also in libraries
    ///
    /// Lists of functions and sites attribute to your own code otherwise.
    #[arg(long, help_heading = "Attribute", conflicts_with_all = ["own_code", "mine"], hide_short_help = true)]
    pub all_code: bool,

    /// Count only matching functions and crates as your own code; implies --own-code
    ///
    /// A pattern is a name with * and ?, or /REGEX/.
    #[arg(long, help_heading = "Attribute", value_name = "PATTERN")]
    pub mine: Vec<Pattern>,
}

impl Look {
    /// The options whose functions the trace does not have, most likely misspelt: `--mine: the trace has no function ...`.
    #[must_use]
    pub fn unmatched(&self, profile: &Profile) -> Vec<String> {
        let hidden = self.hide.iter().map(|pattern| ("--hide", pattern));
        let mine = self
            .mine
            .iter()
            .filter(|pattern| !pattern.is_of_crate(profile));
        hidden
            .chain(mine.map(|pattern| ("--mine", pattern)))
            .filter_map(|(option, pattern)| {
                let name = pattern.unmatched(profile)?;
                Some(format!("{option}: the trace has no {name}"))
            })
            .collect()
    }

    /// The view with these options and groups of a kind.
    pub(crate) fn view(&self, by: GroupBy) -> View {
        View {
            by,
            hidden: self.hide.clone(),
            split_anonymous: self.split_anonymous,
            own_code: self.is_of_own_code().then(|| self.mine.clone()),
            name_callers: false,
        }
    }

    /// These options for a list of groups of a kind. Functions are listed to be looked at, so that their memory is attributed to own
    /// code by default. Files, modules and crates are asked for to see the libraries too.
    #[must_use]
    pub fn of_list(&self, by: GroupBy) -> Self {
        let is_of_functions = matches!(by, GroupBy::Site | GroupBy::Function);
        Self {
            own_code: self.own_code || (is_of_functions && !self.all_code),
            ..self.clone()
        }
    }

    /// Returns true if memory is attributed to own code.
    #[must_use]
    pub fn is_of_own_code(&self) -> bool {
        self.own_code || !self.mine.is_empty()
    }
}

/// The defaults that the options themselves state.
pub(crate) fn defaults<T: Args>() -> T {
    T::augment_args(Command::new("defaults"))
        .try_get_matches_from(["defaults"])
        .and_then(|matches| T::from_arg_matches(&matches))
        .unwrap_or_else(|error| unreachable!("every option has a default: {error}"))
}

/// Parses a whole number from `least` to `most`.
pub(crate) fn number(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse::<u64>().ok();
        number
            .filter(|number| (least..=most).contains(number))
            .and_then(|number| usize::try_from(number).ok())
            .ok_or_else(|| format!("expected a number from {least} to {most}"))
    }
}

/// Parses some of the values of an enum.
pub fn one_of<T>(values: &[T]) -> impl TypedValueParser<Value = T> + use<T>
where
    T: ValueEnum + Clone + Send + Sync + 'static,
{
    let names: Vec<_> = values
        .iter()
        .filter_map(ValueEnum::to_possible_value)
        .collect();
    PossibleValuesParser::new(names).try_map(|name| T::from_str(&name, false))
}

/// Serialises an enum by the name that options use.
pub fn value_name<T: ValueEnum, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value.to_possible_value() {
        Some(name) => serializer.serialize_str(name.get_name()),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_one_canonical_text() {
        for (text, canonical) in [
            ("1%", "1%"),
            ("0.01", "1%"),
            ("0.1 %", "0.1%"),
            ("7%", "7%"),
            ("0", "0%"),
            ("100%", "100%"),
        ] {
            let share: Share = text.parse().unwrap();
            assert_eq!(share.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(share));
        }
        for text in ["101%", "-1%", "NaN", "much"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
        for i in 0..=10_000 {
            for share in [f64::from(i) / 10_000.0, 1.0 / f64::from(i + 1)] {
                let text = Share(share).to_string();
                assert_eq!(text.parse(), Ok(Share(share)), "{text}");
            }
        }
    }
}
