//! Computes the reports on traces.

use heapline_profile::query::TimeError;
use heapline_profile::reports::{
    self, Blocks, BlocksOptions, Comparison, DiffOptions, DiffSides, DiffTreeOptions, Flame,
    FlameOptions, Gc, GcOptions, Heatmap, HeatmapOptions, HotspotOptions, Hotspots, LeakOptions,
    Leaks, NamedDiff, NamedDiffTree, PeakOptions, PeakReport, Series, SeriesOptions, Source,
    SourceOptions, Stats, StatsOptions, Summary, SummaryOptions, Temporary, TemporaryOptions, Tree,
    TreeOptions, WantedSource, WindowError,
};
use heapline_profile::{GroupBy, OptionError, Scope};

use crate::ask::Ask;
use crate::cancel::Cancel;
use crate::error::{EngineError, ErrorKind};
use crate::filter::Filter;
use crate::session::Session;
use crate::untold::{
    Moments, check_collections, check_groups, check_hotspots, check_lifetimes, check_query,
    check_series,
};

/// The selected blocks of the trace.
fn selected<'a>(
    session: &'a Session,
    filter: &Filter,
    moments: Moments,
    cancel: &Cancel,
) -> Result<Scope<'a>, EngineError> {
    let profile = session.profiles().trace;
    filter.check_for(profile, moments)?;
    let scope = filter.scope(profile);
    cancel.check()?;
    Ok(scope)
}

/// Reports that need nothing but the selected blocks.
macro_rules! reports_of_scope {
    ($(
        $options:ty => $report:ty, $moments:ident: $function:expr
        $(, validate $validate:expr)?, check $check:expr;
    )*) => {$(
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
                $check(self, session.profiles().trace)?;
                let scope = selected(session, filter, Moments::$moments, cancel)?;
                Ok($function(&scope, self))
            }
        }
    )*};
}

reports_of_scope! {
    SummaryOptions => Summary, One: reports::summary, check |options: &Self, profile| {
        check_groups(options.by, profile)
    };
    HotspotOptions => Hotspots, One: reports::hotspots, check check_hotspots;
    TreeOptions => Tree, One: |scope, options: &Self| {
        reports::tree(scope, &options.clone().with_implied_sites())
    }, validate Self::validate, check |options: &Self, profile| check_groups(options.by, profile);
    FlameOptions => Flame, One: |scope, options: &Self| {
        let tree = options.tree.clone().with_implied_sites();
        reports::flame(scope, &FlameOptions { tree, ..*options })
    }, validate |options: &Self| options.tree.validate(), check |options: &Self, profile| {
        check_groups(options.tree.by, profile)
    };
    StatsOptions => Stats, Many: reports::stats, check |_, profile| {
        check_lifetimes("sizes and lifetimes", profile)
    };
    HeatmapOptions => Heatmap, Many: reports::heatmap, check |_, profile| {
        check_lifetimes("lifetimes", profile)
    };
    BlocksOptions => Blocks, Many: reports::blocks, check |_, profile| {
        check_lifetimes("single blocks", profile)
    };
    TemporaryOptions => Temporary, Many: reports::temporary, check |_, profile| {
        check_lifetimes("what died soon", profile)
    };
}

impl Ask for LeakOptions {
    type Report = Leaks;

    fn ask(
        &self,
        session: &Session,
        filter: &Filter,
        cancel: &Cancel,
    ) -> Result<Self::Report, EngineError> {
        check_lifetimes("leaks", session.profiles().trace)?;
        let scope = selected(session, filter, Moments::Many, cancel)?;
        let holders = session.holders();
        cancel.check()?;
        Ok(reports::leaks(&scope, self, holders.as_deref()))
    }
}

impl Ask for SeriesOptions {
    type Report = Series;

    fn validate(&self) -> Result<(), OptionError> {
        Self::validate(self)
    }

    fn ask(
        &self,
        session: &Session,
        filter: &Filter,
        cancel: &Cancel,
    ) -> Result<Self::Report, EngineError> {
        check_series(self, session.profiles().trace)?;
        let scope = selected(session, filter, Moments::Many, cancel)?;
        let outside = |error: TimeError| EngineError::parameter("from", "", error.to_string());
        reports::series(&scope, self).map_err(outside)
    }
}

impl Ask for PeakOptions {
    type Report = PeakReport;

