//! `heapline flame`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use heapline_export::{self as export, Leaf, SvgOptions};
use heapline_profile::{Look, Scope};
use heapline_text::sanitize;
use heapline_text::units::{estimated_bytes, program_name, seconds};

use super::prof_spacetime::PrintOptions;
use crate::output::{Force, write_file};
use crate::question::{Question, warn_of_unmatched_patterns};

/// Write a flame graph: folded stacks or SVG
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline flame trace.ctf -o heap.svg
  heapline flame trace.ctf --live peak --sites -o peak.svg
  heapline flame trace.ctf --where 'heap = major' --hide 'Stdlib.*' | flamegraph.pl > heap.svg
  heapline flame spacetime-1234 --format prof_spacetime --mode allocations --inverted
  heapline tree trace.ctf --json      the same as data, with error bars")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    /// Write to this file, or - for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,

    /// Select the output format [default: svg if the file name ends in .svg, otherwise folded]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Append the source line of the allocation to each stack
    #[arg(long)]
    sites: bool,

    /// Draw callers above callees
    #[arg(long)]
    icicle: bool,

    #[command(flatten)]
    print: PrintOptions,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    force: Force,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One line per stack: a;b;c BYTES
    Folded,
    /// Flame graph
    Svg,
    /// Print a Spacetime profile as `prof_spacetime print` did
    #[value(name = "prof_spacetime", alias = "prof-spacetime")]
    ProfSpacetime,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.format == Some(Format::ProfSpacetime) {
            if !self.question.filter.query().is_all() {
                anyhow::bail!("prof_spacetime has no filters: --where and --live go without it");
            }
            anyhow::ensure!(
                !self.sites && !self.icicle && self.look == Look::default(),
                "options for the display of stacks do not apply to prof_spacetime"
            );
            let input = &self.question.input;
            return self.print.print(input, &self.output, &self.force);
        }
        self.print.refuse()?;
        let extension = self.output.extension().unwrap_or_default();
        let is_svg = match self.format {
            Some(format) => format == Format::Svg,
            None if ["png", "jpg", "jpeg", "pdf", "html"]
                .iter()
                .any(|e| extension == *e) =>
            {
                anyhow::bail!(
                    "cannot write {}: flame graphs are SVG files or folded stacks; \
                     use a name that ends in .svg",
                    self.output.display()
                )
            }
            None => extension == "svg",
        };
        anyhow::ensure!(
            is_svg || !self.icicle,
            "--icicle does not apply to folded stacks, only to svg"
        );
        anyhow::ensure!(
            !self.look.split_anonymous,
            "--split-anonymous does not apply to flame graphs; --sites adds lines"
        );
        let profile = self.question.load()?;
        warn_of_unmatched_patterns(&self.look, &profile);
        let scope = self.question.scope(&profile)?.showing(&self.look);
        let leaf = if self.sites {
            Leaf::Site
        } else {
            Leaf::Function
        };
        write_file(&self.output, &self.force, |out| {
            if is_svg {
                svg(&scope, leaf, self.icicle, out)?;
            } else {
                export::collapsed(&scope, leaf, out)?;
            }
            self.question.check_read(&profile)
        })
    }
}

/// Writes a flame graph with the program and its total as title.
pub(super) fn svg(
    scope: &Scope<'_>,
    leaf: Leaf,
    icicle: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let profile = scope.profile();
    let program = &profile.header().program;
    let options = SvgOptions {
        title: sanitize(program_name(program)).into_owned(),
        subtitle: Some(format!(
            "{} in {}",
            estimated_bytes(scope.total().bytes.estimate()),
            seconds(profile.duration())
        )),
        icicle,
        leaf,
    };
    export::svg(scope, &options, out)
}
