//! The terminal: raw mode, events, signals, suspending, and restoring it all.

use std::io;
use std::time::Duration;

use ratatui::crossterm::event::{
    self, DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
    Event, KeyEventKind, MouseButton, MouseEventKind,
};
use ratatui::crossterm::execute;
use ratatui::{DefaultTerminal, crossterm};

use crate::app::{Action, App};
use crate::worker::Worker;

/// The wait for a key while answers are expected, and while not.
const BUSY: Duration = Duration::from_millis(20);
const IDLE: Duration = Duration::from_millis(200);

/// Rows per step of the mouse wheel.
const WHEEL: isize = 3;

/// How the screen was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// By a key.
    Quit,
    /// By a key that also ends the program.
    Kill,
    /// By a signal.
    Signal(i32),
}

/// Options of the terminal.
#[derive(Clone, Copy, Debug, Default)]
pub struct TerminalOptions {
    /// Use the mouse. The terminal then no longer selects text with it.
    pub mouse: bool,
}

/// Shows the screen until the user leaves it.
pub fn run(app: &mut App, worker: &Worker, options: TerminalOptions) -> io::Result<Left> {
    let mut signals = signals::Signals::new()?;
    // Restores the terminal in a panic hook too.
    let mut terminal = ratatui::try_init()?;
    let left =
        start(options).and_then(|()| events(&mut terminal, app, worker, options, &mut signals));
    stop(options);
    left
}

/// What `ratatui::init` does not do.
fn start(options: TerminalOptions) -> io::Result<()> {
    execute!(io::stdout(), EnableBracketedPaste)?;
    if options.mouse {
        execute!(io::stdout(), EnableMouseCapture)?;
    }
    Ok(())
}

fn stop(options: TerminalOptions) {
    // Not on an error: the terminal may be gone.
    if options.mouse {
        let _ = execute!(io::stdout(), DisableMouseCapture);
    }
    let _ = execute!(io::stdout(), DisableBracketedPaste);
    ratatui::restore();
}

fn events(
    terminal: &mut DefaultTerminal,
    app: &mut App,
    worker: &Worker,
    options: TerminalOptions,
    signals: &mut signals::Signals,
) -> io::Result<Left> {
    let mut is_changed = true;
    loop {
        for news in worker.news().ok_or_else(stopped)? {
            app.receive(news);
            is_changed = true;
        }
        if let Some(wants) = app.outstanding() {
            worker.want(wants);
            is_changed = true;
        }
        if let Some(options) = app.completing() {
            worker.complete(options);
        }
        if let Some(query) = app.checking() {
            worker.check(query);
        }
        worker.freeze(app.is_frozen());
        if is_changed {
            terminal.draw(|frame| app.draw(frame))?;
            is_changed = false;
            // The size of the screen decides on some requests.
            if let Some(wants) = app.outstanding() {
                worker.want(wants);
            }
        }
        let mut action = match signals.pending() {
            Some(signals::Request::Suspend) => Action::Suspend,
            Some(signals::Request::End(signal)) => return Ok(Left::Signal(signal)),
            None => Action::Redraw,
        };
        let wait = if app.is_computing() { BUSY } else { IDLE };
        // All keys that wait are handled before the screen is drawn.
        let mut has_event = action == Action::Redraw && event::poll(wait)?;
        while has_event {
            is_changed = true;
            action = handle(app, event::read()?);
            has_event = action == Action::Redraw && event::poll(Duration::ZERO)?;
        }
        match action {
            Action::Redraw => {}
            Action::Quit => return Ok(Left::Quit),
            Action::Kill => return Ok(Left::Kill),
            Action::Suspend => {
                stop(options);
                signals::suspend();
                crossterm::terminal::enable_raw_mode()?;
                execute!(io::stdout(), crossterm::terminal::EnterAlternateScreen)?;
                start(options)?;
                terminal.clear()?;
                is_changed = true;
            }
        }
    }
}

fn handle(app: &mut App, event: Event) -> Action {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => return app.update(key),
        Event::Paste(text) => app.paste(&text),
        Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => app.click(mouse.row),
            MouseEventKind::ScrollUp => app.scroll(-WHEEL),
            MouseEventKind::ScrollDown => app.scroll(WHEEL),
            _ => {}
        },
        _ => {}
    }
    Action::Redraw
}

fn stopped() -> io::Error {
    io::Error::other("a thread has failed")
}

#[cfg(unix)]
mod signals {
    use std::io;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
    use signal_hook::low_level::emulate_default_handler;

    /// What a signal asks for.
    pub(super) enum Request {
        Suspend,
        End(i32),
    }

    /// Signals that others send: keys do not, in raw mode.
    pub(super) struct Signals(signal_hook::iterator::Signals);

    impl Signals {
        pub(super) fn new() -> io::Result<Self> {
            let signals = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP];
            signal_hook::iterator::Signals::new(signals).map(Self)
        }

        pub(super) fn pending(&mut self) -> Option<Request> {
            self.0.pending().next().map(|signal| match signal {
                SIGTSTP => Request::Suspend,
                signal => Request::End(signal),
            })
        }
    }

    /// Stops this process until it is continued.
    pub(super) fn suspend() {
        let _ = emulate_default_handler(SIGTSTP);
    }
}

#[cfg(not(unix))]
mod signals {
    use std::io;

    pub(super) enum Request {
        Suspend,
        End(i32),
    }

    pub(super) struct Signals;

    impl Signals {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) fn pending(&mut self) -> Option<Request> {
            None
        }
    }

    pub(super) fn suspend() {}
}
