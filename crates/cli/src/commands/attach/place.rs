//! The files that an attached program writes.
//!
//! The program opens the file itself, a trace or a snapshot, as its user, and in its mount namespace. Where that is not ours, it
//! writes to a directory of its own, from which the trace is copied at the end.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use heapline_recorder::control::FileView;
use heapline_recorder::tail;

use super::program::Running;
use super::staged::{Owner, Staged};
use crate::commands::record::{make_way, refuse_compressed};

/// Directories for temporary files that programs may have.
const TEMPORARY: [&str; 3] = ["tmp", "var/tmp", "dev/shm"];

const NAME: &str = "output";

/// The place of a trace.
pub(in crate::commands) struct Place {
    /// The trace as the program sees it.
    pub(in crate::commands) inside: PathBuf,
    /// The trace in the end.
    output: PathBuf,
    staged: Option<Staged>,
}

impl Place {
    pub(in crate::commands) fn new(
        running: &Running,
        output: Option<&Path>,
        extension: &str,
        force: bool,
    ) -> anyhow::Result<Self> {
        let output = match output {
            Some(output) => {
                refuse_compressed(output)?;
                output.to_owned()
            }
            None => unused(&running.name, running.pid, extension),
        };
        make_way(&output, force)?;
        if is_shared(running)? {
            return Ok(Self {
                inside: std::path::absolute(&output)?,
                output,
                staged: None,
            });
        }
        let (staged, inside) = stage(running)?;
        Ok(Self {
            inside,
            output,
            staged: Some(staged),
        })
    }

    /// The trace as seen from here.
    pub(in crate::commands) fn trace(&self) -> PathBuf {
        match &self.staged {
            Some(staged) => staged.path().join(NAME),
            None => self.output.clone(),
        }
    }

    /// Opens the trace.
    pub(in crate::commands) fn open(&self) -> io::Result<File> {
        match &self.staged {
            Some(staged) => staged.open(Path::new(NAME)),
            None => File::open(&self.output),
        }
    }

    /// Removes what there may be.
    pub(in crate::commands) fn discard(&self) {
        if let Some(staged) = &self.staged {
            staged.remove_file(&tail::path(Path::new(NAME)));
            staged.remove_file(Path::new(NAME));
            staged.remove();
        } else {
            let _ = fs::remove_file(tail::path(&self.output));
            let _ = fs::remove_file(&self.output);
        }
    }

    /// The trace in its final place, with its tail.
    pub(in crate::commands) fn collect(self) -> anyhow::Result<PathBuf> {
        let Some(staged) = &self.staged else {
            return Ok(self.output);
        };
        let name = Path::new(NAME);
        for (name, to) in [
            (name.to_owned(), self.output.clone()),
            (tail::path(name), tail::path(&self.output)),
        ] {
            match staged.open(&name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => {
                    result.and_then(|from| copy(from, &to)).with_context(|| {
                        format!("cannot copy the program's file to {}", to.display())
                    })?;
                    staged.remove_file(&name);
                }
            }
        }
        staged.remove();
        Ok(self.output)
    }
}

/// Creates a directory for the program. Returns it, and the path of the trace there as the program sees it.
fn stage(running: &Running) -> anyhow::Result<(Staged, PathBuf)> {
    let owner = Owner {
        user: running.identity.users[1],
        group: running.identity.group,
    };
    let name = format!("heapline-{}-{}", running.pid, std::process::id());
    let mut problems = Vec::new();
    for parent in TEMPORARY {
        match Staged::create(&running.root(), parent, &name, owner) {
            Ok(staged) => {
                let inside = Path::new("/").join(parent).join(&name).join(NAME);
                return Ok((staged, inside));
            }
            Err(error) => problems.push(format!("\n  /{parent}: {error}")),
        }
    }
    bail!(
        "process {} is another user's or in another mount namespace, and there is no directory in \
         which its user can write; tried:{}",
        running.pid,
        problems.concat()
    )
}

/// Copies a file that the program has written to a new one, which only the user of heapline can read.
fn copy(from: File, to: &Path) -> io::Result<()> {
    // Not a file that somebody else puts there meanwhile.
    let mut to = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    // A program that still writes must not keep this busy for ever.
    let size = from.metadata()?.len();
    io::copy(&mut from.take(size), &mut to).map(drop)
}

/// A name for a file about a process, that of the program.
fn unused(name: &str, pid: i32, extension: &str) -> PathBuf {
    let more = (2..).map(|n| format!("{name}.{pid}-{n}.{extension}"));
    let mut names = std::iter::once(format!("{name}.{pid}.{extension}")).chain(more);
    let is_free = |name: &String| !Path::new(name).exists();
    names.find(is_free).unwrap_or_default().into()
}

/// Returns true if a program can write where we do: it sees the same files, and has our rights or more.
fn is_shared(running: &Running) -> anyhow::Result<bool> {
    let own = rustix::process::geteuid().as_raw();
    let user = running.identity.users[1];
    let sees_ours = running.files()?.is_same(&FileView::of("self")?);
    Ok(sees_ours && (user == own || user == 0))
}
