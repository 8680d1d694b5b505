//! The query language, which selects blocks.
//!
//! ```text
//! live at peak and heap = major and size >= 64KiB
//! inside "Parser.*" and not inside /Stdlib__List/ and lifetime > 2s
//! allocated in 10s..20s and alive at end and domain = 1
//! ```
//!
//! `docs/query.md` has the grammar and the meaning of each field.

mod amount;
mod ast;
mod error;
mod eval;
mod parser;
mod pattern;
mod sites;
mod suggest;
mod token;
mod unmatched;
mod untold;
mod words;

pub use amount::{Lifetime, Size, TimePoint, share};
pub(crate) use amount::{size, time_point};
pub(crate) use ast::{Clause, Expr};
pub use error::QueryError;
pub use pattern::Pattern;
pub use sites::{BeyondSites, SiteCondition};
pub use suggest::{SuggestedName, Suggestion, Suggestions, suggest};
pub use token::Comparison;
pub(crate) use token::{TokenKind, tokens};
pub use untold::Untold;

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::sampling::Estimator;
use crate::selection::Selection;
use crate::store::{Moment, Profile};

/// A query that was understood.
///
/// ```
/// use heapline_profile::Query;
///
/// let query = Query::parse("live at peak and size >= 64KiB").unwrap();
/// assert_eq!(query.text(), "live at peak and size >= 64KiB");
/// let error = Query::parse("lifetim > 3s").unwrap_err();
/// assert!(error.to_string().contains("did you mean `lifetime`?"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    text: String,
    /// `None` is true of all blocks.
    expr: Option<Expr>,
}

impl Query {
    /// Understands a text. The empty one is true of all blocks.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let expr = parser::parse(text).map_err(|error| error.of(text))?;
        Ok(Self {
            text: text.trim().to_owned(),
            expr,
        })
    }

    /// The query as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if it matches all blocks.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.expr.is_none()
    }

    /// The query that matches blocks matched by both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self.expr, other.expr) {
            (Some(a), Some(b)) => Self {
                text: format!("({}) and ({})", self.text, other.text),
                expr: Some(Expr::All(vec![a, b])),
            },
            (Some(a), None) => Self {
                text: self.text,
                expr: Some(a),
            },
            (None, expr) => Self {
                text: other.text,
                expr,
            },
        }
    }

    /// The query for blocks live at a time.
    #[must_use]
    pub fn live_at(time: TimePoint) -> Self {
        Self {
            text: format!("live at {time}"),
            expr: Some(Expr::Clause(Clause::LiveAt(time))),
        }
    }

    /// The query for blocks allocated in a window.
    #[must_use]
    pub fn allocated_in(window: &Window) -> Self {
        Self {
            text: format!("allocated in {}", window.text),
            expr: Some(Expr::Clause(Clause::Allocated(ast::When::In(
                window.span.clone(),
            )))),
        }
    }

    /// The query for blocks that matching functions allocated.
    #[must_use]
    pub fn site(function: Pattern) -> Self {
        Self {
            text: format!("site = {}", function.text()),
            expr: Some(Expr::Clause(Clause::Site(ast::Part::Function, function))),
        }
    }

    /// The blocks of a profile that it is true of. The estimator decides when the peak is.
    #[must_use]
    pub fn select(&self, profile: &Profile, estimator: Estimator) -> Selection {
        match &self.expr {
            None => Selection::all(profile),
            Some(expr) => eval::select(expr, profile, estimator),
        }
    }

    /// Fails if it asks what is live after the end of the run.
    pub fn check_times(&self, profile: &Profile) -> Result<(), TimeError> {
        let mut moments = self.expr.iter().flat_map(untold::moments);
        moments.try_for_each(|time| time.check(profile))
    }

    /// Names that the query asks for and nothing in the profile has, such as
    /// `function "Pasrer.*"; did you mean "Parser.*"?`.
    #[must_use]
    pub fn unmatched(&self, profile: &Profile) -> Vec<String> {
        self.expr
            .as_ref()
            .map_or_else(Vec::new, |expr| unmatched::unmatched(expr, profile))
    }
}

