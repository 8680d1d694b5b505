//! `heapline FILE` and `heapline PID`: the command that runs if only its subject is given.

use std::ffi::OsString;
use std::path::Path;

use clap::CommandFactory;
use heapline_dataset::MANIFEST;

use crate::commands::Cli;
use crate::process;
use crate::snapshot_file::is_snapshot_file;

/// Inserts the command for a file or a process where none is given. Without any arguments, asks for
/// the short help.
pub(crate) fn with_command(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let inserted: &[&str] = match arguments.get(1..) {
        None | Some([]) => &["-h"],
        Some(given) => subject(given).and_then(command).unwrap_or_default(),
    };
    let at = arguments.len().min(1);
    arguments.splice(at..at, inserted.iter().map(OsString::from));
    arguments
}

/// The first argument that is not an option, unless it is a command.
fn subject(arguments: &[OsString]) -> Option<&Path> {
    let mut words = arguments.iter();
    let word = words.find(|word| {
        let is_option = word.as_encoded_bytes().starts_with(b"-") && *word != "-";
        !is_option || *word == "--"
    })?;
    if word == "--" {
        return words.next().map(Path::new);
    }
    let is_command = word == "help" || Cli::command().find_subcommand(word).is_some();
    (!is_command).then(|| Path::new(word))
}

/// The command that shows a file or a process; `None` if the word is more likely a misspelt command.
fn command(subject: &Path) -> Option<&'static [&'static str]> {
    if process::id(subject).is_some() {
        return Some(&["top"]);
    }
    if subject.join(MANIFEST).is_file() {
        return Some(&["dataset", "list"]);
    }
    if is_snapshot_file(subject) {
        return Some(&["retained"]);
    }
    let looks_like_file = subject == Path::new("-")
        || subject.extension().is_some()
        || subject.components().count() > 1
        || subject.exists();
    looks_like_file.then_some(&["summary"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_runs(given: &[&str], expected: &[&str]) {
        let words = |words: &[&str]| -> Vec<OsString> {
            let program = std::iter::once("heapline");
            let words = program.chain(words.iter().copied());
            words.map(OsString::from).collect()
        };
        assert_eq!(with_command(words(given).into_iter()), words(expected));
    }

    #[test]
    fn a_file_or_process_alone_gets_a_command() {
        assert_runs(&[], &["-h"]);
        assert_runs(&["no-such.ctf"], &["summary", "no-such.ctf"]);
        assert_runs(&["runs/trace"], &["summary", "runs/trace"]);
        assert_runs(&["-"], &["summary", "-"]);
        assert_runs(
            &["--ascii", "a.ctf", "--json"],
            &["summary", "--ascii", "a.ctf", "--json"],
        );
        assert_runs(&["--", "-x.ctf"], &["summary", "--", "-x.ctf"]);
        assert_runs(&["4711", "--by", "site"], &["top", "4711", "--by", "site"]);
    }

    #[test]
    fn commands_options_and_misspelt_commands_stay_as_they_are() {
        for given in [
            &["leaks", "a.ctf"][..],
            &["help", "leaks"],
            &["--ascii", "demo"],
            &["--version"],
            &["hotspot", "a.ctf"],
        ] {
            assert_runs(given, given);
        }
    }
}
