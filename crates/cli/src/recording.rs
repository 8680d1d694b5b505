//! Finds the recording of a running process.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// The trace that a process is recorded to: the recorder maps `TRACE.tail` into it.
pub(crate) fn trace_of(pid: u32) -> anyhow::Result<PathBuf> {
    let maps = fs::read(format!("/proc/{pid}/maps"))
        .with_context(|| format!("cannot look at process {pid}"))?;
    traces(&maps)
        // A process in a container has a root directory of its own.
        .flat_map(|trace| {
            let inside = trace.strip_prefix("/").unwrap_or(trace);
            let outside = Path::new("/proc").join(pid.to_string()).join("root");
            [trace.to_owned(), outside.join(inside)]
        })
        .find(|trace| trace.is_file())
        .with_context(|| {
            format!("process {pid} is not being recorded; start it with `heapline record`")
        })
}

/// The traces whose tails are mapped.
fn traces(maps: &[u8]) -> impl Iterator<Item = &Path> {
    maps.split(|&byte| byte == b'\n').filter_map(|line| {
        let start = line.iter().position(|&byte| byte == b'/')?;
        let trace = line[start..].strip_suffix(b".tail")?;
        Some(Path::new(OsStr::from_bytes(trace)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_found_among_other_mappings() {
        let maps = b"\
00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/server\n\
7f53c0000000-7f53c0001000 rw-s 00000000 08:02 9   /var/a b/server.1.ctf.tail\n\
7f53c0001000-7f53c0002000 rw-s 00000000 08:02 9   /var/x.tail (deleted)\n\
7fff0000-7fff1000 rw-p 00000000 00:00 0           [stack]\n";
        let found: Vec<&Path> = traces(maps).collect();
        assert_eq!(found, [Path::new("/var/a b/server.1.ctf")]);
    }

    #[test]
    fn a_process_that_is_not_recorded() {
        let error = trace_of(std::process::id()).unwrap_err().to_string();
        assert!(error.ends_with("is not being recorded; start it with `heapline record`"));
    }
}
