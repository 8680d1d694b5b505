//! `heapline fleet`: hands over to the program `heapline-fleet`.
//!
//! It is a separate program because SQL engines and clients of object stores would make this one several times as large.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Context;

/// The program.
const PROGRAM: &str = "heapline-fleet";

/// Query datasets with SQL, on this machine or a cluster (runs heapline-fleet)
///
/// All arguments are those of the program heapline-fleet, which is installed separately, from a checkout:
/// cargo install --path fleet
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Arguments of heapline-fleet
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    arguments: Vec<OsString>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        run(&self.arguments)
    }
}

/// Runs `heapline-fleet` with the arguments of this process, from the name of its command on.
pub(super) fn run_same_arguments(command: &str) -> anyhow::Result<ExitCode> {
    let arguments = std::env::args_os().skip(1);
    let arguments: Vec<OsString> = arguments
        .skip_while(|argument| argument != OsStr::new(command))
        .collect();
    run(&arguments)
}

fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let program = program()?;
    let mut command = Command::new(&program);
    command.args(arguments);
    hand_over(command).with_context(|| format!("cannot run {}", program.display()))
}

/// Replaces this process, so that signals and the exit code are those of the program.
#[cfg(unix)]
fn hand_over(mut command: Command) -> anyhow::Result<ExitCode> {
    Err(std::os::unix::process::CommandExt::exec(&mut command).into())
}

#[cfg(not(unix))]
fn hand_over(mut command: Command) -> anyhow::Result<ExitCode> {
    let code = command.status()?.code().unwrap_or(2);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(2)))
}

/// The path of the program. If there is none, the error says how to get it.
pub(super) fn program() -> anyhow::Result<PathBuf> {
    find().with_context(|| {
        format!(
            "{PROGRAM} is neither beside this program nor in PATH; install it from a checkout of Heapline: cargo install --path fleet"
        )
    })
}

/// The program beside this one, or the first in `PATH`.
fn find() -> Option<PathBuf> {
    let name = format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().ok();
    let beside = beside.and_then(|path| Some(path.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(std::env::split_paths(&path));
    let mut programs = folders.map(|folder| folder.join(&name));
    programs.find(|program| program.is_file())
}
