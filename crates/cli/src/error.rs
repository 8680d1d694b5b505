//! Prints errors and warnings.

use std::error::Error;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use clap::error::ContextKind;
use heapline_profile::QueryError;
use heapline_text::{sanitize, sanitize_lines};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const NOTE: Style = AnsiColor::Green.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// Returns true if the reader of a pipe closed it, as `head` does.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

pub(crate) fn print(error: &anyhow::Error) {
    let causes: Vec<String> = error.chain().map(message).collect();
    say_error(&causes.join(": "));
}

pub(crate) fn warn(message: &str) {
    say(WARNING, message);
}

/// Prints an informational message to standard error.
pub(crate) fn note(message: &str) {
    say(NOTE, message);
}

/// Prints a line to standard error, unless nobody reads it: the exit code of a recorded program must
/// not depend on that.
fn say(style: Style, message: &str) {
    let message = without_error_numbers(&sanitize(message));
    let _ = writeln!(anstream::stderr(), "{style}heapline:{style:#} {message}");
}

/// Prints an error, unless the terminal is gone.
fn say_error(message: &str) {
    let _ = writeln!(anstream::stderr(), "{ERROR}heapline:{ERROR:#} {message}");
}

/// Prints an argument error or the requested help, and exits.
pub(crate) fn exit(error: &clap::Error) -> ! {
    // Query errors mark the position of the error; clap's usual additions do not help there.
    let source = Error::source(error);
    if let Some(query) = source.and_then(|source| source.downcast_ref::<QueryError>()) {
        let option = error.get(ContextKind::InvalidArg);
        let option = option.map(ToString::to_string).unwrap_or_default();
        let name = option.split(' ').next().unwrap_or_default();
        let query = message(query);
        say_error(&format!("cannot parse {name}: {query}"));
        std::process::exit(2);
    }
    error.exit()
}

/// The message of one error, sanitized: it may contain names from a trace or of files.
fn message(error: &(dyn Error + 'static)) -> String {
    let message = error.to_string();
    // Multi-line errors, which mark a position in the input.
    if error.is::<QueryError>() || error.is::<regex::Error>() {
        sanitize_lines(&message).into_owned()
    } else {
        without_error_numbers(&sanitize(&message))
    }
}

/// A message without the numbers that the system has for errors: `(os error 2)`.
fn without_error_numbers(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, after)) = rest.split_once(" (os error ") {
        text.push_str(before);
        let number = after.trim_start_matches(|c: char| c.is_ascii_digit());
        match number.strip_prefix(')') {
            Some(after) => rest = after,
            None => {
                text.push_str(" (os error ");
                rest = after;
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_system_errors_are_not_shown() {
        for (message, expected) in [
            (
                "cannot open a: No such file (os error 2)",
                "cannot open a: No such file",
            ),
            ("b (os error 13): c (os error 2), d", "b: c, d"),
            ("e (os error x) (os error 1", "e (os error x) (os error 1"),
        ] {
            assert_eq!(without_error_numbers(message), expected);
        }
    }
}
