//! A screen in memory, with its worker and a trace.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use heapline_engine::{Cancel, LoadedTrace, Report, Session};
use heapline_formats::{Options, Reader};
use heapline_profile::{Estimator, Profile, StoreOptions};
use heapline_testkit::fixtures;
use heapline_tui::{
    Action, App, Choices, Newest, News, Progress, Settings, Source, Theme, Worker, WorkerOptions,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use ratatui::crossterm::event::{KeyCode, KeyEvent};

pub(crate) fn profile(path: &PathBuf) -> Profile {
    let mut reader = Reader::open(path, Options::default()).unwrap();
    Profile::load(&mut reader, StoreOptions::default()).unwrap()
}

/// States of a trace, one after another.
struct States {
    states: Arc<Mutex<Vec<PathBuf>>>,
    is_recording: Arc<AtomicBool>,
}

impl Source for States {
    fn path(&self) -> String {
        "trace.ctf".to_owned()
    }

    fn newest(&mut self, progress: &Progress) -> Result<Newest, String> {
        let state = self.states.lock().unwrap().pop();
        if state.is_some() {
            progress.report(0.5);
        }
        Ok(Newest {
            profile: state.as_ref().map(profile),
            size: None,
            is_recording: self.is_recording.load(Ordering::Relaxed),
        })
    }
}

/// A screen, its worker and the terminal.
pub(crate) struct Screen {
    pub(crate) app: App,
    pub(crate) worker: Worker,
    pub(crate) terminal: Terminal<TestBackend>,
    pub(crate) states: Arc<Mutex<Vec<PathBuf>>>,
    pub(crate) is_recording: Arc<AtomicBool>,
}

impl Screen {
    pub(crate) fn open(trace: &str, size: (u16, u16)) -> Self {
        Self::start(trace, size, false)
    }

    pub(crate) fn start(trace: &str, size: (u16, u16), is_recording: bool) -> Self {
        Self::start_with(Choices::default(), trace, size, is_recording)
    }

    pub(crate) fn start_with(
        choices: Choices,
        trace: &str,
        (width, height): (u16, u16),
        is_recording: bool,
    ) -> Self {
        let states = Arc::new(Mutex::new(vec![fixtures::folder().join(trace)]));
        let is_recording = Arc::new(AtomicBool::new(is_recording));
        let source = States {
            states: Arc::clone(&states),
            is_recording: Arc::clone(&is_recording),
        };
        let options = WorkerOptions {
            interval: Duration::from_millis(10),
            estimator: Estimator::default(),
            start_at: None,
        };
        let settings = Settings {
            file: trace.to_owned(),
            theme: Theme {
                has_colors: true,
                is_ascii: false,
            },
            is_own_program: false,
        };
        let backend = TestBackend::new(width, height);
        let mut screen = Self {
            app: App::new(settings, choices),
            worker: Worker::start(source, options),
            terminal: Terminal::new(backend).unwrap(),
            states,
            is_recording,
        };
        screen.draw();
        screen.settle();
        screen
    }

    pub(crate) fn draw(&mut self) {
        self.terminal.draw(|frame| self.app.draw(frame)).unwrap();
    }

    /// Waits until all that is shown has been computed.
    pub(crate) fn settle(&mut self) {
        let mut is_checking = false;
        loop {
            if let Some(wants) = self.app.outstanding() {
                self.worker.want(wants);
            }
            if let Some((query, look)) = self.app.checking() {
                self.worker.check(query, look);
                is_checking = true;
            }
            self.worker.freeze(self.app.is_frozen());
            if !self.app.is_computing() && !is_checking {
                break;
            }
            let news = self.worker.wait().unwrap();
            is_checking &= !matches!(news, News::Unmatched(_));
            self.app.receive(news);
        }
        self.draw();
    }

    pub(crate) fn press(&mut self, code: KeyCode) -> Action {
        let action = self.app.update(KeyEvent::from(code));
        self.draw();
        self.settle();
        action
    }

    pub(crate) fn keys(&mut self, keys: &str) {
        for c in keys.chars() {
            self.press(KeyCode::Char(c));
        }
    }

    /// Waits for the names that are suggested.
    pub(crate) fn complete(&mut self) {
        let kind = self.app.naming().expect("names are needed");
        self.worker.name(kind);
        self.wait_for(|news| matches!(news, News::Names(..)));
    }

    /// Takes news up to one of a kind.
    pub(crate) fn wait_for(&mut self, is_it: impl Fn(&News) -> bool) {
        loop {
            let news = self.worker.wait().unwrap();
            let is_it = is_it(&news);
            self.app.receive(news);
            if is_it {
                break;
            }
        }
        self.draw();
    }

    pub(crate) fn rows(&self) -> Vec<String> {
        let buffer = self.terminal.backend().buffer();
        let width = usize::from(buffer.area.width);
        let rows = buffer.content.chunks(width);
        rows.map(|row| row.iter().map(Cell::symbol).collect::<String>())
            .map(|row: String| row.trim_end().to_owned())
            .collect()
    }

    pub(crate) fn text(&self) -> String {
        self.rows().join("\n")
    }

    pub(crate) fn row_with(&self, part: &str) -> String {
        let rows = self.rows();
        let found = rows.iter().find(|row| row.contains(part));
        found
            .unwrap_or_else(|| panic!("no {part} in\n{}", self.text()))
            .clone()
    }

    /// The answer of a session of its own to the request of the view.
    pub(crate) fn report(&self, trace: &str) -> Report {
        let trace = LoadedTrace {
            path: "trace.ctf".to_owned(),
            size: None,
            profile: profile(&fixtures::folder().join(trace)),
        };
        let session = Session::new(trace, None);
        let request = self.app.request().unwrap();
        let answer = session.answer(request, &Cancel::default()).unwrap();
        answer.report.clone()
    }
}
