//! Questions as SQL statements, which DataFusion, Ballista and DuckDB answer alike.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use heapline_profile::Query;

use crate::condition::{on_sites, quoted};

/// A property of runs or of sites to group by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// The service that the run belongs to.
    Service,
    /// The version of the service.
    Version,
    /// The day on which the run started.
    Day,
    /// The machine.
    Host,
    /// The program.
    Program,
    /// The function that allocates.
    Function,
    /// The file of the function.
    File,
    /// The module of the function.
    Module,
    /// The function and its place in the source.
    Site,
    /// The heap that blocks are allocated on.
    Space,
}

impl By {
    /// Its name, which is also that of its column.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Version => "version",
            Self::Day => "day",
            Self::Host => "host",
            Self::Program => "program",
            Self::Function => "function",
            Self::File => "file",
            Self::Module => "module",
            Self::Site => "site",
            Self::Space => "space",
        }
    }

    /// Returns true if all of a run has the same value.
    #[must_use]
    pub fn is_of_runs(self) -> bool {
        match self {
            Self::Service | Self::Version | Self::Day | Self::Host | Self::Program => true,
            Self::Function | Self::File | Self::Module | Self::Site | Self::Space => false,
        }
    }

    /// The column of `sites`, without nulls.
    fn of_sites(self) -> String {
        match self {
            Self::Site => "s.site".to_owned(),
            _ => format!("coalesce(s.{}, '')", self.name()),
        }
    }
}

/// The amount that is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Measure {
    /// Allocated bytes.
    #[default]
    Allocated,
    /// Bytes that are live at the peak of the run.
    LiveAtPeak,
    /// Bytes that are live at the end of the run.
    LiveAtEnd,
    /// Bytes that are promoted to the major heap.
    Promoted,
    /// Allocated blocks.
    Blocks,
}

impl Measure {
    /// The column of its estimate, in both `sites` and `runs`.
    fn column(self) -> &'static str {
        match self {
            Self::Allocated => "allocated_bytes",
            Self::LiveAtPeak => "live_at_peak_bytes",
            Self::LiveAtEnd => "live_at_end_bytes",
            Self::Promoted => "promoted_bytes",
            Self::Blocks => "allocated_blocks",
        }
    }

    /// Its unit.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            _ => "bytes",
        }
    }

    /// A title.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Allocated => "Allocated",
            Self::LiveAtPeak => "Live at peak",
            Self::LiveAtEnd => "Live at end",
            Self::Promoted => "Promoted",
            Self::Blocks => "Allocated blocks",
        }
    }
}

/// The amounts and runs that a question is about.
#[derive(Args, Clone, Debug, Default)]
pub struct Subject {
    /// Select the amount that is compared
    #[arg(long, value_enum, default_value_t, value_name = "AMOUNT")]
    pub measure: Measure,
    /// Count only sites that match this query, such as 'module = "Parser*"' [default: all]
    #[arg(long = "where", value_name = "QUERY")]
    pub condition: Option<Query>,
    /// Take only runs of this service; may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    pub service: Vec<String>,
    /// Take only runs for which this SQL condition holds, such as "day >= '2026-11-01'" [default: all]
    #[arg(long, value_name = "SQL")]
    pub runs: Option<String>,
}

/// A question: the subject, in groups.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Its subject.
    pub subject: &'a Subject,
    /// The properties that make a group; those of runs first.
    pub by: &'a [By],
    /// Take only runs with one of these values of the property.
    pub only: Option<(By, Vec<String>)>,
}

