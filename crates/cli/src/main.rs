//! `heapline`: where did the memory go?
//!
//! Each command is one file in `commands`: it parses its arguments, calls the libraries, and draws
//! what they return.

mod commands;
mod error;
mod input;
mod output;
mod progress;
mod question;
mod reopen;
mod screen;
mod unfinished;

use std::process::ExitCode;

use clap::Parser;

use commands::Cli;
use error::is_broken_pipe;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => error::exit(&error),
    };
    match cli.run() {
        Ok(code) => code,
        // Whoever read our output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            error::print(&error);
            ExitCode::from(2)
        }
    }
}
