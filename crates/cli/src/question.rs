//! What all reports are asked with: the trace, the query, the estimator, and how to look at it.

use std::path::Path;

use anyhow::Context;
use clap::{Args, ValueEnum};
use heapline_profile::query::{self, Pattern, TimePoint};
use heapline_profile::{Estimator, GroupBy, Profile, Query, Scope, StoreOptions, View};
use heapline_text::{self as text, Screen, Text};

use crate::input::Input;

/// Which blocks are meant, and how they are counted.
#[derive(Args, Clone, Debug)]
pub(crate) struct Question {
    #[command(flatten)]
    pub(crate) input: Input,

    #[command(flatten)]
    pub(crate) filter: Filter,
}

/// The part of a question that is not the trace.
#[derive(Args, Clone, Debug)]
pub(crate) struct Filter {
    /// Only these blocks, such as 'inside "Parser.*" and size >= 64KiB'; docs/query.md has the
    /// language. Given several times, all must hold
    #[arg(long = "where", short = 'w', value_name = "QUERY")]
    queries: Vec<String>,

    /// Only what is alive at a time: peak, end, 10s, 90%; short for --where 'live at TIME'
    #[arg(long, value_name = "TIME")]
    live: Option<String>,

    /// What a sampled block stands for
    #[arg(long, value_enum, default_value_t = EstimatorName::HorvitzThompson, hide_possible_values = false)]
    estimator: EstimatorName,

    /// Keep every frame of recursive calls, not only the first of each function (slower)
    #[arg(long)]
    keep_recursion: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EstimatorName {
    /// Its size over the probability that it is seen: the most precise
    HorvitzThompson,
    /// Its samples over the rate: the numbers of memtrace's tools and viewer
    Count,
}

impl Filter {
    /// No filter at all.
    pub(crate) fn with_estimator(estimator: EstimatorName) -> Self {
        Self {
            queries: Vec::new(),
            live: None,
            estimator,
            keep_recursion: false,
        }
    }

    pub(crate) fn estimator(&self) -> Estimator {
        match self.estimator {
            EstimatorName::HorvitzThompson => Estimator::HorvitzThompson,
            EstimatorName::Count => Estimator::Count,
        }
    }

    /// The query that all arguments together make.
    pub(crate) fn query(&self) -> anyhow::Result<Query> {
        let mut query = Query::default();
        for text in &self.queries {
            let one = Query::parse(text).context("cannot understand --where")?;
            query = query.and(one);
        }
        if let Some(live) = &self.live {
            let time = TimePoint::parse(live).context("cannot understand --live")?;
            query = query.and(Query::live_at(time, live));
        }
        Ok(query)
    }

    /// Loads a trace.
    pub(crate) fn load(&self, input: &Input) -> anyhow::Result<Profile> {
        let store = StoreOptions {
            recursion: self.keep_recursion,
        };
        let profile = input.load(heapline_formats::Options::default(), store)?;
        input.warn_of(profile.damage());
        if profile.shortened_stacks() > 0 {
            crate::error::warn(&format!(
                "{} has too many different stacks; only the outer part of some was kept",
                input.name()
            ));
        }
        Ok(profile)
    }

    pub(crate) fn scope<'a>(&self, profile: &'a Profile) -> anyhow::Result<Scope<'a>> {
        let query = self.query()?;
        warn_of_unmatched(&query, profile);
        Ok(Scope::new(profile, &query, self.estimator()).keep_recursion(self.keep_recursion))
    }

    /// The arguments again, for a command to type next.
    pub(crate) fn as_typed(&self) -> String {
        let mut text = String::new();
        for query in &self.queries {
            text += " --where ";
            text += &quoted(query);
        }
        if let Some(live) = &self.live {
            // As a condition: the command may have a `--live` of its own.
            text += " --where ";
            text += &quoted(&format!("live at {live}"));
        }
        if self.estimator == EstimatorName::Count {
            text += " --estimator count";
        }
        if self.keep_recursion {
            text += " --keep-recursion";
        }
        text
    }
}

impl Question {
    pub(crate) fn load(&self) -> anyhow::Result<Profile> {
        // A query that cannot be understood should not take a minute to be refused.
        self.filter.query()?;
        self.filter.load(&self.input)
    }

    pub(crate) fn scope<'a>(&self, profile: &'a Profile) -> anyhow::Result<Scope<'a>> {
        self.filter.scope(profile)
    }

    /// The command line of another report on the same trace with the same filter.
    fn suggest(&self, report: &str, arguments: &[&str]) -> String {
        command_line(
            report,
            &self.input.trace,
            &self.filter.as_typed(),
            arguments,
        )
    }

    /// Prints a report as JSON or as text.
    pub(crate) fn print<T: serde::Serialize>(
        &self,
        json: Json,
        screen: Screen,
        report: &T,
        render: impl FnOnce(&T, &text::Context<'_>) -> Text,
    ) -> anyhow::Result<()> {
        let suggest = |report: &str, arguments: &[&str]| self.suggest(report, arguments);
        let context = text::Context {
            screen,
            suggest: Some(&suggest),
        };
        json.print(report, |report| render(report, &context))
    }
}

