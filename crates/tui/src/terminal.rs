//! The terminal: raw mode, events, signals, suspending, and restoring it all.

use std::io::{self, BufWriter, IsTerminal, Stdout};
use std::mem::ManuallyDrop;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
    Event, KeyEventKind, MouseButton, MouseEventKind,
};
use ratatui::crossterm::execute;
use ratatui::layout::{Position, Rect};
use ratatui::{Terminal, crossterm};

use crate::app::{Action, App};
use crate::worker::Worker;

/// The wait for a key while answers are expected, and while not.
const BUSY: Duration = Duration::from_millis(20);
const IDLE: Duration = Duration::from_millis(200);

/// Rows per step of the mouse wheel.
const WHEEL: isize = 3;

/// Larger than the screens that are drawn: standard output by itself writes 1 KiB at a time, and
/// terminals show what they have.
const SCREEN_BYTES: usize = 1 << 16;

type Screen = Terminal<CrosstermBackend<BufWriter<Stdout>>>;

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

/// An event from the terminal or the system.
enum Message {
    Event(Event),
    /// Events cannot be read any more.
    Failed(io::Error),
    Signal(i32),
}

/// Shows the screen until the user leaves it.
pub fn run(app: &mut App, worker: &Worker, options: TerminalOptions) -> io::Result<Left> {
    let (sender, messages) = channel();
    signals::listen(sender.clone())?;
    // Restores the terminal in a panic hook too. Its own terminal is not buffered.
    ratatui::try_init()?;
    let left = screen().and_then(|terminal| {
        // Not dropped: that shows the cursor, as `stop` does, and panics if the terminal is gone.
        let mut terminal = ManuallyDrop::new(terminal);
        start(options)?;
        // Apart from the loop: reading from a terminal that is gone does not return.
        thread::spawn(move || read_events(&sender));
        show(&mut terminal, app, worker, options, &messages)
    });
    stop(options);
    left
}

fn screen() -> io::Result<Screen> {
    let out = BufWriter::with_capacity(SCREEN_BYTES, io::stdout());
    Terminal::new(CrosstermBackend::new(out))
}

/// Sets up pasting and the mouse, which `ratatui::init` does not.
fn start(options: TerminalOptions) -> io::Result<()> {
    execute!(io::stdout(), EnableBracketedPaste)?;
    if options.mouse {
        execute!(io::stdout(), EnableMouseCapture)?;
    }
    Ok(())
}

fn stop(options: TerminalOptions) {
    // Errors are ignored: the terminal may be gone.
    if options.mouse {
        let _ = execute!(io::stdout(), DisableMouseCapture);
    }
    let _ = execute!(io::stdout(), DisableBracketedPaste);
    let _ = ratatui::try_restore();
    let _ = execute!(io::stdout(), crossterm::cursor::Show);
}

fn read_events(sender: &Sender<Message>) {
    loop {
        let message = match event::read() {
            Ok(event) => Message::Event(event),
            Err(error) => Message::Failed(error),
        };
        let is_last = matches!(message, Message::Failed(_));
        if sender.send(message).is_err() || is_last {
            return;
        }
    }
}

fn show(
    terminal: &mut Screen,
    app: &mut App,
    worker: &Worker,
    options: TerminalOptions,
    messages: &Receiver<Message>,
) -> io::Result<Left> {
    let mut is_changed = true;
    loop {
        for news in worker.news().ok_or_else(stopped)? {
            app.receive(news);
            is_changed = true;
        }
        is_changed |= request(app, worker);
        if is_changed {
            terminal.draw(|frame| app.draw(frame))?;
            // The size of the screen decides on some requests.
            is_changed = request(app, worker);
        }
        let wait = match (is_changed, app.is_computing()) {
            (true, _) => Duration::ZERO,
            (false, true) => BUSY,
            (false, false) => IDLE,
        };
        let mut message = messages.recv_timeout(wait).ok();
        if message.is_none() && !io::stdout().is_terminal() {
            return Ok(Left::Signal(signals::HANGUP));
        }
        // All keys that wait are handled before the screen is drawn.
        while let Some(next) = message {
            is_changed = true;
            let action = match next {
                Message::Event(event) => handle(app, event),
                Message::Failed(error) => return Err(error),
                Message::Signal(signal) if signals::is_suspend(signal) => Action::Suspend,
                Message::Signal(signal) => return Ok(Left::Signal(signal)),
            };
            match action {
                Action::Redraw => {}
                Action::Quit => return Ok(Left::Quit),
                Action::Kill => return Ok(Left::Kill),
                Action::Suspend => suspend(terminal, options)?,
            }
            message = messages.try_recv().ok();
        }
    }
}

/// Hands new requests to the worker; true if there are some for the screen.
fn request(app: &mut App, worker: &Worker) -> bool {
    if let Some(kind) = app.naming() {
        worker.name(kind);
    }
    if let Some((query, look)) = app.checking() {
        worker.check(query, look);
    }
    worker.freeze(app.is_frozen());
    let wants = app.outstanding();
    let is_changed = wants.is_some();
    if let Some(wants) = wants {
        worker.want(wants);
    }
    is_changed
}

/// Gives the terminal back until the shell continues this process.
fn suspend(terminal: &mut Screen, options: TerminalOptions) -> io::Result<()> {
    stop(options);
    signals::suspend();
    crossterm::terminal::enable_raw_mode()?;
    execute!(io::stdout(), crossterm::terminal::EnterAlternateScreen)?;
    start(options)?;
    // Not `clear`, which asks the terminal for the cursor while events are being read.
    let size = terminal.size()?;
    terminal.resize(Rect::from((Position::ORIGIN, size)))
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
    use std::sync::mpsc::Sender;
    use std::thread;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    use super::Message;

    /// The signal of a terminal that is gone.
    pub(super) const HANGUP: i32 = SIGHUP;

    /// Listens to signals that others send: keys do not, in raw mode.
    pub(super) fn listen(sender: Sender<Message>) -> io::Result<()> {
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP])?;
        thread::spawn(move || {
            for signal in signals.forever() {
                if sender.send(Message::Signal(signal)).is_err() {
                    // The screen is gone: as without this.
                    let _ = emulate_default_handler(signal);
                }
            }
        });
        Ok(())
    }

    pub(super) fn is_suspend(signal: i32) -> bool {
        signal == SIGTSTP
    }

    /// Stops this process until it is continued.
    pub(super) fn suspend() {
        let _ = emulate_default_handler(SIGTSTP);
    }
}

#[cfg(not(unix))]
mod signals {
    use std::io;
    use std::sync::mpsc::Sender;

    use super::Message;

    pub(super) const HANGUP: i32 = 1;

    #[expect(clippy::unnecessary_wraps, reason = "same signature as on Unix")]
    pub(super) fn listen(_sender: Sender<Message>) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn is_suspend(_signal: i32) -> bool {
        false
    }

    pub(super) fn suspend() {}
}
