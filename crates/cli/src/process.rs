//! Finds the trace of a process that is being recorded.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// The process that an argument means: a number that is no file.
pub(crate) fn id(subject: &Path) -> Option<u32> {
    let pid = subject.to_str()?.parse().ok()?;
    (!subject.exists()).then_some(pid)
}

/// The trace that a process is recorded to; fails if there is none.
pub(crate) fn trace_of(pid: u32) -> anyhow::Result<PathBuf> {
    match find_trace(pid)? {
        Some(trace) => Ok(trace),
        None => {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            bail!(
                "process {pid} ({}) is not being recorded; attach to it with: heapline attach {pid}",
                name.trim()
            )
        }
    }
}

/// The trace that a process is recorded to, if there is one: the process has the tail of it in its
/// memory.
pub(crate) fn find_trace(pid: u32) -> anyhow::Result<Option<PathBuf>> {
    let maps = match fs::read_to_string(format!("/proc/{pid}/maps")) {
        Ok(maps) => maps,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("there is neither a file nor a process {pid}")
        }
        Err(error) => {
            return Err(error).with_context(|| {
                format!("cannot look into process {pid}; run this as its user, or as root")
            });
        }
    };
    let traces: Vec<PathBuf> = maps.lines().filter_map(trace_in).collect();
    // A process that was forked has the tail of its parent too.
    let own = traces.iter().find(|trace| owner(trace) == Some(pid.into()));
    let trace = own.or(traces.last()).cloned();
    Ok(trace.map(|trace| {
        if trace.exists() {
            return trace;
        }
        // In another mount namespace, such as that of a container.
        let root = PathBuf::from(format!("/proc/{pid}/root"));
        root.join(trace.strip_prefix("/").unwrap_or(&trace))
    }))
}

/// The process that records to a trace, as it sees itself.
pub(crate) fn owner(trace: &Path) -> Option<u64> {
    #[cfg(recording)]
    return heapline_recorder::tail::owner(trace).ok().flatten();
    #[cfg(not(recording))]
    return {
        let _ = trace;
        None
    };
}

/// The trace whose tail a line of the memory map names.
fn trace_in(line: &str) -> Option<PathBuf> {
    let path = &line[line.find('/')?..];
    let trace = path.strip_suffix(".tail")?;
    Some(PathBuf::from(unescaped(trace)))
}

/// The kernel writes line feeds as an escape.
fn unescaped(path: &str) -> String {
    path.replace("\\012", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_found_by_the_tail_in_memory() {
        let line = "7f0a-7f0b rw-s 00000000 08:01 42    /srv/a b/app.7.ctf.tail";
        assert_eq!(trace_in(line).unwrap(), Path::new("/srv/a b/app.7.ctf"));
        let deleted = format!("{line} (deleted)");
        assert_eq!(trace_in(&deleted), None);
        assert_eq!(trace_in("7f0a-7f0b rw-p 00000000 00:00 0 "), None);
    }

    #[test]
    fn numbers_are_processes_unless_there_is_such_a_file() {
        assert_eq!(id(Path::new("4711")), Some(4711));
        assert_eq!(id(Path::new("trace.ctf")), None);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("4711");
        fs::write(&file, "").unwrap();
        assert_eq!(id(&file), None);
    }
}