/// A command line; `filter` is quoted already.
pub(crate) fn command_line(report: &str, trace: &Path, filter: &str, arguments: &[&str]) -> String {
    let mut line = format!("heapline {report} {}{filter}", quoted_path(trace));
    for argument in arguments {
        line.push(' ');
        line.push_str(&quoted(argument));
    }
    line
}

/// A name that nothing is called is most likely misspelt.
pub(crate) fn warn_of_unmatched(query: &Query, profile: &Profile) {
    for name in query.unmatched(profile) {
        crate::error::warn(&format!("the trace has no {name}"));
    }
}

/// Parses a share such as `1%` or `0.01`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    query::share(text).ok_or_else(|| "a share is from 0% to 100%".to_owned())
}

/// Quotes a text so that a shell takes it for one word.
pub(crate) fn quoted(text: &str) -> String {
    // No command line can have NUL; nothing else fails.
    let text = text.replace('\0', "");
    shlex::try_quote(&text).map_or_else(|_| text.clone(), Into::into)
}

/// Quotes a path for a shell. One that begins with `-` is not taken for a flag.
pub(crate) fn quoted_path(path: &Path) -> String {
    let text = path.display().to_string();
    if text.len() > 1 && text.starts_with('-') {
        quoted(&format!("./{text}"))
    } else {
        quoted(&text)
    }
}

/// How stacks and groups are looked at.
#[derive(Args, Clone, Debug)]
pub(crate) struct Look {
    /// Leave functions out of stacks; their memory is their callers'. A name with * and ?, or
    /// /REGEX/
    #[arg(long, value_name = "PATTERN")]
    hide: Vec<String>,

    /// Tell anonymous functions apart by their lines
    #[arg(long)]
    split_anonymous: bool,
}

impl Look {
    pub(crate) fn view(&self, by: By) -> anyhow::Result<View> {
        Ok(View {
            by: by.group(),
            hidden: self
                .hide
                .iter()
                .map(|text| pattern(text).context("cannot understand --hide"))
                .collect::<anyhow::Result<_>>()?,
            split_anonymous: self.split_anonymous,
        })
    }
}

/// `Parser.*` or `/regex/`.
pub(crate) fn pattern(text: &str) -> anyhow::Result<Pattern> {
    Pattern::parse(text).with_context(|| format!("{text} is not a regular expression"))
}

/// What blocks are put together by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// The place of the allocation in the source
    Site,
    /// Its address: tells instances of functors and inlined copies apart
    Address,
    /// The function that allocates
    Function,
    /// Its file
    File,
    /// Its module
    Module,
    /// The domain
    Domain,
    /// The size of blocks, in powers of two
    Size,
    /// How long blocks lived, in powers of ten
    Age,
}

impl By {
    pub(crate) fn group(self) -> GroupBy {
        match self {
            Self::Site => GroupBy::Site,
            Self::Address => GroupBy::Address,
            Self::Function => GroupBy::Function,
            Self::File => GroupBy::File,
            Self::Module => GroupBy::Module,
            Self::Domain => GroupBy::Domain,
            Self::Size => GroupBy::Size,
            Self::Age => GroupBy::Age,
        }
    }
}

/// Whether people or programs read the answer.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Json {
    /// Print JSON; docs/json.md describes it
    #[arg(long)]
    pub(crate) json: bool,
}

impl Json {
    /// Prints a report as JSON, or as the text that `render` makes of it.
    pub(crate) fn print<T: serde::Serialize>(
        self,
        report: &T,
        render: impl FnOnce(&T) -> Text,
    ) -> anyhow::Result<()> {
        if self.json {
            let mut text = serde_json::to_vec_pretty(report)?;
            text.push(b'\n');
            crate::output::to_stdout(&text)
        } else {
            crate::output::to_stdout_styled(&render(report))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{quoted, quoted_path};

    /// The shell that people type into, not our idea of it.
    #[test]
    fn a_shell_takes_it_for_one_word() {
        for text in [
            "plain.ctf",
            "",
            "it's",
            "M.f'",
            "\"both\" 'quotes'",
            "$(touch x) `y` $HOME \\ !! ^a^b ~ {a,b} * ?",
            "two\nlines",
            "é ≤ 日本",
        ] {
            let script = format!("printf '%s.' {}", quoted(text));
            let output = std::process::Command::new("sh")
                .args(["-c", &script])
                .output();
            let printed = output.map(|output| output.stdout).unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(&printed), format!("{text}."));
        }
    }

    #[test]
    fn paths_are_not_flags() {
        assert_eq!(quoted_path("-x.ctf".as_ref()), "./-x.ctf");
        assert_eq!(quoted_path("-".as_ref()), "-");
    }
}
