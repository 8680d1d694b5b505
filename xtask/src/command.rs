//! Runs commands.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The number of lines of a log that are shown on failure: the cause is near the end.
const LINES_OF_A_LOG: usize = 40;

/// The result of a task, with an error message.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// The project's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
        .to_owned()
}

/// A program with its arguments, run in the project's folder.
pub(crate) struct Run {
    command: Command,
    text: String,
}

/// The cargo that runs us.
pub(crate) fn cargo(arguments: &[&str]) -> Run {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut run = program(&cargo, arguments);
    run.text = format!("cargo {}", arguments.join(" "));
    // What the cargo that runs us sets is not meant for what we build: build scripts that look at it, as that of ring does,
    // would run again whenever cargo is run by hand in between.
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let of_package =
        |name: &String| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for name in names.filter(of_package).chain(["RUSTFLAGS".to_owned()]) {
        run.command.env_remove(name);
    }
    run
}

/// A cargo that lints the workspace while it compiles it. `cargo clippy` would check all dependencies in a way of its
/// own, which takes half as long as compiling them; as a wrapper of rustc, clippy uses those that are compiled.
pub(crate) fn lint(arguments: &[&str]) -> Run {
    let mut run = cargo(arguments);
    run.command
        .env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
        // `-D warnings`, with the separator of `cargo clippy`.
        .env(
            "CLIPPY_ARGS",
            "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__",
        );
    run
}

/// Any program.
pub(crate) fn program(name: &str, arguments: &[&str]) -> Run {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(root());
    Run {
        command,
        text: format!("{name} {}", arguments.join(" ")),
    }
}

/// Returns true if a program exists and works: rustup installs stand-ins for missing components.
pub(crate) fn exists(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

impl Run {
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self.text = format!("{name}={value:?} {}", self.text);
        self
    }

    /// For tests: one that lacks a tool fails, and recordings have the same samples each time.
    pub(crate) fn reproducible(self) -> Self {
        self.env("HEAPLINE_REQUIRE", "1").env("HEAPLINE_SEED", "1")
    }

    /// In another folder than the project's.
    pub(crate) fn folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Runs it, with what it prints in a file; when it fails, the end of that is in the error.
    pub(crate) fn run_into(mut self, log: &Path) -> Outcome {
        let unusable = |error| format!("cannot write {}: {error}", log.display());
        let file = File::create(log).map_err(unusable)?;
        let errors = file.try_clone().map_err(unusable)?;
        self.command.stdout(file).stderr(errors);
        self.run().map_err(|problem| {
            let text = std::fs::read(log).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let lines: Vec<&str> = text.lines().collect();
            let tail = lines[lines.len().saturating_sub(LINES_OF_A_LOG)..].join("\n");
            format!("{problem}\n{tail}\nAll of it is in {}.", log.display())
        })
    }

    /// Runs it; anything but success is an error.
    pub(crate) fn run(mut self) -> Outcome {
        println!("\n> {}", self.text);
        let started = Instant::now();
        let status = self
            .command
            .status()
            .map_err(|error| format!("cannot run `{}`: {error}", self.text))?;
        if !status.success() {
            return Err(format!("`{}` failed ({status})", self.text));
        }
        println!("  ({:.1} s)", started.elapsed().as_secs_f64());
        Ok(())
    }

    /// Runs it and returns what it prints on both of its outputs.
    pub(crate) fn output(mut self) -> Outcome<String> {
        let output = self
            .command
            .output()
            .map_err(|error| format!("cannot run `{}`: {error}", self.text))?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text += &String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(format!(
                "`{}` failed ({}):\n{text}",
                self.text, output.status
            ));
        }
        Ok(text)
    }
}
