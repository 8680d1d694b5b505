//! The socket that clients find by its name, in a directory of the user.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// Characters of a program's name that are kept: paths of sockets have about a hundred bytes.
const MAX_NAME: usize = 40;

/// A socket that is removed when this is dropped.
#[derive(Debug)]
pub struct Rendezvous {
    path: PathBuf,
    listener: UnixListener,
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum RendezvousError {
    /// The directory for sockets is somebody else's.
    #[error("{} is not a directory of this user; remove it, or set TMPDIR", .0.display())]
    Foreign(PathBuf),
    /// Another process serves it.
    #[error("{} is served already", .0.display())]
    Served(PathBuf),
    /// It cannot be created.
    #[error("cannot create {}: {error}", .path.display())]
    Io {
        /// The socket or its directory.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
}

impl Rendezvous {
    /// Listens on `sturgeon.UID/NAMEmemprof.PID.sturgeon` in the directory for temporary files, as
    /// statmemprof-emacs does in the process `pid` of a program called `name`.
    pub fn new(temporary: &Path, name: &str, pid: u64) -> Result<Self, RendezvousError> {
        let directory = temporary.join(format!("sturgeon.{}", geteuid().as_raw()));
        make_private(&directory)?;
        let name = file_name(name);
        let path = directory.join(format!("{name}memprof.{pid}.sturgeon"));
        let failed = |error| RendezvousError::Io {
            path: path.clone(),
            error,
        };
        match UnixStream::connect(&path) {
            Ok(_) => return Err(RendezvousError::Served(path)),
            // Its process was killed.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(&path).map_err(failed)?;
            }
            Err(_) => {}
        }
        let listener = UnixListener::bind(&path).map_err(failed)?;
        let rendezvous = Self {
            path: path.clone(),
            listener,
        };
        // Nobody else can enter the directory meanwhile.
        fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(rendezvous)
    }

    /// The path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The socket, for a thread that accepts clients.
    pub fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes a directory that only the user can enter, or makes it so.
fn make_private(directory: &Path) -> Result<(), RendezvousError> {
    let failed = |error| RendezvousError::Io {
        path: directory.to_owned(),
        error,
    };
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    // Not through a link, which may be somebody else's.
    let metadata = fs::symlink_metadata(directory).map_err(failed)?;
    if !metadata.is_dir() || metadata.uid() != geteuid().as_raw() {
        return Err(RendezvousError::Foreign(directory.to_owned()));
    }
    // Programs with statmemprof-emacs let the group in.
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(directory, Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

/// A program's name as part of a file name: it comes from a trace and may be anything.
fn file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    let plain = |c| if is_plain(c) { c } else { '_' };
    let name: String = name.chars().take(MAX_NAME).map(plain).collect();
    name.trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_is_the_users_alone_and_removed_at_the_end() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary
            .path()
            .join(format!("sturgeon.{}", geteuid().as_raw()));
        // As a program with statmemprof-emacs leaves it.
        DirBuilder::new().mode(0o770).create(&directory).unwrap();
        let rendezvous = Rendezvous::new(temporary.path(), "../a b", 7).unwrap();
        let path = rendezvous.path().to_owned();
        assert_eq!(path, directory.join("_a_bmemprof.7.sturgeon"));
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&directory), 0o700);
        drop(rendezvous);
        assert!(!path.exists());
    }

    #[test]
    fn sockets_of_dead_processes_are_replaced_and_others_are_not() {
        let temporary = tempfile::tempdir().unwrap();
        let first = Rendezvous::new(temporary.path(), "a", 7).unwrap();
        let error = Rendezvous::new(temporary.path(), "a", 7).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("amemprof.7.sturgeon is served already")
        );
        assert!(first.path().exists());
        // As if the process was killed: its socket stays.
        let path = first.path().to_owned();
        drop(first);
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        Rendezvous::new(temporary.path(), "a", 7).unwrap();
    }

    #[test]
    fn a_link_in_place_of_the_directory_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let directory = format!("sturgeon.{}", geteuid().as_raw());
        std::os::unix::fs::symlink(elsewhere.path(), temporary.path().join(directory)).unwrap();
        let error = Rendezvous::new(temporary.path(), "a", 7).unwrap_err();
        assert!(matches!(error, RendezvousError::Foreign(_)), "{error}");
    }
}
