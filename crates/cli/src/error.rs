//! Errors and warnings on their way to the user.

use std::io;

use anstyle::{AnsiColor, Style};

const ERROR: Style = AnsiColor::Red.on_default().bold();
#[cfg(recording)]
const NOTE: Style = AnsiColor::Green.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// Whether the reader of a pipe went away, as `head` does.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

pub(crate) fn print(error: &anyhow::Error) {
    anstream::eprintln!("{ERROR}heapline:{ERROR:#} {error:#}");
}

pub(crate) fn warn(message: &str) {
    anstream::eprintln!("{WARNING}heapline:{WARNING:#} {message}");
}

/// Something that is no problem, beside the output of another program.
#[cfg(recording)]
pub(crate) fn note(message: &str) {
    anstream::eprintln!("{NOTE}heapline:{NOTE:#} {message}");
}
