//! Writes the embedded agent to a file, from which it can be preloaded.

use std::fs::{self, DirBuilder, Permissions};
use std::hash::Hasher;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;
use heapline_recorder::check_size_limit;
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::geteuid;
use siphasher::sip::SipHasher13;

/// The agent, built by the build script.
pub(in crate::commands) const AGENT: &[u8] = include_bytes!(env!("HEAPLINE_AGENT"));

// Cargo does not run the build script again if the target directory was copied from another checkout.
const _: () = assert!(
    is_same(env!("HEAPLINE_AGENT_CHECKOUT"), env!("CARGO_MANIFEST_DIR")),
    "the agent was built in another checkout; run `cargo clean -p heapline-agent -p heapline-cli`"
);

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut n = 0;
    while n < a.len() && n < b.len() && a[n] == b[n] {
        n += 1;
    }
    n == a.len() && n == b.len()
}

/// The user that owns everything.
const ROOT: u32 = 0;

/// The user that stands for root and all others that a user namespace does not know.
const UNMAPPED: u32 = 65534;

/// Permission of the group and of others to write.
const OTHERS_WRITE: u32 = 0o022;

/// The sticky bit of a directory.
const STICKY: u32 = 0o1000;

/// Returns the path of the agent; writes the file if it does not exist.
pub(super) fn path() -> anyhow::Result<PathBuf> {
    let name = format!("libheapline-agent-{:016x}.so", hash());
    let mut problems = Vec::new();
    for folder in folders() {
        match create(&folder).and_then(|()| write_into(&folder, &name)) {
            Ok(path) => return Ok(path),
            Err(error) => problems.push(format!("\n  {}: {error}", folder.display())),
        }
    }
    // For users without a home directory.
    let parent = std::env::temp_dir();
    match private_folder(&parent).and_then(|folder| write_into(&folder, &name)) {
        Ok(path) => return Ok(path),
        Err(error) => problems.push(format!("\n  {}: {error}", parent.display())),
    }
    bail!(
        "cannot write the library to preload; tried:{}",
        problems.concat()
    )
}

/// Preloads the agent into a program, before other libraries that are preloaded.
pub(super) fn preload(command: &mut Command) -> anyhow::Result<()> {
    let mut preload = path()?.into_os_string();
    let others = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty());
    if let Some(others) = others {
        preload.push(":");
        preload.push(others);
    }
    command.env("LD_PRELOAD", preload);
    Ok(())
}

/// The hash of the agent, which its names contain.
pub(in crate::commands) fn hash() -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(AGENT);
    hasher.finish()
}

/// The candidate directories, best first.
fn folders() -> Vec<PathBuf> {
    let variable = |name: &str| {
        let value = std::env::var_os(name).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    [
        cache.map(|cache| cache.join("heapline")),
        variable("XDG_RUNTIME_DIR").map(|run| run.join("heapline")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn create(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The user's own directory in a directory that all users can write to: one of an earlier recording,
/// or a new one. Its name is random, so that nobody can occupy it in advance.
fn private_folder(parent: &Path) -> io::Result<PathBuf> {
    let prefix = format!("heapline-{}-", geteuid().as_raw());
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_named_so = entry.file_name().as_bytes().starts_with(prefix.as_bytes());
        if is_named_so && check(&entry.path()).is_ok() {
            return Ok(entry.path());
        }
    }
    let folder = tempfile::Builder::new()
        .prefix(&prefix)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(parent)?;
    Ok(folder.keep())
}

/// Checks that nobody but the user and root can write to a directory or replace it: they could inject
/// code into the recorded programs. Returns its path without symbolic links.
fn check(folder: &Path) -> io::Result<PathBuf> {
    let metadata = fs::symlink_metadata(folder)?;
    let user = geteuid().as_raw();
    if !metadata.is_dir() || metadata.uid() != user || metadata.mode() & OTHERS_WRITE != 0 {
        return refused("not a directory that only you can write to");
    }
    let folder = folder.canonicalize()?;
    for ancestor in folder.ancestors().skip(1) {
        let metadata = fs::metadata(ancestor)?;
        // In a sticky directory, only the owners of an entry and of the directory can replace it.
        let is_closed = metadata.mode() & OTHERS_WRITE == 0 || metadata.mode() & STICKY != 0;
        if !is_closed || ![ROOT, UNMAPPED, user].contains(&metadata.uid()) {
            let ancestor = ancestor.display();
            return refused(&format!(
                "other users can replace directories in {ancestor}"
            ));
        }
    }
    Ok(folder)
}

fn refused<T>(why: &str) -> io::Result<T> {
    Err(io::Error::other(why.to_owned()))
}

fn write_into(folder: &Path, name: &str) -> io::Result<PathBuf> {
    let folder = check(folder)?;
    let bytes = folder.as_os_str().as_bytes();
    if bytes.contains(&b':') || bytes.contains(&b' ') {
        return refused(
            "its name contains a colon or a space, which LD_PRELOAD uses as separators",
        );
    }
    if statvfs(&folder)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return refused("mounted with noexec");
    }
    let path = folder.join(name);
    if is_agent(&path) {
        return Ok(path);
    }
    check_size_limit(0, AGENT.len())?;
    let mut unfinished = tempfile::Builder::new().prefix(".").tempfile_in(&folder)?;
    unfinished.write_all(AGENT)?;
    // Whatever the umask says.
    let permissions = Permissions::from_mode(0o644);
    unfinished.as_file().set_permissions(permissions)?;
    unfinished.persist(&path)?;
    Ok(path)
}

/// Returns true if a file is the agent, and will be: only the user and root can write to it.
fn is_agent(path: &Path) -> bool {
    let is_ours = |metadata: fs::Metadata| {
        metadata.is_file()
            && [ROOT, geteuid().as_raw()].contains(&metadata.uid())
            && metadata.mode() & OTHERS_WRITE == 0
    };
    fs::symlink_metadata(path).is_ok_and(is_ours)
        && fs::read(path).is_ok_and(|there| there == AGENT)
}
