//! `heapline record --wait`: a program that is not recorded until `heapline attach`.

use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use heapline_recorder::inherited;
use heapline_recorder::settings::WaitSettings;

use super::{Args, Kind, library};
use crate::error::note;

impl Args {
    /// Runs the program in place of this one. Returns only if that fails.
    pub(super) fn exec_and_wait(&self) -> anyhow::Result<ExitCode> {
        let (mut command, program, kind) = self.command()?;
        if kind == Kind::Rust {
            bail!(
                "{} is a Rust program with Heapline's allocator; --wait is for OCaml programs",
                program.display()
            );
        }
        library::preload(&mut command)?;
        let follow = self.follow();
        WaitSettings { follow }.set_environment(&mut command);
        if !self.quiet {
            let pid = std::process::id();
            note(&format!(
                "process {pid} runs {} and waits; record it with: heapline attach {pid}",
                program.display()
            ));
        }
        inherited::hand_on(&mut command);
        let error = command.exec();
        Err(anyhow!(error).context(format!("cannot run {}", program.display())))
    }
}
