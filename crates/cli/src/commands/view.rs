//! `heapline view`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use heapline_dataset::MANIFEST;
use heapline_server::{
    EditorLink, Fleet, Recording, ServeError, Server, Subjects, Trace, missing_page,
};
use heapline_text::sanitize;

use super::source::Sources;
use super::{dataset, fleet};
use crate::error::warn;
use crate::input::Input;
use crate::output::to_stdout;
use crate::reopen::{self, SnapshotsBeside};
use crate::snapshot_file::is_snapshot_file;

/// Show a trace, a heap snapshot or a dataset in the browser
///
/// Serves the viewer on 127.0.0.1, on the first free port from 8080, and opens it in the browser. The
/// page opens immediately, while the file is being loaded. If a trace is still being recorded, the page
/// grows with it. Datasets of many runs need the program heapline-fleet.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline view trace.ctf
  heapline view after.ctf --against before.ctf
  heapline view after.heap --against before.heap
  heapline view profiles                        show what changed over many runs of a dataset
  heapline view trace.ctf --source ~/project    show source files of this folder
  heapline view trace.ctf --port 3000 --no-browser
  heapline view trace.ctf --listen 0.0.0.0      allow other machines, with the printed URL")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    others: OtherFiles,

    #[command(flatten)]
    sources: Sources,

    /// Link lines of source files to an editor, such as `vscode://file/{file}:{line}` [default: no links]
    #[arg(long, value_name = "LINK")]
    editor: Option<EditorLink>,

    #[command(flatten)]
    serving: Serving,
}

/// Files beside the one that is shown.
#[derive(Debug, clap::Args)]
pub(super) struct OtherFiles {
    /// Compare with an earlier trace or snapshot
    #[arg(long, value_name = "FILE")]
    pub(super) against: Option<PathBuf>,

    /// Read allocation sites of a snapshot from this recording [default: the one that the snapshot names]
    #[arg(long = "trace", value_name = "TRACE")]
    pub(super) recording: Option<PathBuf>,
}

impl OtherFiles {
    /// Opens a heap snapshot with these files; `None` if the file is not one.
    pub(super) fn with_snapshot(
        &self,
        input: &Input,
        name: fn(Trace) -> Trace,
    ) -> anyhow::Result<Option<Subjects>> {
        if is_snapshot_file(&input.trace) {
            let (against, recording) = (self.against.as_deref(), self.recording.as_deref());
            return reopen::snapshots(input, against, recording, name).map(Some);
        }
        anyhow::ensure!(
            self.recording.is_none(),
            "--trace is for heap snapshots, and {} is not one",
            input.name()
        );
        Ok(None)
    }
}

/// The address of the server.
#[derive(Debug, clap::Args)]
pub(super) struct Serving {
    /// Listen on this port [default: first free port from 8080]
    #[arg(long, help_heading = "Server", value_name = "PORT")]
    port: Option<u16>,

    /// Listen on this address; other machines need the token in the printed URL
    #[arg(
        long,
        help_heading = "Server",
        value_name = "ADDRESS",
        default_value = "127.0.0.1"
    )]
    listen: IpAddr,

    /// Answer all users of this machine without the token in the printed URL
    #[arg(long, help_heading = "Server", hide_short_help = true)]
    no_token: bool,

    /// Do not open the browser
    #[arg(long, help_heading = "Server")]
    no_browser: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if is_dataset(&self.input.trace) {
            return self.show_dataset();
        }
        if let Some(subjects) = self.others.with_snapshot(&self.input, |file| file)? {
            anyhow::ensure!(
                self.sources.is_empty(),
                "--source is for traces, and {} is a heap snapshot",
                self.input.name()
            );
            return self.serving.serve(subjects);
        }
        let sources = self.sources.open_absolute()?;
        let is_file = self.input.file_size().is_some();
        let (trace, against) = reopen::traces(&self.input, self.others.against)?;
        // Before a browser opens, so that the terminal says what is wrong.
        for trace in [Some(&trace), against.as_ref()].into_iter().flatten() {
            trace.check().map_err(anyhow::Error::msg)?;
        }
        let mut subjects = Subjects::new(trace, against)
            .with_sources(sources)
            .with_editor(self.editor);
        if is_file {
            let recording = Recording {
                path: self.input.trace.clone(),
                is_expected: Arc::default(),
            };
            let snapshots = SnapshotsBeside::new(self.input);
            subjects = subjects.following(recording).with_snapshots(snapshots);
        }
        self.serving.serve(subjects)
    }

    fn show_dataset(self) -> anyhow::Result<()> {
        let others = &self.others;
        anyhow::ensure!(
            others.against.is_none() && others.recording.is_none() && self.sources.is_empty(),
            "--against, --trace and --source are for files, and {} is a dataset",
            self.input.name()
        );
        let fleet = Fleet {
            dataset: self.input.trace.display().to_string(),
            program: fleet::program()?,
        };
        self.serving.serve_fleet(fleet)
    }
}

