//! A Ballista cluster of processes on this machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::ports::{free_port, wait_for};

/// The folder with `ballista-scheduler` and `ballista-executor`.
const PROGRAMS: &str = "HEAPLINE_BALLISTA";

/// A scheduler and executors, which end with it.
pub struct Cluster {
    scheduler: Child,
    pub address: String,
    executors: Vec<Child>,
    folder: tempfile::TempDir,
}

impl Cluster {
    /// Starts one; `None`, after a message, if the programs are not here.
    pub fn start(executors: usize) -> Option<Self> {
        let Some(programs) = std::env::var_os(PROGRAMS).map(PathBuf::from) else {
            heapline_testkit::missing(&format!("{PROGRAMS} is not set; see cargo xtask fleet"));
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let scheduler = start(
            &programs.join("ballista-scheduler"),
            folder.path(),
            "scheduler",
            &[
                "--bind-host=127.0.0.1",
                &format!("--bind-port={port}"),
                "--scheduler-policy=pull-staged",
            ],
        );
        let mut cluster = Self {
            scheduler,
            address: format!("127.0.0.1:{port}"),
            executors: Vec::new(),
            folder,
        };
        wait_for(port);
        for number in 0..executors {
            let flight = free_port();
            let name = format!("executor-{number}");
            let arguments = [
                "--scheduler-host=127.0.0.1".to_owned(),
                format!("--scheduler-port={port}"),
                "--bind-host=127.0.0.1".to_owned(),
                "--external-host=127.0.0.1".to_owned(),
                format!("--bind-port={flight}"),
                format!("--bind-grpc-port={}", free_port()),
                format!("--bind-health-port={}", free_port()),
                format!("--work-dir={}", cluster.folder.path().join(&name).display()),
                "--vcores=2".to_owned(),
                "--task-scheduling-policy=pull-staged".to_owned(),
                "--executor-heartbeat-interval-seconds=1".to_owned(),
            ];
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            fs::create_dir(cluster.folder.path().join(&name)).unwrap();
            let program = programs.join("ballista-executor");
            let child = start(&program, cluster.folder.path(), &name, &arguments);
            cluster.executors.push(child);
            wait_for(flight);
        }
        Some(cluster)
    }

    /// Ends an executor that has results of a statement which is being run, at once, as a machine that
    /// fails does.
    pub fn kill_executor(&mut self) {
        let mut executor = self.executors.pop().unwrap();
        let folder = format!("executor-{}", self.executors.len());
        heapline_testkit::wait(&format!("results of {folder}"), || {
            has_file(&self.folder.path().join(&folder))
        });
        executor.kill().unwrap();
        executor.wait().unwrap();
    }

    /// The logs, for messages of failed tests.
    pub fn logs(&self) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "log") {
                let log = fs::read_to_string(&path).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let tail = lines[lines.len().saturating_sub(30)..].join("\n");
                text.push_str(&path.display().to_string());
                text.push_str(&tail);
            }
        }
        text
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.executors.iter_mut().chain([&mut self.scheduler]) {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn has_file(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.any(|entry| !entry.path().is_dir() || has_file(&entry.path()))
}

fn start(program: &Path, folder: &Path, name: &str, arguments: &[&str]) -> Child {
    let log = File::create(folder.join(format!("{name}.log"))).unwrap();
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run {}: {error}", program.display()))
}
