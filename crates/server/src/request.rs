//! A question to the API.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::ApiError;
use crate::params::Params;

/// A report and its parameters, as in `hotspots?by=site&where=live+at+peak`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    report: String,
    pairs: Vec<(String, String)>,
}

impl Request {
    /// A report without parameters.
    #[must_use]
    pub fn new(report: &str) -> Self {
        Self {
            report: report.to_owned(),
            pairs: Vec::new(),
        }
    }

    /// The same with one more parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.pairs.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same with another value of a parameter, or with one more parameter.
    pub(crate) fn replacing(mut self, name: &str, value: &str) -> Self {
        self.pairs.retain(|(key, _)| key != name);
        self.with(name, value)
    }

    /// The report and the query of an address.
    pub(crate) fn parse(report: &str, query: &str) -> Self {
        Self {
            report: report.to_owned(),
            pairs: form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
        }
    }

    /// The name of the report.
    #[must_use]
    pub fn report(&self) -> &str {
        &self.report
    }

    pub(crate) fn params(&self) -> Params {
        Params::new(self.pairs.clone())
    }

    /// The one way to write it: parameters sorted by name, encoded as browsers do. The order of
    /// several of one name stays: it may count.
    #[must_use]
    pub fn key(&self) -> String {
        let mut pairs = self.pairs.clone();
        pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(pairs)
            .finish();
        match &*query {
            "" => self.report.clone(),
            query => format!("{}?{query}", self.report),
        }
    }
}

/// Says that nobody waits for an answer any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// An error if nobody waits any more; to be asked before each piece of work.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        if self.0.load(Ordering::Relaxed) {
            Err(ApiError::stopped())
        } else {
            Ok(())
        }
    }

    /// Stops the work when what is returned is dropped.
    pub(crate) fn on_drop(&self) -> StopOnDrop {
        StopOnDrop(self.clone())
    }
}

/// Held by whoever waits for an answer.
#[derive(Debug)]
pub(crate) struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_written_in_one_way() {
        let a = Request::parse("hotspots", "where=live%20at%20peak&by=site");
        let b = Request::new("hotspots")
            .with("by", "site")
            .with("where", "live at peak");
        assert_eq!(a.key(), b.key());
        assert_eq!(a.key(), "hotspots?by=site&where=live+at+peak");
        assert_eq!(Request::new("info").key(), "info");
    }

    #[test]
    fn work_is_given_up_when_nobody_waits_any_more() {
        let stop = Stop::default();
        let waiting = stop.on_drop();
        assert_eq!(stop.check(), Ok(()));
        drop(waiting);
        assert_eq!(stop.check().unwrap_err().code, "stopped");
    }
}