impl Question<'_> {
    fn of_runs(&self) -> impl Iterator<Item = By> {
        self.by.iter().copied().filter(|by| by.is_of_runs())
    }

    fn of_sites(&self) -> impl Iterator<Item = By> {
        self.by.iter().copied().filter(|by| !by.is_of_runs())
    }

    /// The statement that counts the runs of each group of runs, and says when the first one started.
    #[must_use]
    pub fn runs_statement(&self) -> String {
        let keys: Vec<&str> = self.of_runs().map(By::name).collect();
        let select = keys.iter().fold(String::new(), |mut text, key| {
            // Writing to a string does not fail.
            let _ = write!(text, "{key}, ");
            text
        });
        let group = match keys.is_empty() {
            true => String::new(),
            false => format!("\ngroup by {}", keys.join(", ")),
        };
        format!(
            "with chosen as ({})\nselect {select}count(*) as runs, min(started_us) as started_us\nfrom chosen{group}",
            self.chosen()
        )
    }

    /// The statement that has a row for each group in which some run has a value: the number of such
    /// runs, and the mean, the variance and the mean sampling variance of their values.
    pub fn groups_statement(&self) -> anyhow::Result<String> {
        let mut keys: Vec<&str> = self.by.iter().map(|by| by.name()).collect();
        let labels = match keys.contains(&"site") {
            true => {
                ", min(site_function) as site_function, min(site_file) as site_file, min(site_line) as site_line"
            }
            false => "",
        };
        let group = match keys.is_empty() {
            true => String::new(),
            false => format!("\ngroup by {}", keys.join(", ")),
        };
        keys.push("count(*) as present");
        Ok(format!(
            "with chosen as ({}),\nper_run as ({})\n\
             select {}, avg(value) as mean, var_samp(value) as variance, \
             avg(sampling_variance) as sampling_variance{labels}\nfrom per_run{group}",
            self.chosen(),
            self.per_run()?,
            keys.join(", "),
        ))
    }

    /// The runs that the question is about.
    fn chosen(&self) -> String {
        let mut columns = vec!["run".to_owned(), "started_us".to_owned()];
        columns.extend(
            self.of_runs()
                .map(|by| format!("coalesce({0}, '') as {0}", by.name())),
        );
        if self.is_about_whole_runs() {
            let column = self.subject.measure.column();
            columns.push(format!("{column}, {column}_variance"));
        }
        let mut conditions = Vec::new();
        if !self.subject.service.is_empty() {
            conditions.push(is_one_of("service", &self.subject.service));
        }
        if let Some((by, values)) = &self.only {
            conditions.push(is_one_of(&format!("coalesce({}, '')", by.name()), values));
        }
        if let Some(condition) = &self.subject.runs {
            conditions.push(format!("({condition})"));
        }
        let condition = match conditions.is_empty() {
            true => String::new(),
            false => format!(" where {}", conditions.join(" and ")),
        };
        format!("select {} from runs{condition}", columns.join(", "))
    }

    /// Returns true if the totals of runs are enough.
    fn is_about_whole_runs(&self) -> bool {
        let is_all = self.subject.condition.as_ref().is_none_or(Query::is_all);
        is_all && self.of_sites().next().is_none()
    }

    /// The value of each group in each run that has one.
    fn per_run(&self) -> anyhow::Result<String> {
        let column = self.subject.measure.column();
        let mut select: Vec<String> = self.of_runs().map(|by| by.name().to_owned()).collect();
        if self.is_about_whole_runs() {
            select.push(format!(
                "{column} as value, {column}_variance as sampling_variance"
            ));
            return Ok(format!("select {} from chosen", select.join(", ")));
        }
        let mut group: Vec<String> = self
            .of_runs()
            .map(|by| format!("c.{}", by.name()))
            .collect();
        group.push("s.run".to_owned());
        select.clone_from(&group);
        for by in self.of_sites() {
            select.push(format!("{} as {}", by.of_sites(), by.name()));
            group.push(by.of_sites());
        }
        if self.by.contains(&By::Site) {
            select.push("min(s.function) as site_function, min(s.file) as site_file, min(s.line) as site_line".to_owned());
        }
        let condition = match &self.subject.condition {
            Some(query) => on_sites(query)?,
            None => None,
        };
        let condition =
            condition.map_or_else(String::new, |condition| format!("\n  where {condition}"));
        Ok(format!(
            "\n  select {}, sum(s.{column}) as value, sum(s.{column}_variance) as sampling_variance\n  \
             from sites s join chosen c on c.run = s.run{condition}\n  group by {}",
            select.join(", "),
            group.join(", ")
        ))
    }
}

fn is_one_of(column: &str, values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    format!("{column} in ({})", values.join(", "))
}
