//! Loads a library into a process, and calls a function of it.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::arch::{self, SYSCALL, SYSCALL_ALIGNMENT};
use crate::moment::Moments;
use crate::process::{Module, Process};
use crate::refusal::Refusal;
use crate::symbols::offset;
use crate::thread::{Area, Stopped, checked};
use crate::{Error, Result, failed};

/// `RTLD_NOW | RTLD_LOCAL`
const LOAD_NOW: u64 = 2;

/// The time in which a safe moment is to be found.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time between two tries.
const PAUSE: Duration = Duration::from_millis(1);

/// A library to load.
#[derive(Clone, Copy, Debug)]
pub struct Library<'a> {
    /// Its name, by which it is found again in the process, where it was loaded or preloaded from
    /// `libNAME.so`. Letters, digits and `-`.
    pub name: &'a str,
    /// Its file.
    pub bytes: &'a [u8],
}

/// The result of a call.
#[derive(Clone, Copy, Debug)]
pub struct Called {
    /// The result of the function.
    pub result: u64,
    /// The time for which a thread of the process was stopped.
    pub stopped: Duration,
    /// Where the library is in the process.
    pub base: u64,
}

/// Calls `function(argument, length of argument)` of a library, which is loaded first if the process
/// does not have it.
///
/// One thread of the process is stopped meanwhile.
///
/// # Errors
///
/// The process goes on as before.
pub fn call(
    process: &Process,
    library: Library<'_>,
    function: &str,
    argument: &[u8],
) -> Result<Called> {
    let modules = process.modules().map_err(failed("inspect the program"))?;
    let moments = Moments::find(process, &modules);
    let syscalls = find_syscalls(process, &modules)?;
    let dlopen = process.symbol(&modules, "dlopen");
    let dlopen = dlopen.ok_or(Refusal::NoLoader(process.pid()))?;
    let dlerror = process.symbol(&modules, "dlerror");
    let entry = offset(library.bytes, function);
    let entry = entry.ok_or_else(|| Error::Load(format!("it has no function {function}")))?;
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        for tid in process.threads().map_err(failed("list threads"))? {
            let stopped_at = Instant::now();
            let Some(mut thread) = Stopped::new(process, tid)? else {
                continue;
            };
            if !moments.is_safe(process, &mut thread) {
                continue;
            }
            // On arm64 the kernel would take the thread's own instruction for the restart of its own call.
            let own = arch::program_counter(&thread.registers);
            let syscall = syscalls.iter().find(|place| **place != own);
            let Ok(mut area) = thread.area(*syscall.unwrap_or(&syscalls[0]))? else {
                continue;
            };
            let base = match library.find(&modules) {
                Some(base) => base,
                None => load(process, &mut area, library, &modules, dlopen, dlerror)?,
            };
            let argument_at = area.put(argument)?;
            let result = area.call(base + entry, [argument_at, argument.len() as u64])?;
            drop(area);
            drop(thread);
            return Ok(Called {
                result,
                stopped: stopped_at.elapsed(),
                base,
            });
        }
        std::thread::sleep(PAUSE);
    }
    Err(Error::NoSafeMoment)
}

/// How the names of files in memory begin.
const MEMORY: &str = "/memfd:";

impl Library<'_> {
    /// The base of the library in a process that has it.
    #[must_use]
    pub fn find(self, modules: &[Module]) -> Option<u64> {
        let path = format!("{MEMORY}{}", self.name);
        let preloaded = format!("lib{}.so", self.name);
        let is_it = |module: &&Module| {
            let rest = module.path.strip_prefix(&path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
                || module.name() == preloaded
        };
        modules.iter().find(is_it).map(|module| module.base)
    }
}

/// Loads the library from a file in memory, so that it does not matter which files the process can read.
fn load(
    process: &Process,
    area: &mut Area<'_, '_>,
    library: Library<'_>,
    modules: &[Module],
    dlopen: u64,
    dlerror: Option<u64>,
) -> Result<u64> {
    let name = area.put(library.name.as_bytes())?;
    let flags = u64::from(libc::MFD_CLOEXEC);
    let number = area.system_call(libc::SYS_memfd_create, [name, flags, 0, 0, 0, 0])?;
    let number = checked("create a file in memory in the program", number)?;
    let fill = || {
        let path = format!("/proc/{}/fd/{number}", process.pid());
        File::options()
            .write(true)
            .open(path)?
            .write_all(library.bytes)
    };
    let loaded = fill().map_err(failed("write the library")).and_then(|()| {
        // The loader takes a path that it knows for the library that it has loaded from there, such as that of another
        // version. So the path is a new one for each library.
        let loaded = modules
            .iter()
            .filter(|module| module.path.starts_with(MEMORY));
        let path = format!("/proc/self/fd/{}{number}", "./".repeat(loaded.count()));
        let path = area.put(path.as_bytes())?;
        area.call(dlopen, [path, LOAD_NOW])
    });
    let message = match (&loaded, dlerror) {
        (Ok(0), Some(dlerror)) => area.call(dlerror, [0, 0]).map(|at| text(process, at)),
        _ => Ok(String::new()),
    };
    checked(
        "close a file in the program",
        area.system_call(libc::SYS_close, [number, 0, 0, 0, 0, 0])?,
    )?;
    if loaded? == 0 {
        return Err(Error::Load(message?));
    }
    let modules = process.modules().map_err(failed("inspect the program"))?;
    let base = library.find(&modules);
    base.ok_or_else(|| Error::Load("it is not where it should be".to_owned()))
}

/// A message in the process.
fn text(process: &Process, at: u64) -> String {
    let mut bytes = [0; 512];
    let mut len = bytes.len();
    while len > 0 && process.read(at, &mut bytes[..len]).is_err() {
        len /= 2;
    }
    let text = bytes[..len].split(|byte| *byte == 0).next();
    String::from_utf8_lossy(text.unwrap_or_default()).into_owned()
}

/// Looks for two instructions for system calls in the C library. There is at least one.
fn find_syscalls(process: &Process, modules: &[Module]) -> Result<Vec<u64>> {
    let names = ["libc.so", "libc-", "ld-"];
    let is_known = |module: &&Module| names.iter().any(|name| module.name().starts_with(name));
    let mut found = Vec::new();
    for module in modules.iter().filter(is_known) {
        for (start, end) in module.code() {
            let mut page = vec![0; 1 << 16];
            for at in (*start..*end).step_by(page.len()) {
                let len = usize::try_from(end - at)
                    .unwrap_or(usize::MAX)
                    .min(page.len());
                if process.read(at, &mut page[..len]).is_err() {
                    break;
                }
                let places = page[..len]
                    .windows(SYSCALL.len())
                    .step_by(SYSCALL_ALIGNMENT);
                let is_it = |(_, bytes): &(usize, &[u8])| *bytes == SYSCALL;
                let places = places.enumerate().filter(is_it);
                found.extend(places.map(|(n, _)| at + (n * SYSCALL_ALIGNMENT) as u64));
                if found.len() > 1 {
                    return Ok(found);
                }
            }
        }
    }
    if found.is_empty() {
        return Err(Refusal::NoLoader(process.pid()).into());
    }
    Ok(found)
}
