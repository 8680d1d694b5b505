//! The filter of a request: the selected blocks, and how samples are scaled.

use clap::Args;
use heapline_profile::query::TimePoint;
use heapline_profile::reports::StatsOptions;
use heapline_profile::{Estimator, Profile, Query, Scope, value_name};
use serde::{Serialize, Serializer};

use crate::reports::Request;
use crate::request::Params;

/// Options that all reports share.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Filter {
    /// Select blocks, such as 'inside "Parser.*" and size >= 64KiB'
    ///
    /// Repeated queries are combined with "and". docs/query.md describes the language.
    #[arg(
        long = "where",
        short = 'w',
        value_name = "QUERY",
        help_heading = "Select"
    )]
    #[serde(rename = "where", serialize_with = "restrictions")]
    pub queries: Vec<Query>,

    /// Select blocks live at this time: peak, end, 10s, 90%
    ///
    /// Short for --where 'live at TIME'.
    #[arg(long, value_name = "TIME", help_heading = "Select")]
    pub live: Option<TimePoint>,

    /// Select how samples are scaled to totals
    #[arg(
        long,
        value_enum,
        default_value_t,
        help_heading = "Attribute",
        hide_short_help = true
    )]
    #[serde(serialize_with = "value_name")]
    pub estimator: Estimator,

    /// Keep all frames of recursive calls, not only the first of each function
    #[arg(long, help_heading = "Attribute", hide_short_help = true)]
    pub keep_recursion: bool,
}

/// The queries without those that select all blocks.
fn restrictions<S: Serializer>(queries: &[Query], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(queries.iter().filter(|query| !query.is_all()))
}

impl Filter {
    /// The options that differ from their defaults, each with a space before it, for a command.
    #[must_use]
    pub fn command_line(&self) -> String {
        // Any report with nothing but a filter will do.
        let params = Params {
            filter: self.clone(),
            options: StatsOptions::default(),
        };
        let options = Request::Stats(params).option_words();
        options.iter().flat_map(|option| [" ", option]).collect()
    }

    /// All restrictions as one query.
    #[must_use]
    pub fn query(&self) -> Query {
        let live = self.live.clone().map(Query::live_at);
        self.queries
            .iter()
            .cloned()
            .chain(live)
            .fold(Query::default(), Query::and)
    }

    /// The selected blocks of a profile.
    #[must_use]
    pub fn scope<'a>(&self, profile: &'a Profile) -> Scope<'a> {
        // A query about own code, or with hidden functions, is about the stacks that the report shows.
        let profile = if self.keep_recursion {
            profile.with_recursion()
        } else {
            profile
        };
        Scope::new(profile, &self.query(), self.estimator)
    }
}
