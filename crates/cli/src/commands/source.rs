//! `heapline source`.

use std::path::PathBuf;
use std::sync::Arc;

use heapline_engine::{Params, Request};
use heapline_profile::reports::SourceOptions;
use heapline_server::{SourceFolderError, SourceFolders};
use heapline_text::{self as text, Screen};

use crate::question::{Json, Question};

/// Show the lines of a source file with the memory that they allocate
///
/// `allocated` is what a line allocates itself, `with callees` also what is allocated by the functions that
/// it calls; `at peak` and `at end` are what is alive then of the latter. Files are read by the paths
/// in the trace, relative ones from the current directory, and looked up in the folders given with --source.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("name", |name| name
        .long(None::<&str>)
        .required(true)
        .default_value(None::<&str>)),
    after_help = "\
Examples:
  heapline source trace.ctf Cache.add
  heapline source trace.ctf cache.ml --source ~/project
  heapline source trace.ctf src/cache.ml --all --live peak"
)]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    #[command(flatten)]
    options: SourceOptions,

    #[command(flatten)]
    sources: Sources,

    #[command(flatten)]
    json: Json,
}

/// The folders of source files.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Sources {
    /// Look for source files in this folder; may be repeated
    #[arg(long = "source", value_name = "DIR")]
    folders: Vec<PathBuf>,
}

impl Sources {
    /// Returns true if no folder was given.
    pub(super) fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    /// Opens the folders, by paths that do not depend on the current folder: for links to an editor.
    pub(super) fn open_absolute(&self) -> Result<SourceFolders, SourceFolderError> {
        let folders = self.folders.iter();
        let absolute = folders.map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
        SourceFolders::new(&absolute.collect::<Vec<_>>())
    }

    /// Opens the folders.
    pub(super) fn open(&self) -> Result<SourceFolders, SourceFolderError> {
        SourceFolders::new(&self.folders)
    }
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<()> {
        let sources = Arc::new(self.sources.open()?.with_recorded_paths());
        let request = Request::Source(Params {
            filter: self.question.filter.clone(),
            options: self.options,
        });
        let answer = self
            .question
            .answer_with(&request, |session| session.with_sources(sources.finder()))?;
        self.question
            .print(self.json, screen, &answer.report, text::render)
    }
}
