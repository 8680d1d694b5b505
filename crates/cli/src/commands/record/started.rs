//! A recording that runs beside this program, for `heapline top -- PROGRAM`.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::Context;
use heapline_recorder::inherited;
use heapline_text::units::bytes;
use signal_hook::consts::SIGTERM;

use super::super::cpu_time::CpuTime;
use super::{Args, Prepared, run, said};
use crate::error::{note, warn};

/// A program that is recorded while this one goes on.
pub(crate) struct Started {
    child: Child,
    prepared: Prepared,
    /// The file that its output goes to.
    output: PathBuf,
    /// The CPU time that it used until it was last looked at.
    cpu_time: Option<Duration>,
    args: Args,
}

impl Started {
    /// Starts the program apart from the terminal: its output goes to a file.
    pub(super) fn new(args: Args, mut prepared: Prepared) -> anyhow::Result<Self> {
        let program = prepared.program.display().to_string();
        let folder = prepared
            .traces
            .shown_prefix
            .parent()
            .unwrap_or(Path::new(""));
        let output = tempfile::Builder::new()
            .prefix(".heapline-")
            .suffix(".out")
            .make_in(folder, |path| {
                File::options().append(true).create_new(true).open(path)
            })
            .context("cannot create a file for the output of the program")?;
        let command = &mut prepared.command;
        command
            .stdin(Stdio::null())
            .stdout(output.as_file().try_clone()?)
            .stderr(output.as_file().try_clone()?)
            // What the terminal sends is for this program.
            .process_group(0);
        inherited::hand_on(command);
        let child = command
            .spawn()
            .with_context(|| format!("cannot run {program}"))?;
        let path = prepared.traces.first(child.id()).with_extension("out");
        output
            .persist(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self {
            child,
            prepared,
            output: path,
            cpu_time: None,
            args,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The trace of the program.
    pub(crate) fn trace(&self) -> PathBuf {
        self.prepared.traces.first(self.child.id())
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.read_cpu_time();
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal, or SIGTERM, and waits for the end.
    pub(crate) fn end(&mut self, signal: Option<i32>) {
        run::forward(self.child.id(), signal.unwrap_or(SIGTERM));
        run::wait_for_end(self.child.id());
        self.read_cpu_time();
        let _ = self.child.wait();
    }

    /// Reads the CPU time, which is gone when the program has been waited for.
    fn read_cpu_time(&mut self) {
        if let Some(time) = CpuTime::of(self.child.id()) {
            self.cpu_time = Some(time.total());
        }
    }

    /// Completes the trace of a program that has ended, and says where everything is.
    pub(crate) fn finish(&mut self) {
        let pid = self.child.id();
        let recorded = said::Recorded {
            trace: self.prepared.traces.first(pid),
            others: self.prepared.traces.others(pid),
            prefix: self.prepared.traces.shown_prefix.clone(),
            kind: self.prepared.kind,
            rate: self.args.recording.rate,
            cpu_time: self.cpu_time,
            became: None,
        };
        if let Err(error) = recorded.say(false, None) {
            warn(&format!("{error:#}"));
        }
        let output = self.output.display();
        match fs::metadata(&self.output).map(|metadata| metadata.len()) {
            Ok(0) => drop(fs::remove_file(&self.output)),
            Ok(size) => note(&format!(
                "{output}: the output of the program, {}",
                bytes(size as f64)
            )),
            Err(_) => {}
        }
    }
}
