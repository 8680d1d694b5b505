//! A process: its description in `/proc`, and its memory.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use crate::{Result, failed};

/// A process, with access to its memory.
#[derive(Debug)]
pub struct Process {
    pid: i32,
    memory: File,
}

/// A file that is mapped into a process: a program or library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The address of its first byte.
    pub base: u64,
    /// The end of its mappings.
    pub end: u64,
    /// Its executable mappings.
    code: Vec<(u64, u64)>,
    /// Its name as the kernel shows it.
    pub path: String,
}

/// Fields of `/proc/PID/status`.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Real, effective, saved and file system user.
    pub users: [u32; 4],
    /// The effective group.
    pub group: u32,
    /// The process that traces it, or 0.
    pub tracer: i32,
    /// `R`, `S`, `T`, `Z` and so on.
    pub state: char,
    /// 0: none, 1: strict, 2: a filter.
    pub seccomp: u32,
    /// The number of filters of system calls.
    pub seccomp_filters: u32,
    /// Its number in its own pid namespace.
    pub inner_pid: u32,
    /// The signals that are ignored, as bits.
    pub ignored: u64,
    /// Capabilities, as bits.
    pub capabilities: u64,
}

impl Identity {
    /// Reads it of a process or thread.
    pub fn read(task: &str) -> io::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{task}/status"))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim()
        };
        let bits = |name| u64::from_str_radix(field(name), 16).unwrap_or(0);
        let mut users = [u32::MAX; 4];
        for (user, text) in users.iter_mut().zip(field("Uid:").split_whitespace()) {
            *user = text.parse().unwrap_or(u32::MAX);
        }
        let inner_pid = field("NSpid:").split_whitespace().last();
        let group = field("Gid:").split_whitespace().nth(1);
        Ok(Self {
            users,
            group: group.and_then(|group| group.parse().ok()).unwrap_or(0),
            tracer: field("TracerPid:").parse().unwrap_or(0),
            state: field("State:").chars().next().unwrap_or('?'),
            seccomp: field("Seccomp:").parse().unwrap_or(0),
            seccomp_filters: field("Seccomp_filters:").parse().unwrap_or(0),
            inner_pid: inner_pid.and_then(|pid| pid.parse().ok()).unwrap_or(0),
            ignored: bits("SigIgn:"),
            capabilities: bits("CapEff:"),
        })
    }
}

/// Signals that are pending for a thread and not blocked.
pub(crate) fn has_pending_signal(pid: i32, tid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).unwrap_or_default();
    let bits = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(line.unwrap_or_default().trim(), 16).unwrap_or(0)
    };
    (bits("SigPnd:") | bits("ShdPnd:")) & !bits("SigBlk:") != 0
}

/// Returns true if a process has a handler for a signal.
pub(crate) fn is_caught(pid: i32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let bits = u64::from_str_radix(line.unwrap_or_default().trim(), 16).unwrap_or(0);
    bits >> (signal - 1) & 1 == 1
}

impl Process {
    /// Opens the memory of a process.
    ///
    /// # Errors
    ///
    /// That is allowed only where ptrace is.
    pub fn open(pid: i32) -> io::Result<Self> {
        let path = format!("/proc/{pid}/mem");
        let memory = File::options().read(true).write(true).open(path)?;
        Ok(Self { pid, memory })
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Its threads: first those that are running.
    pub fn threads(&self) -> io::Result<Vec<i32>> {
        let mut threads = Vec::new();
        for entry in fs::read_dir(format!("/proc/{}/task", self.pid))? {
            if let Ok(tid) = entry?.file_name().to_string_lossy().parse::<i32>() {
                let call = fs::read_to_string(format!("/proc/{}/task/{tid}/syscall", self.pid));
                let is_waiting = call.is_ok_and(|call| !call.starts_with("running"));
                threads.push((is_waiting, tid));
            }
        }
        threads.sort_unstable();
        Ok(threads.into_iter().map(|(_, tid)| tid).collect())
    }

    /// The files that are mapped into it.
    pub fn modules(&self) -> io::Result<Vec<Module>> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid))?;
        let mut modules: Vec<Module> = Vec::new();
        for line in maps.lines() {
            // start-end flags offset device inode path
            let mut fields = line.splitn(6, ' ');
            let (Some(range), Some(flags), Some(offset), Some(_), Some(_), Some(path)) = (
                fields.next(),
                fields.next(),
                fields.next(),
                fields.next(),
                fields.next(),
                fields.next(),
            ) else {
                continue;
            };
            // The path is padded.
            let path = path.trim_start();
            let hex = |text| u64::from_str_radix(text, 16).ok();
            let range = range.split_once('-');
            let Some((start, end)) = range.and_then(|(a, b)| Some((hex(a)?, hex(b)?))) else {
                continue;
            };
            if !path.starts_with('/') {
                continue;
            }
            let is_first = hex(offset) == Some(0);
            match modules.last_mut() {
                Some(module)
                    if module.path == path
                        && !(is_first && module.base != start && module.has_code()) =>
                {
                    module.end = end;
                    if flags.contains('x') {
                        module.code.push((start, end));
                    }
                }
                _ if is_first => modules.push(Module {
                    base: start,
                    end,
                    code: flags
                        .contains('x')
                        .then_some((start, end))
                        .into_iter()
                        .collect(),
                    path: path.to_owned(),
                }),
                _ => {}
            }
        }
        modules.retain(Module::has_code);
        Ok(modules)
    }

    /// Reads memory.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.memory.read_exact_at(bytes, address)
    }

    /// Reads a word.
    pub fn word(&self, address: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<()> {
        self.memory
            .write_all_at(bytes, address)
            .map_err(failed("write to the program's memory"))
    }
}

impl Module {
    fn has_code(&self) -> bool {
        !self.code.is_empty()
    }

    /// Its executable mappings.
    pub(crate) fn code(&self) -> &[(u64, u64)] {
        &self.code
    }

    /// Returns true for addresses in its code.
    pub(crate) fn is_code(&self, address: u64) -> bool {
        self.code
            .iter()
            .any(|(start, end)| (*start..*end).contains(&address))
    }

    /// The name of its file without directories.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}
