//! The reports: their requests, their answers, and how one becomes the other. A new report is added
//! here.

use clap::Subcommand;
use heapline_profile::OptionError;
use heapline_profile::reports::{
    self, DiffOptions, Flame, FlameOptions, Heatmap, HeatmapOptions, HotspotOptions, Hotspots,
    LeakOptions, Leaks, NamedDiff, Series, SeriesOptions, Stats, StatsOptions, Summary,
    SummaryOptions, Tree, TreeOptions, WindowError,
};
use serde::Serialize;

use crate::answer::Info;
use crate::ask::Ask;
use crate::cancel::Cancel;
use crate::complete::{CompleteOptions, Completion};
use crate::error::{EngineError, ErrorKind};
use crate::filter::Filter;
use crate::request::Params;
use crate::session::Session;

/// A report and its options.
///
/// ```
/// use heapline_engine::Request;
///
/// let request = Request::from_pairs("hotspots", [("rows", "20"), ("where", "size > 1k")])?;
/// assert_eq!(request.key(), "hotspots?where=size+%3E+1k");
/// let command = request.command_line("trace.ctf", None);
/// assert_eq!(command.unwrap(), "heapline hotspots trace.ctf --where 'size > 1k'");
/// assert!(Request::from_pairs("hotspots", [("row", "20")]).is_err());
/// # Ok::<(), heapline_engine::EngineError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Subcommand)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// The properties of the trace.
    Info,
    /// The totals and the largest groups.
    Summary(Params<SummaryOptions>),
    /// A table of groups.
    Hotspots(Params<HotspotOptions>),
    /// A call tree.
    Tree(Params<TreeOptions>),
    /// A call tree in columns, for flame graphs.
    Flame(Params<FlameOptions>),
    /// Memory over time.
    Series(Params<SeriesOptions>),
    /// Sizes and lifetimes.
    Stats(Params<StatsOptions>),
    /// Lifetimes by the time of allocation.
    Heatmap(Params<HeatmapOptions>),
    /// Groups that grow.
    Leaks(Params<LeakOptions>),
    /// A comparison with another trace, or of two windows.
    Diff(Params<DiffOptions>),
    /// Names that complete what is being typed.
    Complete(CompleteOptions),
}

/// A report of any kind. It is serialised as the report itself.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[expect(
    clippy::large_enum_variant,
    reason = "one report at a time, and never in a list"
)]
pub enum Report {
    /// The properties of the trace.
    Info(Info),
    /// The totals and the largest groups.
    Summary(Summary),
    /// A table of groups.
    Hotspots(Hotspots),
    /// A call tree.
    Tree(Tree),
    /// A call tree in columns.
    Flame(Flame),
    /// Memory over time.
    Series(Series),
    /// Sizes and lifetimes.
    Stats(Stats),
    /// Lifetimes by the time of allocation.
    Heatmap(Heatmap),
    /// Groups that grow.
    Leaks(Leaks),
    /// A comparison.
    Diff(NamedDiff),
    /// Names that complete what is being typed.
    Completion(Completion),
}

impl Request {
    /// Computes the report.
    pub(crate) fn report(&self, session: &Session, cancel: &Cancel) -> Result<Report, EngineError> {
        Ok(match self {
            Self::Info => Report::Info(session.info()),
            Self::Summary(params) => Report::Summary(params.ask(session, cancel)?),
            Self::Hotspots(params) => Report::Hotspots(params.ask(session, cancel)?),
            Self::Tree(params) => Report::Tree(params.ask(session, cancel)?),
            Self::Flame(params) => Report::Flame(params.ask(session, cancel)?),
            Self::Series(params) => Report::Series(params.ask(session, cancel)?),
            Self::Stats(params) => Report::Stats(params.ask(session, cancel)?),
            Self::Heatmap(params) => Report::Heatmap(params.ask(session, cancel)?),
            Self::Leaks(params) => Report::Leaks(params.ask(session, cancel)?),
            Self::Diff(params) => Report::Diff(params.ask(session, cancel)?),
            Self::Complete(options) => {
                Report::Completion(options.complete(session.names(options.kind)))
            }
        })
    }
}

/// Reports that need nothing but the selected blocks.
macro_rules! reports_of_scope {
    ($($options:ty => $report:ty: $function:expr $(, validate $validate:expr)?;)*) => {$(
        impl Ask for $options {
            type Report = $report;

            $(fn validate(&self) -> Result<(), OptionError> {
                $validate(self)
            })?

            fn ask(
                &self,
                session: &Session,
                filter: &Filter,
                cancel: &Cancel,
            ) -> Result<Self::Report, EngineError> {
                let scope = filter.scope(session.profiles().trace);
                cancel.check()?;
                Ok($function(&scope, self))
            }
        }
    )*};
}

reports_of_scope! {
    SummaryOptions => Summary: reports::summary;
    HotspotOptions => Hotspots: reports::hotspots;
    TreeOptions => Tree: |scope, options: &Self| {
        reports::tree(scope, &options.clone().with_implied_sites())
    }, validate Self::validate;
    FlameOptions => Flame: |scope, options: &Self| {
        let tree = options.tree.clone().with_implied_sites();
        reports::flame(scope, &FlameOptions { tree, ..*options })
    }, validate |options: &Self| options.tree.validate();
    SeriesOptions => Series: reports::series, validate Self::validate;
    StatsOptions => Stats: reports::stats;
    HeatmapOptions => Heatmap: reports::heatmap;
    LeakOptions => Leaks: reports::leaks;
}

impl Ask for DiffOptions {
    type Report = NamedDiff;

    fn validate(&self) -> Result<(), OptionError> {
        Self::validate(self)
    }

    fn ask(
        &self,
        session: &Session,
        filter: &Filter,
        cancel: &Cancel,
    ) -> Result<Self::Report, EngineError> {
        let profiles = session.profiles();
        let after = filter.scope(profiles.trace);
        cancel.check()?;
        if let [first, second] = &self.window[..] {
            let diff = reports::diff_windows(&after, first, second, self).map_err(|error| {
                let value = match &error {
                    WindowError::Empty(text) => text,
                    WindowError::NoPeak => "",
                };
                let message = match &error {
                    WindowError::Empty(_) => {
                        format!("{error}; the run lasts {}s", after.profile().duration())
                    }
                    WindowError::NoPeak => error.to_string(),
                };
                EngineError::parameter("window", value, message)
            })?;
            return Ok(NamedDiff {
                before_name: first.text().to_owned(),
                after_name: second.text().to_owned(),
                of: self.of,
                diff,
            });
        }
        let (Some(profile), Some(trace)) = (profiles.against, session.against()) else {
            return Err(EngineError::new(
                ErrorKind::NoOtherTrace,
                "nothing to compare with; give two windows, or start the viewer \
                 with --against and another trace",
            ));
        };
        let before = filter.scope(profile);
        cancel.check()?;
        Ok(NamedDiff {
            before_name: trace.path.clone(),
            after_name: session.trace().path.clone(),
            of: self.of,
            diff: reports::diff_traces(before, after, self),
        })
    }
}