/// Returns true for folders of datasets and addresses in object stores.
fn is_dataset(path: &Path) -> bool {
    path.join(MANIFEST).is_file() || dataset::is_remote(path)
}

impl Serving {
    /// Serves until the process ends.
    pub(super) fn serve(&self, subjects: Subjects) -> anyhow::Result<()> {
        let viewer = self.bind()?;
        announce(subjects.trace.name(), &viewer.url())?;
        self.open_browser(&viewer);
        Err(ended(viewer.serve(subjects)))
    }

    /// Serves the reports about a dataset until the process ends.
    fn serve_fleet(&self, fleet: Fleet) -> anyhow::Result<()> {
        let viewer = self.bind()?;
        announce(fleet.name(), &viewer.url())?;
        self.open_browser(&viewer);
        match viewer.server.serve_fleet(fleet) {
            Ok(never) => match never {},
            Err(error) => Err(ended(error)),
        }
    }

    /// Takes the port.
    pub(super) fn bind(&self) -> anyhow::Result<Viewer> {
        #[cfg(recording)]
        heapline_recorder::allocator::return_freed_blocks();
        if let Some(reason) = missing_page() {
            warn(&format!(
                "this heapline was built without its page ({reason}); serving only the API"
            ));
        }
        let server = Server::bind(self.listen, self.port).with_context(|| match self.port {
            Some(port) => format!("cannot listen at {} on port {port}", self.listen),
            None => format!("cannot listen at {} on any port from 8080", self.listen),
        })?;
        if !self.no_token {
            return Ok(Viewer { server });
        }
        anyhow::ensure!(
            self.listen.is_loopback(),
            "--no-token would show the trace to all who can reach {}; leave it out, or --listen",
            self.listen
        );
        Ok(Viewer {
            server: server.without_token(),
        })
    }

    /// Opens the page in a browser, if there is one.
    pub(super) fn open_browser(&self, viewer: &Viewer) {
        if !self.no_browser && has_display() && missing_page().is_none() {
            // Not an error: the URL was printed.
            if let Err(error) = open::that_detached(viewer.server.local_url()) {
                warn(&format!("cannot open a browser: {error}"));
            }
        }
    }
}

/// A viewer that has its port.
pub(super) struct Viewer {
    server: Server,
}

impl Viewer {
    pub(super) fn url(&self) -> String {
        self.server.url()
    }

    /// Serves until the process ends, or the trace could not be loaded.
    pub(super) fn serve(self, subjects: Subjects) -> ServeError {
        match self.server.serve(subjects) {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }
}

fn ended(error: ServeError) -> anyhow::Error {
    match error {
        ServeError::Load(problem) => anyhow::Error::msg(problem),
        ServeError::Io(error) => anyhow::Error::new(error).context("cannot serve"),
    }
}

fn announce(name: &str, url: &str) -> anyhow::Result<()> {
    let text = format!(
        "{}: serving on {url}\nPress Ctrl-C to stop.\n",
        sanitize(name)
    );
    // In a single write: a program that waits for the URL may close the pipe after it.
    to_stdout(text.as_bytes())
}

/// Returns true if there is a display for a browser; always true on systems other than Linux.
fn has_display() -> bool {
    !cfg!(target_os = "linux")
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}
