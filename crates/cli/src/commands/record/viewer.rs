//! The viewer beside a program that is being recorded.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context;
use heapline_recorder::inherited;
use heapline_server::{Recording, ServeError, Subjects, Trace};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::commands::view::{Serving, Viewer};
use crate::error::{note, warn};

/// A viewer that has its port, and shows the trace from the start of the program on.
pub(in crate::commands) struct LiveViewer {
    viewer: Option<Viewer>,
    url: String,
    /// True as long as the program may begin to record.
    is_expected: Arc<AtomicBool>,
}

impl LiveViewer {
    /// Takes the port, before the program is started.
    pub(in crate::commands) fn bind(serving: &Serving) -> anyhow::Result<Self> {
        let viewer = serving.bind()?;
        Ok(Self {
            url: viewer.url(),
            viewer: Some(viewer),
            is_expected: Arc::new(AtomicBool::new(true)),
        })
    }

    /// Shows the trace, which the program is going to write, in a thread of its own.
    pub(in crate::commands) fn start(&mut self, serving: &Serving, trace: PathBuf) {
        let Some(viewer) = self.viewer.take() else {
            return;
        };
        note(&format!("{}: serving on {}", trace.display(), self.url));
        let path = trace.clone();
        let subjects = Subjects::new(
            Trace {
                path: trace.display().to_string(),
                size: None,
                strict: false,
                executable: None,
                file: None,
                open: Box::new(move || heapline_trace::open(&path)),
            },
            None,
        )
        .following(Recording {
            path: trace,
            is_expected: Arc::clone(&self.is_expected),
        });
        serving.open_browser(&viewer);
        thread::spawn(move || {
            // What is wrong with the trace is reported by the recording itself.
            if let ServeError::Io(error) = viewer.serve(subjects) {
                warn(&format!("cannot serve: {error}"));
            }
        });
    }

    /// Says that the program has ended: what has not begun by now never will.
    pub(in crate::commands) fn program_ended(&self) {
        self.is_expected.store(false, Ordering::Relaxed);
    }

    /// Goes on serving the page until Ctrl-C, if there is a trace.
    pub(in crate::commands) fn stay(self, trace: &Path) -> anyhow::Result<()> {
        if !trace.exists() {
            return Ok(());
        }
        note(&format!(
            "the page stays at {}; press Ctrl-C to end",
            self.url
        ));
        let ending = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
        let handled = ending.into_iter().filter(|&s| !inherited::is_ignored(s));
        let mut signals = Signals::new(handled).context("cannot wait for signals")?;
        signals.forever().next();
        Ok(())
    }
}
