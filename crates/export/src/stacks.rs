//! Formats of other tools that hold a selection in one file: its stacks, or its memory over time.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use heapline_profile::query::TimePoint;
use heapline_profile::{Look, Scope};
use serde::Serialize;

use crate::{Leaf, collapsed, firefox, perfetto, pprof, speedscope};

/// A format that holds stacks, or memory over time, in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StackFormat {
    /// For `go tool pprof` and compatible tools.
    Pprof,
    /// One line per stack.
    Collapsed,
    /// For www.speedscope.app.
    Speedscope,
    /// For profiler.firefox.com.
    Firefox,
    /// For ui.perfetto.dev: the garbage collector and memory over time, without stacks.
    Perfetto,
}

/// Options of [`StackFormat::write`].
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct StackOptions {
    /// Export memory live at this time: end, peak, 10s, 90%
    #[arg(long, value_name = "TIME")]
    pub at: Option<TimePoint>,

    /// Append the source line of the allocation to each stack
    #[arg(long)]
    pub sites: bool,

    /// Options for the display of functions
    #[command(flatten)]
    #[serde(flatten)]
    pub look: Look,
}

impl StackOptions {
    /// The options that were given and that not every format can honour, by their names.
    pub fn given(&self) -> impl Iterator<Item = &'static str> + use<> {
        let given = [
            ("at", self.at.is_some()),
            ("sites", self.sites),
            ("split-anonymous", self.look.split_anonymous),
            ("hide", !self.look.hide.is_empty()),
            ("own-code", self.look.own_code),
            ("mine", !self.look.mine.is_empty()),
        ];
        let given = given.into_iter().filter(|(_, is_given)| *is_given);
        given.map(|(option, _)| option)
    }

    /// The ends of the stacks.
    #[must_use]
    pub fn leaf(&self) -> Leaf {
        if self.sites {
            Leaf::Site
        } else {
            Leaf::Function
        }
    }

    /// The blocks that are live at the time of the options, or all if there is none.
    #[must_use]
    pub fn live<'a>(&self, scope: &Scope<'a>) -> Scope<'a> {
        match &self.at {
            Some(at) => scope.live_at(at.moment(scope.profile(), scope.estimator())),
            None => scope.clone(),
        }
    }
}

impl StackFormat {
    /// The usual ending of files, with its dot.
    #[must_use]
    pub fn ending(self) -> &'static str {
        match self {
            Self::Pprof => ".pb.gz",
            Self::Collapsed => ".folded",
            Self::Speedscope => ".speedscope.json",
            Self::Firefox => ".firefox.json",
            Self::Perfetto => ".perfetto.json",
        }
    }

    /// Returns true if the format has the times of single blocks.
    #[must_use]
    pub fn has_times(self) -> bool {
        matches!(self, Self::Firefox | Self::Perfetto)
    }

    /// Returns true if an option has an effect on files of this format.
    #[must_use]
    pub fn honours(self, option: &str) -> bool {
        match option {
            // They have all times.
            "at" => !self.has_times(),
            // The one has the lines of all frames, the other has no stacks.
            "sites" => !matches!(self, Self::Pprof | Self::Perfetto),
            "hide" | "own-code" | "mine" => self != Self::Perfetto,
            _ => false,
        }
    }

    /// Writes the stacks of a selection, which [`Scope::showing`] has applied the look to.
    pub fn write(
        self,
        scope: &Scope<'_>,
        options: &StackOptions,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let profile = scope.profile();
        let at = options.at.as_ref();
        let at = at.map(|at| at.moment(profile, scope.estimator()));
        let leaf = options.leaf();
        match self {
            Self::Pprof => pprof(scope, at.unwrap_or_else(|| profile.end()), out),
            Self::Collapsed => collapsed(&options.live(scope), leaf, out),
            Self::Speedscope => speedscope(scope, at, leaf, out),
            Self::Firefox => firefox(scope, leaf, out),
            Self::Perfetto => perfetto(scope, out),
        }
    }
}
