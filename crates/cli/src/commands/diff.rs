//! `heapline diff`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use heapline_engine::{Cancel, Filter, Params, Request};
use heapline_profile::reports::{self, DiffOptions, DiffTreeOptions};
use heapline_profile::{GroupBy, Profile, Share};
use heapline_text::{self as text, Context, Screen, Text};

use super::prof_spacetime;
use crate::input::{Input, Reading};
use crate::question::{Json, ask, load, warn_of_unmatched, with_selection};
use crate::snapshot_file::{SnapshotFile, is_snapshot_file};

/// Show what changed between two traces, two parts of one, or two heap snapshots
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
  heapline diff before.ctf after.ctf --tree --min 2%
  heapline diff before.heap after.heap
  heapline diff before.ctf after.ctf --compat prof_spacetime")]
pub(crate) struct Args {
    /// The trace before: a .ctf file or a Spacetime profile, plain or compressed (.gz, .zst), or - for standard input
    #[arg(value_name = "BEFORE")]
    before: PathBuf,

    /// The trace after
    #[arg(value_name = "AFTER", conflicts_with = "window")]
    after: Option<PathBuf>,

    #[command(flatten)]
    options: DiffOptions,

    /// Show the changes as a call tree
    #[arg(long, conflicts_with_all = ["rows", "only_real", "compat"])]
    tree: bool,

    /// Merge nodes of the tree below this share of before and after together into "other"
    #[arg(
        long,
        default_value = "1%",
        value_name = "SHARE",
        requires = "tree",
        hide_short_help = true
    )]
    min: Share,

    /// Print the table of another program
    #[arg(long, value_enum, conflicts_with_all = ["window", "per", "of", "by"], hide_short_help = true)]
    compat: Option<Compat>,

    #[command(flatten)]
    filter: Filter,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    json: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compat {
    /// `prof_spacetime compare`: words and blocks alive at the end, and words allocated, per file
    #[value(name = "prof_spacetime", alias = "prof-spacetime")]
    ProfSpacetime,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.after.is_some() || !self.options.sides.window.is_empty(),
            "nothing to compare {} with; give a second trace or snapshot, or two parts of a trace, as with \
             --window 0s..10s --window 10s..20s",
            self.before.display()
        );
        if let Some(after) = &self.after
            && is_snapshot_file(&self.before)
            && is_snapshot_file(after)
        {
            return self.diff_snapshots(after, screen);
        }
        let selected = |report: Text| with_selection(&self.filter, report, screen);
        let before = self.reading.input(&self.before);
        let after = self.after.as_ref().map(|after| self.reading.input(after));
        if self.compat.is_some()
            && let Some(after) = &after
        {
            let is_plain = !self.json.is_json() && self.filter.query().is_all();
            if is_plain && before.is_spacetime() && after.is_spacetime() {
                return prof_spacetime::compare(&before, after);
            }
            let [before, after] = [self.load(&before)?, self.load(after)?];
            let [before, after] = [&before, &after].map(|profile| self.filter.scope(profile));
            let rows = reports::compare_files(&before, &after);
            return self.json.print(&rows, |rows| {
                selected(text::compare_files(rows, &Context::new(screen)))
            });
        }
        // With windows there is one trace; otherwise the first is what the second is compared with.
        let (trace, against) = match &after {
            Some(after) => (after, Some(&before)),
            None => (&before, None),
        };
        if self.tree {
            let report = ask(&self.filter, &self.tree_options()?, trace, against)?;
            return self.json.print(&report, |report| {
                selected(text::diff_tree(report, &Context::new(screen)))
            });
        }
        let report = ask(&self.filter, &self.options, trace, against)?;
        self.json.print(&report, |report| {
            selected(text::diff(report, &Context::new(screen)))
        })
    }

    /// The options of the comparison as a call tree.
    fn tree_options(&self) -> anyhow::Result<DiffTreeOptions> {
        let by = self.options.by;
        anyhow::ensure!(
            by.is_of_frames() && by != GroupBy::Address,
            "--tree cannot be grouped by {}; use --by function, site, file, module or crate",
            by.name()
        );
        Ok(DiffTreeOptions {
            sides: self.options.sides.clone(),
            by,
            min: self.min,
            look: self.options.look.clone(),
            ..DiffTreeOptions::default()
        })
    }

    /// Compares two heap snapshots.
    fn diff_snapshots(&self, after: &Path, screen: Screen) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.compat.is_none() && !self.tree,
            "--compat and --tree are about traces, and {} is a heap snapshot",
            self.before.display()
        );
        let request = Request::Diff(Params {
            filter: self.filter.clone(),
            options: self.options.clone(),
        });
        let [before, after] = [&self.before, after].map(|path| SnapshotFile {
            path: path.to_owned(),
        });
        let session = after.session(Some(&before))?;
        let answer = session.answer(&request, &Cancel::default())?;
        after.print(self.json, screen, &answer.report)
    }

    fn load(&self, input: &Input) -> anyhow::Result<Profile> {
        let profile = load(input, self.filter.keep_recursion)?;
        warn_of_unmatched(&self.filter.query(), &profile);
        Ok(profile)
    }
}
