//! Where `heapline record` puts the library to preload: other users must not be able to replace it.
#![cfg(recording)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user of this test.
fn user() -> u32 {
    fs::metadata("/proc/self").unwrap().uid()
}

/// The library's path, for a user with these variables.
fn library(home: Option<&Path>, temporary: &Path) -> PathBuf {
    // Files are what they should be with any umask.
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 0; exec \"$0\" record --print-agent"])
        .arg(env!("CARGO_BIN_EXE_heapline"))
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("HOME")
        .env("TMPDIR", temporary);
    if let Some(home) = home {
        command.env("HOME", home);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    assert!(path.is_file(), "{}", path.display());
    assert_eq!(mode(&path), 0o644);
    path
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn make(path: &Path, mode: u32) {
    fs::create_dir(path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn users_without_a_home_have_a_private_directory() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    make(&temporary, 0o1777);
    let prefix = format!("heapline-{}", user());
    // What others may have put there.
    make(&temporary.join(&prefix), 0o777);
    make(&temporary.join(format!("{prefix}-public")), 0o777);
    make(&folder.path().join("elsewhere"), 0o700);
    symlink(
        folder.path().join("elsewhere"),
        temporary.join(format!("{prefix}-link")),
    )
    .unwrap();

    // No home directory, and one that cannot be.
    let first = library(None, &temporary);
    for home in [
        None,
        Some(Path::new("/dev/null")),
        Some(Path::new("relative")),
    ] {
        assert_eq!(library(home, &temporary), first, "one directory is enough");
    }
    let own = first.parent().unwrap();
    assert_eq!(own.parent().unwrap(), temporary);
    assert_eq!(mode(own), 0o700);
    assert_eq!(fs::metadata(own).unwrap().uid(), user());
    let name = own.file_name().unwrap().to_str().unwrap();
    let random = name.strip_prefix(&format!("{prefix}-")).unwrap();
    assert!(
        random.len() >= 6 && !["public", "link"].contains(&random),
        "{name}"
    );
    for unsafe_one in [
        prefix.clone(),
        format!("{prefix}-public"),
        format!("{prefix}-link"),
    ] {
        let files = fs::read_dir(temporary.join(&unsafe_one)).unwrap();
        assert_eq!(files.count(), 0, "{unsafe_one}");
    }
}

#[test]
fn directories_that_others_can_replace_are_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let [temporary, home] = ["tmp", "home"].map(|name| folder.path().join(name));
    make(&temporary, 0o1777);
    make(&home, 0o755);
    let cache = home.join(".cache/heapline");
    assert_eq!(library(Some(&home), &temporary).parent(), Some(&*cache));
    assert_eq!(mode(&cache), 0o700);

    // Others could rename `.cache` and put another one in its place.
    fs::set_permissions(&home, Permissions::from_mode(0o777)).unwrap();
    let path = library(Some(&home), &temporary);
    assert!(path.starts_with(&temporary), "{path:?}");
    fs::set_permissions(&home, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&cache, Permissions::from_mode(0o777)).unwrap();
    let path = library(Some(&home), &temporary);
    assert!(path.starts_with(&temporary), "{path:?}");
}

#[test]
fn a_library_that_others_could_have_changed_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = library(Some(folder.path()), folder.path());
    let content = fs::read(&path).unwrap();
    let same = || fs::read(&path).unwrap() == content;

    let written = |path: &Path| fs::metadata(path).unwrap().ino();
    let first = written(&path);
    library(Some(folder.path()), folder.path());
    assert_eq!(written(&path), first, "one file is enough");

    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    let open = fs::File::options().append(true).open(&path).unwrap();
    library(Some(folder.path()), folder.path());
    assert!(same());
    // Whoever opened it before can change the old file only.
    std::io::Write::write_all(&mut &open, b"evil").unwrap();
    assert!(same());

    fs::write(&path, "evil").unwrap();
    library(Some(folder.path()), folder.path());
    assert!(same());

    let other = folder.path().join("other");
    fs::copy(&path, &other).unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&other, &path).unwrap();
    library(Some(folder.path()), folder.path());
    assert!(same() && !path.is_symlink());
}

#[test]
fn directories_that_a_group_can_replace_are_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let [temporary, home] = ["tmp", "home"].map(|name| folder.path().join(name));
    make(&temporary, 0o1777);
    make(&home, 0o775);
    let path = library(Some(&home), &temporary);
    assert!(path.starts_with(&temporary), "{path:?}");
}
