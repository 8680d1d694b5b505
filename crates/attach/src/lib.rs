//! Loads a library into a running process and calls its functions, with ptrace.
//!
//! - `process`: what `/proc` says about a process, and its memory.
//! - `symbols`: the symbols that its libraries export, read from its memory.
//! - `refusal`: the reasons why a process cannot be attached to, found before it is touched.
//! - `moment`: the moments at which a thread can be made to call a function.
//! - `thread`: a thread that is stopped: system calls and functions that it is made to call.
//! - `arch`: registers, and what else depends on the processor.
//! - `inject`: all of that together.

mod arch;
mod inject;
mod moment;
mod process;
mod refusal;
mod symbols;
mod thread;

pub use inject::{Called, Library, call};
pub use process::{Identity, Module, Process};
pub use refusal::{Refusal, check};
pub use symbols::offset;

use std::io;

/// The reason why a function could not be called.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process has ended, or has executed another program.
    #[error("the program has ended")]
    Ended,
    /// It cannot be attached to.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// All threads were busy in C code for too long.
    #[error(
        "found no moment at which the program can be stopped safely: its threads were in C code each \
         time; try again"
    )]
    NoSafeMoment,
    /// The library could not be loaded.
    #[error("the program cannot load the library: {0}")]
    Load(String),
    /// Something that should not happen.
    #[error("cannot {0}: {1}")]
    System(&'static str, #[source] io::Error),
    /// The function did not return.
    #[error("the program crashed or hung in Heapline's library, and was set back to where it was")]
    Lost,
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Turns an error of a system call into one of ours.
pub(crate) fn failed<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Error {
    move |error| {
        let error = error.into();
        if error.raw_os_error() == Some(libc::ESRCH) {
            return Error::Ended;
        }
        Error::System(what, error)
    }
}
