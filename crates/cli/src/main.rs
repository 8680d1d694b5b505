//! `heapline`, a heap profiler for OCaml and Rust programs.
//!
//! Each command is one file in `commands`: it parses its arguments, calls the libraries, and prints
//! the result.

mod candidates;
mod commands;
mod error;
mod input;
mod ocaml_runtime;
mod output;
mod process;
mod progress;
mod question;
mod reopen;
#[cfg(recording)]
mod rust_program;
mod screen;
mod snapshot_file;
mod subject;
mod unfinished;

use std::process::ExitCode;

use commands::Cli;
use error::is_broken_pipe;

fn main() -> ExitCode {
    candidates::answer_shell();
    let cli = match Cli::from_arguments(subject::with_command(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => error::exit(&error),
    };
    match cli.run() {
        Ok(code) => code,
        // The reader closed the pipe, as `head` does: not an error.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            error::print(&error);
            ExitCode::from(2)
        }
    }
}