impl FromStr for Query {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Serialize for Query {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl FromStr for TimePoint {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// The canonical text, which parses to the same time.
impl fmt::Display for TimePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("start"),
            Self::Peak => f.write_str("peak"),
            Self::End => f.write_str("end"),
            Self::Micros(micros) => write!(f, "{}s", *micros as f64 / 1e6),
            Self::Fraction(share) => write!(f, "{}%", (share * 1e14).round() / 1e12),
            Self::Date(micros) => match jiff::Timestamp::from_microsecond(*micros) {
                Ok(date) => write!(f, "@{date}"),
                Err(_) => f.write_str("start"),
            },
            Self::Clock(time) => write!(f, "@{time}"),
        }
    }
}

impl Serialize for TimePoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl TimePoint {
    /// Understands `peak`, `end`, `start`, `10s`, `90%` or `@14:30:05`.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        time_point(text.trim()).ok_or_else(|| {
            QueryError::new(
                0..text.len(),
                "invalid time",
                "peak, end, start, 10s, 90% or @14:30:05",
            )
            .of(text)
        })
    }

    /// The moment after everything that happened by then.
    #[must_use]
    pub fn moment(&self, profile: &Profile, estimator: Estimator) -> Moment {
        eval::Times { profile, estimator }.after(self)
    }

    /// Fails if it is after the end of the run.
    pub fn check(&self, profile: &Profile) -> Result<(), TimeError> {
        let end = profile.micros(profile.end());
        match self.micros_since(profile.header().start_time) {
            Some(micros) if micros > end => {
                Err(TimeError::AfterEnd(self.clone(), profile.duration()))
            }
            _ => Ok(()),
        }
    }

    /// Microseconds since the start of the trace.
    #[must_use]
    pub fn micros(&self, profile: &Profile, estimator: Estimator) -> u64 {
        eval::Times { profile, estimator }.micros(self)
    }
}

/// The error of a time or window that is not in the run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TimeError {
    /// The time is after the end; the run lasts so many seconds.
    #[error("{0} is after the end of the run, which lasts {1}s")]
    AfterEnd(TimePoint, f64),
    /// The window ends before it starts, or starts after the end of the run, which lasts so many seconds.
    #[error("the window {0} contains no events; the run lasts {1}s")]
    EmptyWindow(String, f64),
}

/// A range of times, such as `10s..20s`; its end is not part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    text: String,
    span: ast::Span,
}

impl Window {
    /// Understands `10s..20s`, `..peak` or `90%..`.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let span = parser::parse_span(text).map_err(|error| error.of(text))?;
        Ok(Self {
            text: text.trim().to_owned(),
            span,
        })
    }

    /// The range from one time to another.
    #[must_use]
    pub fn new(from: TimePoint, to: TimePoint) -> Self {
        Self {
            text: format!("{from}..{to}"),
            span: ast::Span { from, to },
        }
    }

    /// The window as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The times that it is between.
    #[must_use]
    pub fn bounds(&self) -> (&TimePoint, &TimePoint) {
        (&self.span.from, &self.span.to)
    }

    /// Its first moment, and the one at which it ends: before anything that happened at its end. Fails if it has no time in
    /// common with the run. A part of the run without events is a window.
    pub fn moments(
        &self,
        profile: &Profile,
        estimator: Estimator,
    ) -> Result<(Moment, Moment), TimeError> {
        let times = eval::Times { profile, estimator };
        let (from, to) = (times.before(&self.span.from), times.before(&self.span.to));
        if from >= to && !self.is_part_of(profile, estimator) {
            let window = self.text.clone();
            return Err(TimeError::EmptyWindow(window, profile.duration()));
        }
        Ok((from, to))
    }

    /// Its bounds in seconds from the start, within the run.
    pub(crate) fn seconds(&self, profile: &Profile, estimator: Estimator) -> (f64, f64) {
        let times = eval::Times { profile, estimator };
        let end = profile.micros(profile.end());
        let seconds = |time| times.micros(time).min(end) as f64 / 1e6;
        (seconds(&self.span.from), seconds(&self.span.to))
    }

    /// Returns true if it overlaps the run, with events or without.
    fn is_part_of(&self, profile: &Profile, estimator: Estimator) -> bool {
        let times = eval::Times { profile, estimator };
        let from = times.micros(&self.span.from);
        from < times.micros(&self.span.to) && from <= profile.micros(profile.end())
    }
}

