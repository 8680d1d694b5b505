//! Writes the embedded agent to a file, from which it can be preloaded.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::hash::Hasher;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::bail;
use heapline_recorder::check_size_limit;
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::geteuid;
use siphasher::sip::SipHasher13;

/// The agent, built by the build script.
const AGENT: &[u8] = include_bytes!(env!("HEAPLINE_AGENT"));

/// Returns the path of the agent; writes the file if it does not exist.
pub(super) fn path() -> anyhow::Result<PathBuf> {
    let mut hasher = SipHasher13::new();
    hasher.write(AGENT);
    let name = format!("libheapline-agent-{:016x}.so", hasher.finish());
    let mut problems = Vec::new();
    for folder in folders() {
        match write_into(&folder, &name) {
            Ok(path) => return Ok(path),
            Err(error) => problems.push(format!("\n  {}: {error}", folder.display())),
        }
    }
    bail!(
        "cannot write the library to preload; tried:{}",
        problems.concat()
    )
}

/// The candidate directories, best first.
fn folders() -> Vec<PathBuf> {
    let variable = |name: &str| {
        let value = std::env::var_os(name).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let mut own = OsString::from("heapline-");
    own.push(geteuid().as_raw().to_string());
    [
        cache.map(|cache| cache.join("heapline")),
        variable("XDG_RUNTIME_DIR").map(|run| run.join("heapline")),
        Some(std::env::temp_dir().join(own)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn write_into(folder: &Path, name: &str) -> io::Result<PathBuf> {
    let refused = |why: &str| Err(io::Error::other(why.to_owned()));
    let bytes = folder.as_os_str().as_bytes();
    if bytes.contains(&b':') || bytes.contains(&b' ') {
        return refused(
            "its name contains a colon or a space, which LD_PRELOAD uses as separators",
        );
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let metadata = fs::symlink_metadata(folder)?;
    // Anyone who can write here could inject code into the recorded programs.
    if !metadata.is_dir() || metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
        return refused("not a directory that only you can write to");
    }
    if statvfs(folder)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return refused("mounted with noexec");
    }
    let path = folder.join(name);
    if fs::read(&path).is_ok_and(|there| there == AGENT) {
        return Ok(path);
    }
    check_size_limit(0, AGENT.len())?;
    let unfinished = folder.join(format!(".{name}.{}", std::process::id()));
    let mut file = File::create(&unfinished)?;
    file.write_all(AGENT)?;
    fs::rename(&unfinished, &path)?;
    Ok(path)
}
