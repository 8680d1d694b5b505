//! Completion of queries.

use clap::Args;
use heapline_profile::Query;
use heapline_profile::query::{Suggestion, suggest};
use serde::Serialize;

use crate::session::Session;
use crate::utf16::{byte_offset, utf16_offset};

/// Options of the completion of a query.
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CompleteOptions {
    /// Complete this query
    #[arg(long, default_value = "", value_name = "QUERY")]
    pub text: String,

    /// Complete it at this offset, in UTF-16 code units [default: the end]
    #[arg(long, value_name = "N")]
    pub cursor: Option<usize>,

    /// Limit the number of names
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rows: u16,

    /// Also list the names in the query that the trace does not have
    #[arg(long)]
    pub check: bool,
}

/// Continuations of a query that is being typed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Completion {
    /// The start and end of the text that an item replaces, in UTF-16 code units.
    pub replace: [usize; 2],
    /// Words of the query language, then names, those with the most allocation first.
    pub items: Vec<Suggestion>,
    /// The names in the query that the trace does not have, with the most similar one: `function "Mpa.add"; did you mean
    /// "Map.add"?`. Empty unless they are asked for.
    pub unmatched: Vec<String>,
}

impl CompleteOptions {
    pub(crate) fn complete(&self, session: &Session) -> Completion {
        let text = &*self.text;
        let cursor = self.cursor.map_or(text.len(), |at| byte_offset(text, at));
        let tells = session.trace().profile.tells();
        let rows = usize::from(self.rows);
        let found = suggest(text, cursor, tells, rows, |kind| session.names(kind));
        Completion {
            replace: [found.replace.start, found.replace.end].map(|at| utf16_offset(text, at)),
            items: found.items,
            unmatched: match Query::parse(text) {
                Ok(query) if self.check => query.unmatched(&session.trace().profile),
                _ => Vec::new(),
            },
        }
    }
}