    fn ask(
        &self,
        session: &Session,
        filter: &Filter,
        cancel: &Cancel,
    ) -> Result<Self::Report, EngineError> {
        let profile = session.profiles().trace;
        check_groups(self.by, profile)?;
        for query in &self.without {
            check_query("without", query, profile, Moments::Many)?;
        }
        let scope = selected(session, filter, Moments::Many, cancel)?;
        reports::peak(&scope, self).map_err(|error| window_error(&error.into()))
    }
}

impl Ask for GcOptions {
    type Report = Gc;

    fn ask(
        &self,
        session: &Session,
        filter: &Filter,
        cancel: &Cancel,
    ) -> Result<Self::Report, EngineError> {
        check_collections(session.profiles().trace)?;
        let scope = selected(session, filter, Moments::One, cancel)?;
        reports::gc(&scope, self).map_err(|error| window_error(&error.into()))
    }
}

impl Ask for SourceOptions {
    type Report = Source;

    fn validate(&self) -> Result<(), OptionError> {
        Self::validate(self)
    }

    fn ask(
        &self,
        session: &Session,
        filter: &Filter,
        cancel: &Cancel,
    ) -> Result<Self::Report, EngineError> {
        check_groups(GroupBy::Site, session.profiles().trace)?;
        let scope = selected(session, filter, Moments::One, cancel)?;
        let lookup = |wanted: WantedSource<'_>| session.find_source(wanted);
        reports::source(&scope, self, &lookup)
            .map_err(|error| EngineError::parameter("name", &self.name, error.to_string()))
    }
}

/// The error of a window that a report cannot use.
fn window_error(error: &WindowError) -> EngineError {
    let value = match error {
        WindowError::Time(TimeError::EmptyWindow(window, _)) => window,
        _ => "",
    };
    EngineError::parameter("window", value, error.to_string())
}

/// Two traces or windows that are compared, and their names.
struct Compared<'a> {
    before_name: String,
    after_name: String,
    sides: Comparison<'a>,
}

/// Selects the blocks of both sides of a comparison.
fn compared<'a>(
    session: &'a Session,
    filter: &Filter,
    options: &DiffSides,
    by: GroupBy,
    cancel: &Cancel,
) -> Result<Compared<'a>, EngineError> {
    let profiles = session.profiles();
    for profile in [Some(profiles.trace), profiles.against]
        .into_iter()
        .flatten()
    {
        check_groups(by, profile)?;
        filter.check_for(profile, Moments::Many)?;
    }
    let after = filter.scope(profiles.trace);
    cancel.check()?;
    if let [first, second] = &options.window[..] {
        let sides = options.of_windows(&after, first, second);
        return Ok(Compared {
            before_name: first.text().to_owned(),
            after_name: second.text().to_owned(),
            sides: sides.map_err(|error| window_error(&error))?,
        });
    }
    let (Some(profile), Some(path)) = (profiles.against, session.against_path()) else {
        return Err(EngineError::new(
            ErrorKind::NoOtherTrace,
            "nothing to compare with; give two windows, or start the viewer \
             with --against and another trace",
        ));
    };
    let before = filter.scope(profile);
    cancel.check()?;
    Ok(Compared {
        before_name: path.to_owned(),
        after_name: session.path().to_owned(),
        sides: options.of_traces(before, after),
    })
}

impl Ask for DiffOptions {
    type Report = NamedDiff;

    fn validate(&self) -> Result<(), OptionError> {
        self.sides.validate()
    }

    fn ask(
        &self,
        session: &Session,
        filter: &Filter,
        cancel: &Cancel,
    ) -> Result<Self::Report, EngineError> {
        let compared = compared(session, filter, &self.sides, self.by, cancel)?;
        Ok(NamedDiff {
            before_name: compared.before_name,
            after_name: compared.after_name,
            of: self.sides.of,
            diff: reports::diff_sides(&compared.sides, self),
        })
    }
}

impl Ask for DiffTreeOptions {
    type Report = NamedDiffTree;

    fn validate(&self) -> Result<(), OptionError> {
        self.sides.validate()
    }

    fn ask(
        &self,
        session: &Session,
        filter: &Filter,
        cancel: &Cancel,
    ) -> Result<Self::Report, EngineError> {
        let compared = compared(session, filter, &self.sides, self.by, cancel)?;
        Ok(NamedDiffTree {
            before_name: compared.before_name,
            after_name: compared.after_name,
            of: self.sides.of,
            tree: reports::diff_tree(&compared.sides, self),
        })
    }
}