impl FromStr for Window {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Serialize for Window {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever a function is called, there is a query for it.
        #[test]
        fn any_name_can_be_asked_for(
            name in prop_oneof![any::<String>(), r#"[a-z.*?\\"'/ \n]{0,8}"#],
            other in r#"[a-z.*?\\"'/ ]{0,8}"#,
        ) {
            let literal = Pattern::literal(&name);
            let text = format!("size > 3 and site = {} and size < 9", literal.text());
            let read = match parser::parse(&text) {
                Ok(Some(Expr::All(parts))) => match &parts[..] {
                    [_, Expr::Clause(Clause::Site(_, pattern)), _] => pattern.clone(),
                    _ => panic!("{text}: {parts:?}"),
                },
                other => panic!("{text}: {other:?}"),
            };
            prop_assert_eq!(&read, &literal);
            prop_assert!(read.matches(&name));
            prop_assert!(other == name || name.contains(char::is_control) || !read.matches(&other));
        }

        /// A pattern means the same when it is written out and read again.
        #[test]
        fn patterns_can_be_written_and_read_again(glob in r#"[a-b.*?\\"'/]{0,8}"#, name in r#"[a-b.*?\\"'/]{0,6}"#) {
            let pattern = Pattern::glob(&glob);
            let text = format!("site = {}", pattern.text());
            let Ok(Some(Expr::Clause(Clause::Site(_, read)))) = parser::parse(&text) else {
                panic!("{text}");
            };
            prop_assert_eq!(read.matches(&name), pattern.matches(&name));
            prop_assert_eq!(read, pattern);
        }
    }

    #[test]
    fn times_parse_from_their_canonical_text() {
        for text in [
            "start",
            "peak",
            "end",
            "0",
            "1us",
            "1.5s",
            "2min",
            "90%",
            "7%",
            "33.3%",
            "@14:30:05",
            "@2026-11-15T14:30:05.25Z",
        ] {
            let time = TimePoint::parse(text).unwrap();
            assert_eq!(TimePoint::parse(&time.to_string()), Ok(time), "{text}");
        }
        let window = Window::new(TimePoint::Micros(13_973), TimePoint::Peak);
        assert_eq!(Window::parse("0.013973s..peak"), Ok(window));
    }

    #[test]
    fn errors_in_long_queries_are_shown_too() {
        let text = format!("{}sise > 3", "size > 3 and ".repeat(10_000));
        let error = Query::parse(&text).unwrap_err().to_string();
        assert!(error.contains("^^^^"), "{}", error.len());
    }

    #[test]
    fn dates_can_be_either_end_of_a_range() {
        let text = "allocated in \"2026-11-15 14:30:00\"..\"2026-11-15 14:31:00\"";
        assert!(Query::parse(text).is_ok());
        assert!(Window::parse("@14:30..@14:31").is_ok());
    }

    #[test]
    fn times_and_memory_are_not_compared() {
        for text in ["lifetime in 1MiB..2s", "lifetime in 1s..1MiB"] {
            let error = Query::parse(text).unwrap_err();
            assert_eq!(error.message, "the bounds have different units");
        }
        assert!(Query::parse("lifetime in 1kw..1MiB").is_ok());
    }
}
