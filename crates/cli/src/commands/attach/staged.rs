//! A directory for the files of a program whose files are not ours, and the way back.
//!
//! The program's user may change everything there while it is used, so nothing is done with more rights than that
//! user has, and no path is used twice: files are reached from open directories, and symbolic links are not followed.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::process::geteuid;
use rustix::thread::{Gid, Uid, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// Directories are opened with these flags, without following symbolic links.
const DIRECTORY: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The user and the group of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub(super) user: u32,
    pub(super) group: u32,
}

impl Owner {
    /// Runs a function with the rights of the owner: in a thread of its own, whose rights end with it.
    fn run<T: Send>(self, function: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        if self.user == geteuid().as_raw() {
            return function();
        }
        let as_owner = || {
            let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.group));
            set_thread_groups(&[group])?;
            // The real and the saved user stay, so that the owner can neither trace nor signal the thread.
            set_thread_res_gid(None, group, None)?;
            set_thread_res_uid(None, user, None)?;
            function()
        };
        thread::scope(|scope| scope.spawn(as_owner).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// A directory in the program's mount namespace that belongs to its user.
pub(super) struct Staged {
    /// Open, so that it can be reached when the program has ended.
    folder: File,
    parent: File,
    name: String,
    owner: Owner,
}

impl Staged {
    /// Creates a directory in a parent, which is relative to the root directory of the program.
    pub(super) fn create(root: &Path, parent: &str, name: &str, owner: Owner) -> io::Result<Self> {
        // A link of the system to the directory, not one that the program could have made.
        let root = File::open(root)?;
        owner.run(|| {
            let parent = parent.split('/').try_fold(root, |folder, part| {
                openat(&folder, part, DIRECTORY | OFlags::PATH, Mode::empty()).map(File::from)
            })?;
            mkdirat(&parent, name, Mode::RWXU)?;
            Self::enter(parent, name, owner)
        })
    }

    /// Opens the directory that was made, if it still is that.
    fn enter(parent: File, name: &str, owner: Owner) -> io::Result<Self> {
        let folder = File::from(openat(&parent, name, DIRECTORY, Mode::empty())?);
        let metadata = folder.metadata()?;
        if metadata.uid() != owner.user || metadata.mode() & 0o777 != 0o700 {
            return Err(io::Error::other("the directory was replaced by another"));
        }
        Ok(Self {
            folder,
            parent,
            name: name.to_owned(),
            owner,
        })
    }

    /// The path of the directory, whatever became of its name.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.folder.as_raw_fd()).into()
    }

    /// Opens a file that the program has written.
    pub(super) fn open(&self, name: &Path) -> io::Result<File> {
        self.owner.run(|| {
            // Without waiting for the other end of a pipe.
            let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            let file = File::from(openat(&self.folder, name, flags, Mode::empty())?);
            let metadata = file.metadata()?;
            let is_own = metadata.uid() == self.owner.user && metadata.nlink() == 1;
            if !metadata.is_file() || !is_own {
                return Err(io::Error::other(
                    "not a file that the program has created there",
                ));
            }
            Ok(file)
        })
    }

    /// Removes a file that the program may have written.
    pub(super) fn remove_file(&self, name: &Path) {
        let _ = self
            .owner
            .run(|| Ok(unlinkat(&self.folder, name, AtFlags::empty())?));
    }

    /// Removes the directory, if it is empty.
    pub(super) fn remove(&self) {
        let _ = self
            .owner
            .run(|| Ok(unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR)?));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, symlink};

    use super::*;

    /// A user without rights.
    const NOBODY: Owner = Owner {
        user: 65534,
        group: 65534,
    };

    /// A root directory with a directory for temporary files, and a file that only root may read; `None` without root.
    fn root(test: &str) -> Option<tempfile::TempDir> {
        if !geteuid().is_root() {
            heapline_testkit::missing(&format!("{test}: needs root"));
            return None;
        }
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(root.path().join("tmp")).unwrap();
        fs::set_permissions(root.path().join("tmp"), Permissions::from_mode(0o1777)).unwrap();
        let secret = root.path().join("secret");
        fs::write(&secret, "of root").unwrap();
        fs::set_permissions(secret, Permissions::from_mode(0o600)).unwrap();
        Some(root)
    }

    fn is_owned_by(path: &Path, user: u32) -> bool {
        fs::symlink_metadata(path).unwrap().uid() == user
    }

    #[test]
    fn files_of_the_program_are_collected_and_removed() {
        let Some(root) = root("files_of_the_program_are_collected_and_removed") else {
            return;
        };
        let staged = Staged::create(root.path(), "tmp", "staged", NOBODY).unwrap();
        let folder = root.path().join("tmp/staged");
        assert!(is_owned_by(&folder, NOBODY.user));
        fs::write(folder.join("trace"), "events").unwrap();
        chown(folder.join("trace"), Some(NOBODY.user), None).unwrap();
        let file = staged.open(Path::new("trace")).unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "events");
        staged.remove_file(Path::new("trace"));
        staged.remove();
        assert!(!folder.exists());
        assert!(geteuid().is_root());
    }

    #[test]
    fn links_to_files_of_others_are_not_collected() {
        let Some(root) = root("links_to_files_of_others_are_not_collected") else {
            return;
        };
        let staged = Staged::create(root.path(), "tmp", "staged", NOBODY).unwrap();
        let (secret, folder) = (root.path().join("secret"), staged.path());
        symlink(&secret, folder.join("symbolic")).unwrap();
        fs::hard_link(&secret, folder.join("hard")).unwrap();
        let readable = root.path().join("readable");
        fs::write(&readable, "of root").unwrap();
        fs::hard_link(&readable, folder.join("readable")).unwrap();
        // One of the user's own, elsewhere.
        let own = root.path().join("own");
        fs::write(&own, "").unwrap();
        chown(&own, Some(NOBODY.user), None).unwrap();
        fs::hard_link(&own, folder.join("own")).unwrap();
        for name in ["symbolic", "hard", "readable", "own"] {
            staged.open(Path::new(name)).expect_err(name);
        }
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.join("pipe"), Mode::RUSR).unwrap();
        chown(folder.join("pipe"), Some(NOBODY.user), None).unwrap();
        staged.open(Path::new("pipe")).unwrap_err();
    }

    #[test]
    fn a_directory_that_was_replaced_is_not_given_away() {
        let Some(root) = root("a_directory_that_was_replaced_is_not_given_away") else {
            return;
        };
        let victim = root.path().join("victim");
        fs::DirBuilder::new().mode(0o700).create(&victim).unwrap();
        let tmp = root.path().join("tmp");
        symlink(&victim, tmp.join("link")).unwrap();
        fs::DirBuilder::new()
            .mode(0o700)
            .create(tmp.join("moved"))
            .unwrap();
        for name in ["link", "moved"] {
            let parent = File::open(&tmp).unwrap();
            let entered = NOBODY.run(|| Staged::enter(parent, name, NOBODY).map(drop));
            entered.expect_err(name);
        }
        assert!(is_owned_by(&victim, 0) && is_owned_by(&tmp.join("moved"), 0));
    }

    #[test]
    fn a_directory_is_made_only_where_the_program_could_make_it() {
        let Some(root) = root("a_directory_is_made_only_where_the_program_could_make_it") else {
            return;
        };
        // As with a file system that the program has mounted there.
        let foreign = root.path().join("foreign");
        fs::create_dir(&foreign).unwrap();
        symlink("/tmp", root.path().join("link")).unwrap();
        for parent in ["foreign", "link", "missing"] {
            let created = Staged::create(root.path(), parent, "staged", NOBODY);
            created.map(drop).expect_err(parent);
        }
        assert!(fs::read_dir(foreign).unwrap().next().is_none());
    }
}
