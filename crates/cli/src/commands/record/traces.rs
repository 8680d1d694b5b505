//! The files that are recorded to.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use heapline_recorder::tail;

/// The names of the output files.
pub(super) struct Traces {
    /// The trace of the first process, if given by `--output`.
    pub(super) first: Option<PathBuf>,
    /// Prefix of the other traces, which are named `PREFIX.PID.ctf`.
    pub(super) prefix: OsString,
    /// The prefix relative to the current directory, for messages.
    pub(super) shown_prefix: PathBuf,
    /// Files that matched the prefix before the program ran.
    before: Vec<PathBuf>,
}

impl Traces {
    pub(super) fn new(output: Option<&Path>, program: &Path, force: bool) -> anyhow::Result<Self> {
        let shown_prefix = match output {
            Some(output) => {
                refuse_compressed(output)?;
                make_way(output, force)?;
                match output.extension() {
                    Some(extension) if extension == "ctf" => output.with_extension(""),
                    _ => output.to_owned(),
                }
            }
            None => program.file_name().unwrap_or_default().into(),
        };
        let mut traces = Self {
            first: output.map(std::path::absolute).transpose()?,
            prefix: std::path::absolute(&shown_prefix)?.into(),
            shown_prefix,
            before: Vec::new(),
        };
        if output.is_none() {
            let name = traces.numbered(std::process::id(), "");
            make_way(&name, true)?;
        }
        traces.before = traces.matching();
        Ok(traces)
    }

    /// The trace of the program itself.
    pub(super) fn first(&self, pid: u32) -> PathBuf {
        let shown = self.shown_first();
        shown.unwrap_or_else(|| self.numbered(pid, ""))
    }

    fn shown_first(&self) -> Option<PathBuf> {
        let first = self.first.as_deref()?;
        let folder = std::env::current_dir().ok()?;
        Some(first.strip_prefix(folder).unwrap_or(first).to_owned())
    }

    /// The traces of other processes.
    pub(super) fn others(&self, pid: u32) -> Vec<PathBuf> {
        let first = self.first(pid);
        let mut others = self.matching();
        others.retain(|path| *path != first && !self.before.contains(path));
        others.sort();
        others
    }

    fn numbered(&self, pid: u32, more: &str) -> PathBuf {
        let mut name = self.shown_prefix.clone().into_os_string();
        name.push(format!(".{pid}{more}.ctf"));
        name.into()
    }

    /// Existing files named `PREFIX.PID.ctf`.
    fn matching(&self) -> Vec<PathBuf> {
        let parent = self.shown_prefix.parent().unwrap_or(Path::new(""));
        let start = self.shown_prefix.file_name().unwrap_or_default();
        let start = format!("{}.", start.to_string_lossy());
        let folder = if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let is_one = |name: &str| {
            let number = name
                .strip_prefix(&start)
                .and_then(|rest| rest.strip_suffix(".ctf"));
            number.is_some_and(|n| {
                !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit() || b == b'-')
            })
        };
        entries
            .map(|entry| entry.file_name())
            .filter(|name| is_one(&name.to_string_lossy()))
            .map(|name| parent.join(name))
            .collect()
    }
}

pub(in crate::commands) fn refuse_compressed(path: &Path) -> anyhow::Result<()> {
    let extension = path.extension().unwrap_or_default();
    if extension == "gz" || extension == "zst" {
        bail!(
            "cannot write {}: recordings are uncompressed, so that nothing is lost when the program \
             is killed; record to {}, and compress it afterwards",
            path.display(),
            path.with_extension("").display()
        );
    }
    Ok(())
}

/// Removes an existing file if that is allowed, and checks that the file can be written.
pub(in crate::commands) fn make_way(path: &Path, force: bool) -> anyhow::Result<()> {
    let shown = path.display();
    let cannot_write = || format!("cannot write {shown}");
    if let Some(pid) = tail::owner(path).with_context(cannot_write)? {
        bail!("process {pid} is recording to {shown}; wait for its end, or give another file");
    }
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            bail!("{shown} is not a regular file; give a file to write to")
        }
        Ok(_) if !force => bail!("{shown} already exists; use --force to overwrite it"),
        Ok(_) => fs::remove_file(path).with_context(|| format!("cannot overwrite {shown}"))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(cannot_write),
    }
    File::create_new(path)
        .and_then(|_| fs::remove_file(path))
        .and_then(|()| tail::probe(path))
        .with_context(cannot_write)
}
