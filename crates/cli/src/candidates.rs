//! Completions that depend on the machine and the trace: processes, files, names and queries.

use std::collections::HashMap;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::CompleteEnv;
use heapline_engine::{
    Cancel, CompleteOptions, LoadedTrace, Report, Request, Session, shell_quote,
};
use heapline_index::TraceFile;
use heapline_profile::{GroupBy, Profile, StoreOptions};

use crate::commands::Cli;
use crate::input::demo;
use crate::{ocaml_runtime, process};

/// The variable in which a shell that asks for completions gives its name.
pub(crate) const VARIABLE: &str = "HEAPLINE_COMPLETE";

/// Ends of the names of traces.
const TRACES: [&str; 3] = [".ctf", ".ctf.gz", ".ctf.zst"];

/// Ends of the names of heap snapshots.
const SNAPSHOTS: [&str; 1] = [".heap"];

/// Traces that are larger are not read for their names, unless they have an index: it takes too long.
const LARGEST: u64 = 64 << 20;

/// Names that are offered at most.
const ROWS: u16 = 200;

/// Answers a shell that asks for completions, and exits; returns if none asks.
pub(crate) fn answer_shell() {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// The command line with candidates for the values of arguments.
fn command() -> Command {
    let subject = Arg::new("subject").add(ArgValueCompleter::new(subjects));
    with_candidates(Cli::command().arg(subject))
}

fn with_candidates(command: Command) -> Command {
    command
        .mut_args(with_completer)
        .mut_subcommands(with_candidates)
}

fn with_completer(argument: Arg) -> Arg {
    let completer = match argument.get_id().as_str() {
        "pid" => ArgValueCompleter::new(processes),
        "subject" | "target" => ArgValueCompleter::new(subjects),
        "trace" | "traces" | "before" | "after" | "against" | "recording" => {
            ArgValueCompleter::new(files(|name| is_trace(name) || is_snapshot(name)))
        }
        "path" => ArgValueCompleter::new(files(is_snapshot)),
        "focus" | "callers_of" | "hide" | "mine" | "name" => ArgValueCompleter::new(functions),
        "queries" | "without" => ArgValueCompleter::new(queries),
        _ => return argument,
    };
    argument.add(completer)
}

/// Completes the names of files that have one of these ends.
fn files(is_wanted: fn(&str) -> bool) -> PathCompleter {
    PathCompleter::any().filter(move |path| path.to_str().is_some_and(is_wanted))
}

fn is_trace(name: &str) -> bool {
    TRACES.iter().any(|end| name.ends_with(end))
}

fn is_snapshot(name: &str) -> bool {
    SNAPSHOTS.iter().any(|end| name.ends_with(end))
}

/// Processes, traces and heap snapshots.
fn subjects(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = processes(typed);
    found.extend(files(|name| is_trace(name) || is_snapshot(name)).complete(typed));
    found
}

/// Completes the numbers of processes that can be watched.
fn processes(typed: &OsStr) -> Vec<CompletionCandidate> {
    let processes = watchable(&typed.to_string_lossy()).into_iter();
    processes
        .map(|(pid, name)| CompletionCandidate::new(pid.to_string()).help(Some(name.into())))
        .collect()
}

/// Processes that can be watched, with their names: OCaml programs, and those that are being recorded. Their numbers begin with a
/// text.
pub(crate) fn watchable(typed: &str) -> Vec<(u32, String)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse::<u32>().ok());
    let mut known = HashMap::new();
    let mut is_wanted = |pid: u32| {
        let Ok(program) = fs::read_link(format!("/proc/{pid}/exe")) else {
            return false;
        };
        let is_ocaml = known.entry(program).or_insert_with(|| {
            fs::read(format!("/proc/{pid}/exe")).is_ok_and(|program| ocaml_runtime::is_in(&program))
        });
        *is_ocaml || process::find_trace(pid).is_ok_and(|trace| trace.is_some())
    };
    let mut pids: Vec<u32> = pids
        .filter(|pid| pid.to_string().starts_with(typed) && is_wanted(*pid))
        .collect();
    pids.sort_unstable();
    let describe = |pid: u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        (pid, name.trim_end().to_owned())
    };
    pids.into_iter().map(describe).collect()
}

/// Functions of the trace that was given, those with the most allocation first.
fn functions(typed: &OsStr) -> Vec<CompletionCandidate> {
    let (Some(typed), Some(session)) = (typed.to_str(), session()) else {
        return Vec::new();
    };
    let names = session.names(GroupBy::Function).iter();
    names
        .map(|name| &*name.name)
        // Not all shells quote what they insert.
        .filter(|name| name.starts_with(typed) && shell_quote(name) == *name)
        .take(ROWS.into())
        .map(CompletionCandidate::new)
        .collect()
}

/// Continuations of a query about the trace that was given.
fn queries(typed: &OsStr) -> Vec<CompletionCandidate> {
    let continuations = || {
        let typed = typed.to_str()?;
        let request = Request::Complete(CompleteOptions {
            text: typed.to_owned(),
            cursor: None,
            rows: ROWS,
            check: false,
        });
        let answer = session()?.answer(&request, &Cancel::default()).ok()?;
        let Report::Completion(found) = &answer.report else {
            return None;
        };
        // Of a text in ASCII, offsets in UTF-16 are those in bytes.
        let before = typed.get(..found.replace[0]).filter(|_| typed.is_ascii())?;
        let candidate = |text: &str| CompletionCandidate::new(format!("{before}{text}"));
        let items = found.items.iter();
        Some(
            items
                .map(|item| candidate(&item.text).help(Some(item.hint.into())))
                .collect(),
        )
    };
    continuations().unwrap_or_default()
}

/// The trace on the command line that is being completed. Nothing is printed if it cannot be read.
fn session() -> Option<Session> {
    let words = env::args_os().skip_while(|word| word != "--").skip(1);
    let mut paths = words.skip(1).map(PathBuf::from);
    let path = paths.find(|path| path.is_file() || path == Path::new(demo::NAME))?;
    Some(Session::new(
        LoadedTrace {
            path: path.display().to_string(),
            size: None,
            profile: profile(&path)?,
        },
        None,
    ))
}

fn profile(path: &Path) -> Option<Profile> {
    let memory = heapline_index::default_memory();
    let bytes = || -> Result<Box<dyn Read + Send>, ()> {
        match File::open(path) {
            Ok(file) if file.metadata().is_ok_and(|data| data.len() <= LARGEST) => {
                Ok(Box::new(file))
            }
            Ok(_) => Err(()),
            Err(_) => Ok(Box::new(demo::TRACE)),
        }
    };
    heapline_index::load(
        Some(&TraceFile::new(path, memory)),
        memory,
        heapline_formats::Options::default(),
        StoreOptions::default(),
        bytes,
        drop,
    )
    .ok()
}
