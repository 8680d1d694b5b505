//! Running programs as they are and recorded.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

use crate::trace::Trace;

/// How a program ended, and what it said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) stdout: String,
    /// Without what heapline says, and without truths, which recording may change.
    pub(crate) stderr: String,
    /// As a shell gives it.
    pub(crate) status: i32,
}

/// A program with what it is started with.
#[derive(Clone)]
pub(crate) struct Program {
    /// A program that starts it, with arguments.
    starter: Vec<String>,
    path: PathBuf,
    arguments: Vec<String>,
    input: Vec<u8>,
    folder: PathBuf,
    environment: Vec<(String, String)>,
    without: Vec<String>,
}

/// A program that was recorded.
pub(crate) struct Recording {
    pub(crate) ended: Ended,
    /// What heapline said.
    pub(crate) said: String,
    /// What the program told the tests.
    truths: Vec<String>,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) trace: PathBuf,
}

/// What comes before what heapline says.
const HEAPLINE: &str = "heapline: ";

/// What comes before what a program tells the tests.
const TRUTH: &str = "truth: ";

pub(crate) fn heapline() -> Command {
    Command::new(env!("CARGO_BIN_EXE_heapline"))
}

/// The same, and signals end it: the tests may run under `nohup`, or in the background of a shell without job control.
pub(crate) fn heapline_with_default_signals() -> Command {
    let mut command = Command::new("env");
    command
        .arg("--default-signal=HUP,INT,QUIT,TERM")
        .arg(env!("CARGO_BIN_EXE_heapline"));
    command
}

impl Program {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            starter: Vec::new(),
            path: path.into(),
            arguments: Vec::new(),
            input: Vec::new(),
            folder: PathBuf::from("."),
            environment: Vec::new(),
            without: Vec::new(),
        }
    }

    pub(crate) fn args(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|&a| a.into()));
        self
    }

    /// Has it started by another program, such as `env`.
    pub(crate) fn started_by(mut self, starter: &[&str]) -> Self {
        self.starter = starter.iter().map(|&a| a.into()).collect();
        self
    }

    pub(crate) fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    pub(crate) fn folder(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.folder);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Runs it without a variable that the tests have.
    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.without.push(name.into());
        self
    }

    /// Runs it as it is: without the seed of all recordings.
    pub(crate) fn plain(&self) -> (Ended, Output) {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).env_remove("HEAPLINE_SEED");
        let output = self.run(command);
        (Ended::from(&output), output)
    }

    /// Runs it by another program with arguments.
    pub(crate) fn under(&self, starter: &str, arguments: &[&str]) -> Ended {
        let mut command = Command::new(starter);
        command
            .args(arguments)
            .arg(&self.path)
            .args(&self.arguments)
            .env_remove("HEAPLINE_SEED");
        Ended::from(&self.run(command))
    }

    /// What its runtime says at its end: words allocated on the minor and major heap.
    pub(crate) fn words(&self) -> f64 {
        let mut command = Command::new(&self.path);
        command
            .args(&self.arguments)
            .env("OCAMLRUNPARAM", "v=0x400");
        let output = self.run(command);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let get = |name: &str| -> f64 {
            // Programs that it started say it too, but before it.
            stderr
                .lines()
                .rev()
                .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
                .unwrap_or_else(|| panic!("{} does not tell {name} {stderr}", self.path.display()))
        };
        get("minor_words:") + get("major_words:") - get("promoted_words:")
    }

    /// Runs it under `heapline record` with these options.
    pub(crate) fn record(&self, options: &[&str]) -> Recording {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.ctf");
        let mut command = heapline();
        command
            .arg("record")
            .arg("-o")
            .arg(&trace)
            .args(options)
            .arg("--")
            .arg(&self.path)
            .args(&self.arguments);
        let output = self.run(command);
        let said: Vec<&str> = str::from_utf8(&output.stderr)
            .unwrap()
            .lines()
            .filter(|line| line.starts_with(HEAPLINE))
            .collect();
        Recording {
            ended: Ended::from(&output),
            said: said.join("\n"),
            truths: truths(&output, ""),
            folder,
            trace,
        }
    }

    fn run(&self, mut command: Command) -> Output {
        if let [program, arguments @ ..] = &self.starter[..] {
            let started = std::mem::replace(&mut command, Command::new(program));
            command.args(arguments).arg(started.get_program());
            command.args(started.get_args());
            for (name, value) in started.get_envs() {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
        }
        for name in &self.without {
            command.env_remove(name);
        }
        let mut child = command
            .envs(self.environment.iter().map(|(n, v)| (n, v)))
            .current_dir(&self.folder)
            // Some believe it more than the system.
            .env("PWD", std::path::absolute(&self.folder).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", self.path.display()));
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // Not every program reads it.
                let _ = stdin.write_all(&self.input);
            });
            child.wait_with_output().unwrap()
        })
    }
}

impl Recording {
    /// Its trace, which must be flawless.
    pub(crate) fn read(&self) -> Trace {
        Trace::strict(&self.trace)
    }

    /// What the program told the tests while it was recorded: the rest of the first line that begins so.
    #[track_caller]
    pub(crate) fn truth(&self, beginning: &str) -> &str {
        let mut lines = self.truths.iter();
        lines
            .find_map(|line| line.strip_prefix(beginning))
            .unwrap()
            .trim()
    }
}

impl From<&Output> for Ended {
    fn from(output: &Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stderr: Vec<&str> = stderr
            .lines()
            .filter(|line| !line.starts_with(HEAPLINE) && !line.starts_with(TRUTH))
            .collect();
        Self {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: stderr.join("\n"),
            status: shell_status(output.status),
        }
    }
}

/// What a program told the tests: the rest of the lines that begin so.
pub(crate) fn truths(output: &Output, beginning: &str) -> Vec<String> {
    String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter_map(|line| line.strip_prefix(TRUTH)?.strip_prefix(beginning))
        .map(|rest| rest.trim().to_owned())
        .collect()
}

pub(crate) fn shell_status(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap())
}
