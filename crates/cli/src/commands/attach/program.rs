//! A running program, and the reasons why it cannot be recorded.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::bail;
use heapline_attach::{Identity, Module, Process, check};
use heapline_recorder::control::FileView;

use super::super::cpu_time::CpuTime;
use super::dormant::{self, Dormant};
use crate::rust_program;

/// The name of the preloaded library begins so: see `record/library.rs`.
const PRELOADED: &str = "/libheapline-agent-";

/// A program that can be recorded.
pub(in crate::commands) struct Running {
    pub(in crate::commands) pid: i32,
    pub(in crate::commands) access: Access,
    /// Its name.
    pub(in crate::commands) name: String,
    /// Its users.
    pub(in crate::commands) identity: Identity,
    /// When it was started, by which it is told from a later process with the same number.
    started: Option<String>,
}

/// The way to a program.
pub(in crate::commands) enum Access {
    /// It waits for heapline.
    Socket(Dormant),
    /// It can be traced.
    Memory(Process),
}

/// The reason to look for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Purpose {
    Record,
    Snapshot,
}

impl Running {
    /// Finds a process. It has not been touched if this fails.
    pub(in crate::commands) fn find(
        pid: i32,
        purpose: Purpose,
        allow_seccomp: bool,
    ) -> anyhow::Result<Self> {
        let started = start_time(pid);
        let waiting = waiting(pid, allow_seccomp)?
            .filter(|dormant| purpose != Purpose::Snapshot || dormant.takes_snapshots());
        let access = match waiting {
            Some(dormant) => Access::Socket(dormant),
            None => {
                let process = check(pid, allow_seccomp)?;
                check_runtime(&process, purpose)?;
                Access::Memory(process)
            }
        };
        Ok(Self {
            pid,
            access,
            name: name(pid),
            identity: Identity::read(&pid.to_string())?,
            started,
        })
    }

    /// The files that it sees.
    pub(in crate::commands) fn files(&self) -> io::Result<FileView> {
        match &self.access {
            Access::Socket(dormant) => Ok(dormant.files),
            Access::Memory(_) => FileView::of(&self.pid.to_string()),
        }
    }

    /// Its root directory, as seen from here.
    pub(in crate::commands) fn root(&self) -> PathBuf {
        format!("/proc/{}/root", self.pid).into()
    }

    /// The CPU time that it has used; `None` once it has ended.
    pub(in crate::commands) fn cpu_time(&self) -> Option<CpuTime> {
        CpuTime::of(self.pid.cast_unsigned())
    }

    /// Returns false once it has ended.
    pub(in crate::commands) fn is_alive(&self) -> bool {
        self.watch()()
    }

    /// A function that returns false once it has ended.
    pub(in crate::commands) fn watch(&self) -> impl Fn() -> bool + use<> {
        let (pid, started) = (self.pid, self.started.clone());
        move || {
            let now = start_time(pid);
            now.is_some() && now == started
        }
    }
}

/// A process that waits for heapline.
fn waiting(pid: i32, allow_seccomp: bool) -> anyhow::Result<Option<Dormant>> {
    match Identity::read(&pid.to_string()) {
        // One that is stopped or has ended does not answer.
        Ok(identity) if !matches!(identity.state, 'T' | 'Z' | 'X') => {
            Dormant::find(pid, &identity, allow_seccomp)
        }
        _ => Ok(None),
    }
}

/// The name of the program of a process.
fn name(pid: i32) -> String {
    // Of a process that protects itself, only the second is known.
    match fs::read_link(format!("/proc/{pid}/exe")) {
        Ok(executable) => {
            let name = executable.file_name().unwrap_or_default().to_string_lossy();
            name.trim_end_matches(" (deleted)").to_owned()
        }
        Err(_) => {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.trim_end().replace('/', "-")
        }
    }
}

/// Returns true if a process has ended, even if nobody has waited for it yet.
pub(in crate::commands) fn has_ended(pid: u32) -> bool {
    i32::try_from(pid).ok().and_then(start_time).is_none()
}

/// The time at which a process was started; `None` if it has ended.
fn start_time(pid: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program may have any characters.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?;
    let started = fields.nth(18)?;
    (!matches!(state, "Z" | "X")).then(|| started.to_owned())
}

/// Checks that a process has an OCaml runtime that can be recorded.
fn check_runtime(process: &Process, purpose: Purpose) -> anyhow::Result<()> {
    let pid = process.pid();
    let modules = process.modules()?;
    let has = |name| process.symbol(&modules, name).is_some();
    if !has("caml_start_program") {
        if has("caml_interprete") {
            bail!(
                "process {pid} runs OCaml bytecode, which is not supported; build the program with \
                 ocamlopt (dune: the .exe target)"
            );
        }
        if let Some(instead) =
            rust_program::instead_of_attaching(Path::new(&format!("/proc/{pid}/exe")))
        {
            bail!("process {pid} is a Rust program, which cannot be attached to; {instead}");
        }
        bail!(
            "process {pid} is no OCaml program, or does not export the symbols of its OCaml runtime \
             (link it with -ccopt -Wl,-E)"
        );
    }
    // Its runtime has a sampler, but other stacks, frame descriptors and domain states.
    if has("caml_alloc_local") {
        bail!(
            "process {pid} was built with OxCaml, whose runtime heapline does not support; build it with \
             OCaml 4.14, or 5.3 or later, or link memtrace, whose traces heapline reads"
        );
    }
    if !has("caml_memprof_start") {
        bail!(
            "process {pid} was built with an OCaml before 4.11, which has no sampler; build it with \
             4.14, or 5.3 or later"
        );
    }
    // 5.2 has all functions of `Gc.Memprof`, which do nothing, but not this one of `Domain`.
    if !has("caml_memprof_young_trigger") && !has("caml_ml_domain_index") {
        bail!(
            "process {pid} was built with OCaml 5.0, 5.1 or 5.2, which have no sampler; build it with \
             5.3 or later, or 4.14"
        );
    }
    let is_preloaded = |module: &Module| module.path.contains(PRELOADED);
    if modules.iter().any(is_preloaded) {
        if dormant::listener(pid).is_some() {
            bail!(
                "process {pid} waits for heapline, but its socket cannot be reached; run heapline in its \
                 network namespace, such as inside of the container"
            );
        }
        if purpose == Purpose::Record {
            bail!(
                "process {pid} was started by `heapline record`, which records it already; its trace can \
                 be read while it runs"
            );
        }
    }
    Ok(())
}
