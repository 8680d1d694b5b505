//! `heapline diff`.

use std::path::PathBuf;

use anyhow::Context;
use clap::ValueEnum;
use heapline_profile::query::Window;
use heapline_profile::reports::{self, Compared, DiffOptions, NamedDiff, Normalise, WindowError};
use heapline_profile::{Profile, Scope};
use heapline_text::units::seconds;
use heapline_text::{self as text, Context as TextContext, Screen};

use crate::input::Input;
use crate::question::{By, Filter, Json, Look};

/// Show what changed between two traces, or two parts of one, and whether it is real
///
/// A change is real if sampling alone does not explain it. What two runs do differently by chance
/// is not known to Heapline.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline diff before.ctf after.ctf
  heapline diff before.ctf after.ctf --of peak --by site
  heapline diff before.ctf after.ctf --per allocated
  heapline diff trace.ctf --window 0s..10s --window 10s..20s
  heapline diff trace.ctf --window ..50% --window 50%.. --of end
  heapline diff before.ctf after.ctf --compat prof-spacetime")]
pub(crate) struct Args {
    /// The trace before: a .ctf file, plain or compressed (.gz, .zst), or - for standard input
    #[arg(value_name = "BEFORE")]
    before: PathBuf,

    /// The trace after
    #[arg(value_name = "AFTER", required_unless_present = "windows")]
    after: Option<PathBuf>,

    /// Two parts of one trace instead: 0s..10s, ..peak, 50%..; give it twice
    #[arg(long = "window", value_name = "FROM..TO", conflicts_with = "after")]
    windows: Vec<String>,

    /// What is compared
    #[arg(long, value_enum, default_value_t = Of::Allocated)]
    of: Of,

    /// What a row is
    #[arg(long, value_enum, default_value_t = By::Function)]
    by: By,

    /// Scale what is after, to the same time or to the same words allocated in all
    #[arg(long, value_enum, conflicts_with = "windows")]
    per: Option<Per>,

    /// How many rows at most
    #[arg(long, default_value_t = 20, value_name = "N")]
    rows: usize,

    /// Only changes that are real
    #[arg(long)]
    only_real: bool,

    /// The table of another program
    #[arg(long, value_enum, conflicts_with_all = ["windows", "per", "of", "by"])]
    compat: Option<Compat>,

    /// Refuse damaged traces instead of showing what is intact
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    filter: Filter,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    json: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Of {
    /// What was allocated
    Allocated,
    /// What was alive at the peak of each trace
    Peak,
    /// What was alive at the end of each trace or window
    End,
}

impl Of {
    fn compared(self) -> Compared {
        match self {
            Self::Allocated => Compared::Allocated,
            Self::Peak => Compared::Peak,
            Self::End => Compared::End,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Per {
    /// The same time
    Time,
    /// The same words allocated
    Allocated,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compat {
    /// `prof_spacetime` compare: words and blocks alive at the end, and words allocated, per file
    ProfSpacetime,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        self.filter.query()?;
        let before = self.load(&self.before)?;
        match &self.after {
            Some(after) => {
                let profile = self.load(after)?;
                self.traces(&before, &profile, after, screen)
            }
            None => self.windows(&before, screen),
        }
    }

    fn load(&self, path: &std::path::Path) -> anyhow::Result<Profile> {
        let input = Input {
            trace: path.to_owned(),
            strict: self.strict,
        };
        self.filter.load(&input)
    }

    fn traces(
        &self,
        before: &Profile,
        after: &Profile,
        path: &std::path::Path,
        screen: Screen,
    ) -> anyhow::Result<()> {
        let (before, after) = (self.filter.scope(before)?, self.filter.scope(after)?);
        if self.compat.is_some() {
            let rows = reports::compare_files(&before, &after);
            return self.json.print(&rows, |rows| {
                text::compare_files(rows, &TextContext::new(screen))
            });
        }
        let scale = match self.per {
            None => 1.0,
            Some(Per::Time) => reports::scale(&before, &after, Normalise::Time),
            Some(Per::Allocated) => reports::scale(&before, &after, Normalise::Allocated),
        };
        let names = [
            self.before.display().to_string(),
            path.display().to_string(),
        ];
        let of = self.of.compared();
        let (before, after) = (of.of_trace(before), of.of_trace(after));
        self.print(&before, &after, scale, names, screen)
    }

    fn windows(&self, profile: &Profile, screen: Screen) -> anyhow::Result<()> {
        let [before, after] = &self.windows[..] else {
            anyhow::bail!("two parts are needed to compare; give --window twice");
        };
        let window = |text: &str| Window::parse(text).context("cannot understand --window");
        let (before, after) = (window(before)?, window(after)?);
        let scope = self.filter.scope(profile)?;
        let side = |window: &Window| {
            let side = self.of.compared().of_window(&scope, window);
            side.map_err(|error| match error {
                WindowError::Empty(_) => {
                    anyhow::anyhow!("{error}; the run lasts {}", seconds(profile.duration()))
                }
                WindowError::NoPeak => anyhow::anyhow!(
                    "a window has no peak of its own; --of end compares what is alive at its end"
                ),
            })
        };
        let names = [before.text().to_owned(), after.text().to_owned()];
        self.print(&side(&before)?, &side(&after)?, 1.0, names, screen)
    }

    fn print(
        &self,
        before: &Scope<'_>,
        after: &Scope<'_>,
        scale: f64,
        [before_name, after_name]: [String; 2],
        screen: Screen,
    ) -> anyhow::Result<()> {
        let options = DiffOptions {
            view: self.look.view(self.by)?,
            rows: if self.only_real {
                usize::MAX
            } else {
                self.rows
            },
            scale,
        };
        let mut diff = reports::diff(before, after, &options);
        if self.only_real {
            diff = diff.only_real(self.rows);
        }
        let report = NamedDiff {
            before_name,
            after_name,
            of: self.of.compared(),
            diff,
        };
        self.json.print(&report, |report| {
            text::diff(report, &TextContext::new(screen))
        })
    }
}
