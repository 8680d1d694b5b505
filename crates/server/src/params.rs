//! The parameters of a request: the long options of the command that prints the same.

use heapline_profile::query::{self, Pattern, TimePoint, Window};
use heapline_profile::{Estimator, GroupBy, Query, View};
use serde::de::DeserializeOwned;

use crate::error::ApiError;

/// The parameters that have not been looked at yet.
///
/// Each is taken once; [`finish`](Self::finish) refuses what nobody took, so that a misspelt
/// parameter is an error and not an answer to another question.
#[derive(Clone, Debug)]
pub(crate) struct Params {
    left: Vec<(String, String)>,
}

impl Params {
    pub(crate) fn new(pairs: Vec<(String, String)>) -> Self {
        Self { left: pairs }
    }

    /// All values of a parameter that can be given several times.
    pub(crate) fn all(&mut self, name: &str) -> Vec<String> {
        let (taken, left) = std::mem::take(&mut self.left)
            .into_iter()
            .partition(|(key, _)| key == name);
        self.left = left;
        taken.into_iter().map(|(_, value)| value).collect()
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        let mut values = self.all(name);
        match values.len() {
            0 | 1 => Ok(values.pop()),
            _ => Err(ApiError::parameter(
                name,
                &values[1],
                format!("`{name}` is given more than once"),
            )),
        }
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, ApiError> {
        match self.text(name)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("" | "true") => Ok(true),
            Some(value) => Err(ApiError::parameter(
                name,
                value,
                format!("`{name}` is true or false"),
            )),
        }
    }

    /// A whole number in a range.
    pub(crate) fn number(
        &mut self,
        name: &str,
        default: usize,
        range: std::ops::RangeInclusive<usize>,
    ) -> Result<usize, ApiError> {
        match self.text(name)? {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(number) if range.contains(&number) => Ok(number),
                _ => Err(ApiError::parameter(
                    name,
                    &text,
                    format!(
                        "`{name}` is a whole number from {} to {}",
                        range.start(),
                        range.end()
                    ),
                )),
            },
        }
    }

    /// `1%` or `0.01`.
    pub(crate) fn share(&mut self, name: &str, default: f64, most: f64) -> Result<f64, ApiError> {
        match self.text(name)? {
            None => Ok(default),
            Some(text) => match query::share(&text) {
                Some(share) if share <= most => Ok(share),
                _ => Err(ApiError::parameter(
                    name,
                    &text,
                    format!("`{name}` is a share from 0% to {}%", most * 100.0),
                )),
            },
        }
    }

    /// One of the words that `T` is written with.
    pub(crate) fn word<T: DeserializeOwned>(
        &mut self,
        name: &str,
        words: &[&str],
    ) -> Result<Option<T>, ApiError> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let known = words
            .contains(&&*text)
            .then(|| serde_json::from_value(text.clone().into()).ok())
            .flatten();
        match known {
            Some(value) => Ok(Some(value)),
            None => Err(ApiError::parameter(
                name,
                &text,
                format!("`{name}` is one of: {}", words.join(", ")),
            )),
        }
    }

    /// A time such as `1.5s`, `20%` or `peak`.
    pub(crate) fn time(&mut self, name: &str) -> Result<Option<TimePoint>, ApiError> {
        self.text(name)?
            .map(|text| TimePoint::parse(&text).map_err(|error| ApiError::query(name, &error)))
            .transpose()
    }

    pub(crate) fn windows(&mut self, name: &str) -> Result<Vec<Window>, ApiError> {
        self.all(name)
            .iter()
            .map(|text| Window::parse(text).map_err(|error| ApiError::query(name, &error)))
            .collect()
    }

    pub(crate) fn patterns(&mut self, name: &str) -> Result<Vec<Pattern>, ApiError> {
        self.all(name)
            .iter()
            .map(|text| {
                Pattern::parse(text).map_err(|error| {
                    ApiError::parameter(
                        name,
                        text,
                        format!("this is not a regular expression: {error}"),
                    )
                })
            })
            .collect()
    }

    /// `where` and `live`.
    pub(crate) fn query(&mut self) -> Result<Query, ApiError> {
        let mut query = Query::default();
        for text in self.all("where") {
            let one = Query::parse(&text).map_err(|error| ApiError::query("where", &error))?;
            query = query.and(one);
        }
        if let Some(text) = self.text("live")? {
            let time = TimePoint::parse(&text).map_err(|error| ApiError::query("live", &error))?;
            query = query.and(Query::live_at(time, &text));
        }
        Ok(query)
    }

    pub(crate) fn estimator(&mut self) -> Result<Estimator, ApiError> {
        match self.text("estimator")?.as_deref() {
            None | Some("horvitz-thompson") => Ok(Estimator::HorvitzThompson),
            Some("count") => Ok(Estimator::Count),
            Some(other) => Err(ApiError::parameter(
                "estimator",
                other,
                "`estimator` is one of: horvitz-thompson, count",
            )),
        }
    }

    /// `by`, `hide` and `split-anonymous`.
    pub(crate) fn view(&mut self, default: GroupBy, words: &[&str]) -> Result<View, ApiError> {
        Ok(View {
            by: self.word("by", words)?.unwrap_or(default),
            hidden: self.patterns("hide")?,
            split_anonymous: self.flag("split-anonymous")?,
        })
    }

    /// Refuses what is left.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        match self.left.into_iter().next() {
            None => Ok(()),
            Some((name, value)) => Err(ApiError::parameter(
                &name,
                &value,
                format!("there is no parameter `{name}` here"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(query: &str) -> Params {
        Params::new(
            form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
        )
    }

    #[test]
    fn what_nobody_asks_for_is_refused() {
        let mut params = params("rows=3&row=4");
        assert_eq!(params.number("rows", 20, 0..=10), Ok(3));
        let error = params.finish().unwrap_err();
        assert_eq!(error.place.unwrap().parameter, "row");
    }

    #[test]
    fn values_out_of_range_are_refused() {
        assert!(params("rows=11").number("rows", 20, 0..=10).is_err());
        assert!(params("rows=-1").number("rows", 20, 0..=10).is_err());
        assert!(params("rows=1&rows=2").number("rows", 20, 0..=10).is_err());
        assert!(params("min=101%").share("min", 0.0, 1.0).is_err());
        assert!(params("min=NaN").share("min", 0.0, 1.0).is_err());
        assert!(params("sites=maybe").flag("sites").is_err());
        assert!(
            params("by=colour")
                .view(GroupBy::Function, &["site"])
                .is_err()
        );
        assert!(params("hide=/(/").patterns("hide").is_err());
    }

    #[test]
    fn several_queries_must_all_hold() {
        let query = params("where=size+>+3&where=promoted&live=peak").query();
        assert_eq!(
            query.unwrap().text(),
            "((size > 3) and (promoted)) and (live at peak)"
        );
    }
}
