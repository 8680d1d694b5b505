//! Datasets of many runs. The program `heapline-fleet` answers questions about them: a process for each.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use form_urlencoded::Parse;
use heapline_engine::{shell_path, shell_quote};
use hyper::StatusCode;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::error::ApiError;
use crate::snapshot::ListedSnapshot;

/// The largest answer.
const LARGEST: u64 = 256 << 20;

/// The versions of each service, with the number of their runs, in the order of their first runs.
const RUNS: &str = "select service, coalesce(version, '') as version, count(*) as runs, min(day) as first_day, max(day) as last_day \
    from runs group by service, coalesce(version, '') order by min(started_us), service, version";

/// A dataset, and the program that answers questions about it.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The folder or address as the user named it.
    pub dataset: String,
    /// The program `heapline-fleet`.
    pub program: PathBuf,
}

/// A report: its command, options, and arguments, which come in this order.
struct Report {
    name: &'static str,
    options: &'static [&'static str],
    flags: &'static [&'static str],
    arguments: &'static [&'static str],
}

const REPORTS: [Report; 4] = [
    Report {
        name: "top",
        options: &["by", "measure", "where", "service", "runs", "rows"],
        flags: &[],
        arguments: &[],
    },
    Report {
        name: "trend",
        options: &["by", "measure", "where", "service", "runs"],
        flags: &[],
        arguments: &[],
    },
    Report {
        name: "diff",
        options: &["by", "measure", "where", "service", "runs", "rows"],
        flags: &["significant"],
        arguments: &["before", "after"],
    },
    Report {
        name: "regressions",
        options: &[
            "by", "measure", "where", "service", "runs", "rows", "before", "after",
        ],
        flags: &[],
        arguments: &[],
    },
];

impl Fleet {
    /// The name of the dataset without folders.
    #[must_use]
    pub fn name(&self) -> &str {
        let name = self.dataset.trim_end_matches('/');
        name.rsplit('/').next().unwrap_or_default()
    }
}

/// A dataset that is served.
#[derive(Debug)]
pub(crate) struct ServedFleet {
    fleet: Fleet,
    /// Statements use all cores.
    turns: Semaphore,
}

/// `GET /api/v1/status`, as far as a dataset has it.
#[derive(Serialize)]
pub(crate) struct FleetStatus<'a> {
    state: &'static str,
    version: &'static str,
    kind: &'static str,
    trace: &'a str,
    against: Option<String>,
    snapshots: [ListedSnapshot; 0],
    command: String,
    recording: bool,
    error: Option<String>,
}

/// A report, and the command that prints it.
pub(crate) struct FleetAnswer {
    pub(crate) json: Vec<u8>,
    pub(crate) command: String,
    pub(crate) identity: Arc<str>,
}

impl ServedFleet {
    pub(crate) fn new(fleet: Fleet) -> Self {
        Self {
            fleet,
            turns: Semaphore::new(2),
        }
    }

    pub(crate) fn status(&self) -> FleetStatus<'_> {
        FleetStatus {
            state: "ready",
            version: env!("CARGO_PKG_VERSION"),
            kind: "fleet",
            trace: self.fleet.name(),
            against: None,
            snapshots: [],
            command: format!("heapline view {}", shell_path(&self.fleet.dataset)),
            recording: false,
            error: None,
        }
    }

    /// Runs `heapline-fleet`. If nobody waits for the answer any more, ends it.
    pub(crate) async fn answer(&self, report: &str, query: &str) -> Result<FleetAnswer, ApiError> {
        let arguments = self.arguments(report, form_urlencoded::parse(query.as_bytes()))?;
        let _turn = self.turns.acquire().await;
        let mut command = Command::new(&self.fleet.program);
        command
            .args(&arguments)
            .args((report != "runs").then_some("--json"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| self.failed(&error))?;
        let mut running = Running(child);
        let (printed, errors) = (read(running.0.stdout.take()), read(running.0.stderr.take()));
        let (printed, errors) = (finished(printed).await, finished(errors).await);
        // It has closed its output, and is about to end.
        let status = tokio::task::spawn_blocking(move || running.0.wait());
        let status = finished(status)
            .await
            .map_err(|error| self.failed(&error))?;
        let json = printed.map_err(|error| self.failed(&error))?;
        if !status.success() {
            return Err(refused(&errors.unwrap_or_default()));
        }
        let printed: Vec<_> = arguments.iter().map(|one| shell_quote(one)).collect();
        Ok(FleetAnswer {
            json,
            command: format!("heapline fleet {}", printed.join(" ")),
            identity: form_urlencoded::byte_serialize(self.fleet.dataset.as_bytes())
                .collect::<String>()
                .into(),
        })
    }

    /// The arguments of `heapline-fleet`: options have the names of parameters.
    fn arguments(&self, report: &str, pairs: Parse<'_>) -> Result<Vec<String>, ApiError> {
        let dataset = if self.fleet.dataset.starts_with('-') {
            format!("./{}", self.fleet.dataset)
        } else {
            self.fleet.dataset.clone()
        };
        if report == "runs" {
            let words = ["sql", &dataset, RUNS, "--format", "json"];
            return Ok(words.map(str::to_owned).to_vec());
        }
        let Some(report) = REPORTS.iter().find(|known| known.name == report) else {
            return Err(ApiError::new(
                StatusCode::NOT_FOUND,
                "not_found",
                format!("`{report}` is not a report about datasets"),
            ));
        };
        let mut options = Vec::new();
        let mut arguments = vec![None; report.arguments.len()];
        for (name, value) in pairs {
            let argument = report.arguments.iter().position(|known| *known == name);
            if let Some(argument) = argument {
                if value.starts_with('-') {
                    // It would be taken for an option.
                    return Err(bad_parameter(format!("{name} cannot be {value}")));
                }
                arguments[argument] = Some(value.into_owned());
            } else if report.options.contains(&&*name) && value.starts_with('-') {
                options.push(format!("--{name}={value}"));
            } else if report.options.contains(&&*name) {
                options.extend([format!("--{name}"), value.into_owned()]);
            } else if report.flags.contains(&&*name) && matches!(&*value, "" | "true") {
                options.push(format!("--{name}"));
            } else {
                return Err(bad_parameter(format!(
                    "`{}` has no parameter {name}={value}",
                    report.name
                )));
            }
        }
        let mut words = vec![report.name.to_owned(), dataset];
        for (argument, name) in arguments.into_iter().zip(report.arguments) {
            let missing = || bad_parameter(format!("`{}` needs {name}", report.name));
            words.push(argument.ok_or_else(missing)?);
        }
        words.append(&mut options);
        Ok(words)
    }

    fn failed(&self, error: &io::Error) -> ApiError {
        ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "failed",
            format!("cannot run {}: {error}", self.fleet.program.display()),
        )
    }
}

