//! The output of a command. Files are written atomically, and only overwritten with `--force`.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use heapline_text::Text;

use crate::unfinished;

/// The option that allows overwriting.
#[derive(Args, Clone, Debug)]
pub(crate) struct Force {
    /// Overwrite the output file if it exists
    #[arg(long)]
    pub(crate) force: bool,
}

/// The destination of a command's output.
pub(crate) enum Output {
    /// A temporary file that is renamed when it is complete.
    File {
        path: PathBuf,
        force: bool,
        unfinished: unfinished::File,
    },
    /// Standard output, a device or a pipe: nothing to overwrite or rename.
    Stream { file: File, name: String },
}

impl Output {
    /// Creates a file of this name, or opens standard output if it is `-`.
    pub(crate) fn create(path: &Path, force: bool) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            return Self::stdout();
        }
        let name = path.display().to_string();
        let cannot = || format!("cannot write {name}");
        let mut path = path.to_owned();
        let mut permissions = None;
        if path.is_symlink() {
            // Write to the target of a link.
            path = path
                .canonicalize()
                .with_context(|| format!("cannot write {name}: broken symbolic link"))?;
        }
        if let Ok(existing) = path.metadata() {
            if existing.is_dir() {
                anyhow::bail!("{name} is a directory; give a file to write to");
            }
            if !existing.is_file() {
                let file = File::options()
                    .write(true)
                    .open(&path)
                    .with_context(cannot)?;
                return Ok(Self::Stream { file, name });
            }
            if !force {
                anyhow::bail!("{name} already exists; use --force to overwrite it");
            }
            permissions = Some(existing.permissions());
        }
        let unfinished = unfinished::File::create(&path).with_context(cannot)?;
        if let Some(permissions) = permissions {
            unfinished
                .set_permissions(permissions)
                .with_context(cannot)?;
        }
        Ok(Self::File {
            path,
            force,
            unfinished,
        })
    }

    /// Standard output without std's line buffering.
    pub(crate) fn stdout() -> anyhow::Result<Self> {
        #[cfg(not(windows))]
        let file = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?;
        #[cfg(windows)]
        let file = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned()?;
        Ok(Self::Stream {
            file: file.into(),
            name: "standard output".to_owned(),
        })
    }

    /// The name of the output in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File { path, .. } => path.display().to_string(),
            Self::Stream { name, .. } => name.clone(),
        }
    }

    /// Renames the file to its final name.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        let Self::File {
            path,
            force,
            unfinished,
        } = self
        else {
            return Ok(());
        };
        if force {
            unfinished.rename_over(&path)
        } else {
            unfinished.rename(&path)
        }
        .with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File { unfinished, .. } => unfinished.write(bytes),
            Self::Stream { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a file atomically, or standard output if the path is `-`.
pub(crate) fn write_file(
    path: &Path,
    force: &Force,
    write: impl FnOnce(&mut BufWriter<&mut Output>) -> io::Result<()>,
) -> anyhow::Result<()> {
    let mut output = Output::create(path, force.force)?;
    let name = output.name();
    let mut buffered = BufWriter::with_capacity(1 << 16, &mut output);
    write(&mut buffered)
        .and_then(|()| buffered.flush())
        .with_context(|| format!("cannot write {name}"))?;
    drop(buffered);
    output.finish()
}

/// Writes bytes to standard output.
pub(crate) fn to_stdout(bytes: &[u8]) -> anyhow::Result<()> {
    Output::stdout()?
        .write_all(bytes)
        .context("cannot write to standard output")
}

/// Writes styled text to standard output, with colours if it is a terminal.
pub(crate) fn to_stdout_styled(text: &Text) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout();
    stdout
        .write_all(text.to_ansi().as_bytes())
        .and_then(|()| stdout.flush())
        .context("cannot write to standard output")
}

/// Writes binary data to standard output, unless that is a terminal.
pub(crate) fn binary_to_stdout(bytes: &[u8]) -> anyhow::Result<()> {
    refuse_terminal("trace.ctf")?;
    to_stdout(bytes)
}

/// Fails if standard output is a terminal.
pub(crate) fn refuse_terminal(file: &str) -> anyhow::Result<()> {
    if io::stdout().is_terminal() {
        anyhow::bail!("refusing to write binary data to a terminal; redirect it: > {file}");
    }
    Ok(())
}

/// Fails if the file name asks for compression, which is not supported.
pub(crate) fn refuse_compressed(path: &Path) -> anyhow::Result<()> {
    let extension = path.extension().unwrap_or_default();
    if extension == "gz" || extension == "zst" {
        let program = if extension == "gz" { "gzip" } else { "zstd" };
        anyhow::bail!(
            "cannot write {}: traces are written uncompressed; use: -o - | {program} > {}",
            path.display(),
            path.display()
        );
    }
    Ok(())
}
