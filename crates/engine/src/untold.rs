//! Refuses what a source does not tell, in place of numbers that mean nothing.

use clap::ValueEnum;
use heapline_profile::query::{TimeError, TimePoint};
use heapline_profile::reports::{HotspotOptions, Measure, SeriesOptions, SortBy, SummaryOptions};
use heapline_profile::{GroupBy, Profile, Query};

use crate::error::{EngineError, ErrorKind};
use crate::filter::Filter;

/// How many moments of the run a report is about by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moments {
    One,
    Many,
}

impl Filter {
    /// Refuses queries about what the source does not tell.
    pub fn check(&self, profile: &Profile) -> Result<(), EngineError> {
        self.check_for(profile, Moments::One)
    }

    pub(crate) fn check_for(&self, profile: &Profile, moments: Moments) -> Result<(), EngineError> {
        if self.keep_recursion && profile.lacks_recursion() {
            return Err(EngineError::parameter(
                "keep-recursion",
                "true",
                "the trace was read from its index, or is larger than memory, so that recursive calls are not known; use \
                 --no-index and a larger --memory",
            ));
        }
        check_query("where", &self.query(), profile, moments)
    }
}

/// Refuses the query of an option if it is about what the source does not tell.
pub(crate) fn check_query(
    option: &str,
    query: &Query,
    profile: &Profile,
    moments: Moments,
) -> Result<(), EngineError> {
    query
        .check_times(profile)
        .map_err(|error| EngineError::parameter(option, query.text(), error.to_string()))?;
    match query.untold(profile.tells(), moments == Moments::Many) {
        None => Ok(()),
        Some(untold) => {
            let message = format!("cannot select `{}`: {untold}", query.text());
            Err(EngineError::parameter(option, query.text(), message))
        }
    }
}

/// Refuses the time of an option if it is after the end of the run.
pub fn check_time(option: &str, time: &TimePoint, profile: &Profile) -> Result<(), EngineError> {
    let outside =
        |error: TimeError| EngineError::parameter(option, &time.to_string(), error.to_string());
    time.check(profile).map_err(outside)
}

/// Refuses groups that the source does not tell.
pub(crate) fn check_groups(by: GroupBy, profile: &Profile) -> Result<(), EngineError> {
    let tells = profile.tells();
    let thing = match by {
        GroupBy::Size if !tells.sizes => "the sizes of blocks",
        GroupBy::Age if !tells.lifetimes => "when blocks died",
        GroupBy::Domain if !tells.lanes => "domains",
        _ => return Ok(()),
    };
    let message = format!(
        "cannot group by {}: this source does not tell {thing}",
        by.name()
    );
    Err(EngineError::parameter("by", by.name(), message))
}

/// Refuses reports that need the life of each block.
pub fn check_lifetimes(report: &str, profile: &Profile) -> Result<(), EngineError> {
    if profile.tells().lifetimes {
        return Ok(());
    }
    Err(EngineError::new(
        ErrorKind::NotTold,
        format!(
            "cannot show {report}: this source has snapshots of live memory, \
             and does not tell when blocks were allocated and died"
        ),
    ))
}

/// Refuses a report on the garbage collector if the source does not tell of it.
pub(crate) fn check_collections(profile: &Profile) -> Result<(), EngineError> {
    if !profile.collections().is_empty() {
        return Ok(());
    }
    let header = profile.header();
    let reason = if header.runtime.ocaml_parameters().is_none() {
        "this program has none"
    } else if header.format == "memtrace" {
        "this trace has no collections: it was recorded by memtrace or an older heapline"
    } else {
        "this source does not tell when it ran"
    };
    Err(EngineError::new(
        ErrorKind::NotTold,
        format!("cannot show the garbage collector: {reason}"),
    ))
}

/// Refuses measures that the source does not tell.
pub(crate) fn check_series(options: &SeriesOptions, profile: &Profile) -> Result<(), EngineError> {
    if let Some(by) = options.by {
        check_groups(by, profile)?;
    }
    let tells = profile.tells();
    let thing = match options.measure {
        measure if measure.is_promotion() && !tells.promotions => "promotions",
        Measure::AllocationRate if !tells.lifetimes => "when blocks were allocated",
        _ => return Ok(()),
    };
    let name = name_of(&options.measure);
    let message = format!("cannot measure {name}: this source does not tell {thing}");
    Err(EngineError::parameter("measure", &name, message))
}

/// Refuses groups and queries of a summary that the source does not tell.
pub fn check_summary(
    options: &SummaryOptions,
    filter: &Filter,
    profile: &Profile,
) -> Result<(), EngineError> {
    check_groups(options.by, profile)?;
    filter.check(profile)
}

/// Refuses groups and orders that the source does not tell.
pub(crate) fn check_hotspots(
    options: &HotspotOptions,
    profile: &Profile,
) -> Result<(), EngineError> {
    check_groups(options.by, profile)?;
    if options.sort != SortBy::Blocks || profile.tells().sizes {
        return Ok(());
    }
    let name = name_of(&options.sort);
    let message = "cannot sort by blocks: this source does not tell how many were allocated";
    Err(EngineError::parameter("sort", &name, message))
}

fn name_of(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}