fn bad_parameter(message: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "bad_parameter", message)
}

/// The message of a program that failed, without its name and hints on its options.
fn refused(printed: &[u8]) -> ApiError {
    let text = String::from_utf8_lossy(printed);
    let text = text.split("\n\n").next().unwrap_or_default().trim();
    let text = text.strip_prefix("heapline-fleet: ").unwrap_or(text);
    let text = text.strip_prefix("error: ").unwrap_or(text);
    // What is wrong with a query comes after the query, and points into it.
    let text = match text.split_once("' for '--where <QUERY>': ") {
        Some((_, reason)) => reason,
        None => text,
    };
    ApiError::new(StatusCode::BAD_REQUEST, "failed", text)
}

/// A process that ends when nobody waits for it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It fails if the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts reading what a process prints.
fn read(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<io::Result<Vec<u8>>> {
    tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        let Some(pipe) = pipe else { return Ok(bytes) };
        let length = pipe.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if length as u64 > LARGEST {
            return Err(io::Error::other("its answer is too large"));
        }
        Ok(bytes)
    })
}

async fn finished<T>(task: JoinHandle<io::Result<T>>) -> io::Result<T> {
    task.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(report: &str, query: &str) -> Result<Vec<String>, ApiError> {
        let fleet = Fleet {
            dataset: "profiles".to_owned(),
            program: PathBuf::new(),
        };
        ServedFleet::new(fleet).arguments(report, form_urlencoded::parse(query.as_bytes()))
    }

    #[test]
    fn parameters_become_arguments() {
        assert_eq!(
            arguments("top", "by=service&where=module+%3D+%22A%22").unwrap(),
            [
                "top",
                "profiles",
                "--by",
                "service",
                "--where",
                "module = \"A\""
            ]
        );
        assert_eq!(
            arguments("diff", "after=1.5&significant=true&service=-x&before=1.4").unwrap(),
            [
                "diff",
                "profiles",
                "1.4",
                "1.5",
                "--significant",
                "--service=-x"
            ]
        );
    }

    #[test]
    fn only_parameters_of_reports_are_accepted() {
        for (report, query) in [
            ("top", "cluster=evil:50050"),
            ("trend", "rows=3"),
            ("diff", "before=1.4"),
            ("diff", "before=1.4&after=--sql"),
            ("sql", "statement=select+1"),
        ] {
            assert!(arguments(report, query).is_err(), "{report}?{query}");
        }
    }

    #[test]
    fn messages_of_the_program_are_kept() {
        let message = |printed: &str| refused(printed.as_bytes()).to_string();
        assert_eq!(message("heapline-fleet: no runs\n"), "no runs");
        assert_eq!(
            message("error: invalid value 'x' for '--where <QUERY>': unknown field\n  x\n  ^"),
            "unknown field\n  x\n  ^"
        );
        let usage = "error: invalid value 'x' for '--by <BY>'\n  [possible values: day]\n\nFor more information\n";
        assert_eq!(
            message(usage),
            "invalid value 'x' for '--by <BY>'\n  [possible values: day]"
        );
    }
}
