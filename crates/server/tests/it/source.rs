//! Source files are read from the given folders only.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use heapline_profile::reports::{SourceFile, WantedSource};
use heapline_server::SourceFolders;
use tempfile::TempDir;

/// A project with `src/cache.ml`, beside a file that is nobody's business.
fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "project/src/cache.ml", "let add = 1\n");
    write(&folder, "secret.ml", "secret\n");
    folder
}

fn write(folder: &TempDir, path: &str, text: &str) {
    let path = folder.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn folders(folder: &TempDir) -> SourceFolders {
    SourceFolders::new(&[folder.path().join("project")]).unwrap()
}

fn find(folders: &SourceFolders, file: &str) -> Result<SourceFile, String> {
    folders.find(WantedSource {
        file,
        is_standard: false,
    })
}

fn text(folders: &SourceFolders, file: &str) -> String {
    find(folders, file)
        .unwrap_or_else(|problem| panic!("{problem}"))
        .text
}

#[test]
fn files_are_found_by_what_the_trace_calls_them() {
    let folder = project();
    let sources = folders(&folder);
    let absolute = folder.path().join("project/src/cache.ml");
    for name in [
        "src/cache.ml",
        "./src/cache.ml",
        "_build/default/src/cache.ml",
        "cache.ml",
        "lib/cache.ml",
        "/build/elsewhere/src/cache.ml",
        absolute.to_str().unwrap(),
    ] {
        assert_eq!(text(&sources, name), "let add = 1\n", "{name}");
    }
    assert!(find(&sources, "src/cash.ml").is_err());
    assert!(SourceFolders::new(&[absolute]).is_err());
}

#[test]
fn the_longest_suffix_counts_then_the_least_deep_file() {
    let folder = project();
    for (path, text) in [
        ("project/a/b/src/util.ml", "deep"),
        ("project/z/util.ml", "shallow"),
        ("project/_build/default/x/util.ml", "built"),
        ("project/.hidden/y/util.ml", "hidden"),
        ("project/_build/default/gen/lexer.ml", "generated"),
    ] {
        write(&folder, path, text);
    }
    let sources = folders(&folder);
    assert_eq!(text(&sources, "/home/me/src/util.ml"), "deep");
    assert_eq!(text(&sources, "util.ml"), "shallow");
    assert_eq!(text(&sources, "y/util.ml"), "shallow");
    assert_eq!(text(&sources, "gen/lexer.ml"), "generated");
    // Again, by what is remembered.
    assert_eq!(text(&sources, "util.ml"), "shallow");
    fs::remove_file(folder.path().join("project/z/util.ml")).unwrap();
    assert_eq!(text(&sources, "util.ml"), "deep");
}

#[test]
fn nothing_outside_of_the_folders_is_read() {
    let folder = project();
    let project = folder.path().join("project");
    let secret = folder.path().join("secret.ml");
    symlink(&secret, project.join("link.ml")).unwrap();
    symlink(folder.path(), project.join("up")).unwrap();
    symlink("src/cache.ml", project.join("inside.ml")).unwrap();
    let sources = folders(&folder);
    for name in [
        "../secret.ml",
        "src/../../secret.ml",
        "link.ml",
        "up/secret.ml",
        "secret.ml",
        secret.to_str().unwrap(),
        "/etc/passwd",
        "",
        "..",
        ".",
        "src",
        "\0",
    ] {
        assert!(find(&sources, name).is_err(), "{name}");
    }
    assert_eq!(text(&sources, "inside.ml"), "let add = 1\n");
    // Files outside and files that do not exist cannot be told apart.
    let name = |file: &str| folder.path().join(file).display().to_string();
    let (exists, not) = (name("secret.ml"), name("nosuch.ml"));
    let [exists, not] = [(&exists, "secret"), (&not, "nosuch")]
        .map(|(name, word)| find(&sources, name).unwrap_err().replace(word, "X"));
    assert_eq!(exists, not);
}

#[test]
fn without_folders_a_server_reads_nothing() {
    let folder = project();
    let secret = folder.path().join("secret.ml");
    let name = secret.to_str().unwrap();
    let problem = find(&SourceFolders::default(), name).unwrap_err();
    let hint = format!("give --source {}", folder.path().display());
    assert!(problem.ends_with(&hint), "{problem}");
    let problem = find(&SourceFolders::default(), "src/a.ml").unwrap_err();
    assert!(
        problem.ends_with("give --source DIR, where DIR is the folder with src/a.ml"),
        "{problem}"
    );
    // A command may: it runs as the user who asks.
    let command = SourceFolders::default().with_recorded_paths();
    assert_eq!(text(&command, name), "secret\n");
}

#[test]
fn special_huge_and_binary_files_are_refused() {
    let folder = project();
    let project = folder.path().join("project");
    let fifo = project.join("pipe.ml");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    fs::write(project.join("huge.ml"), vec![b'a'; (4 << 20) + 1]).unwrap();
    fs::write(project.join("lines.ml"), vec![b'\n'; 200_001]).unwrap();
    fs::write(project.join("binary.ml"), b"\x7fELF\0\0").unwrap();
    fs::write(project.join("latin1.ml"), b"caf\xe9\n").unwrap();
    let sources = folders(&folder);
    let problem = |name: &str| {
        let problem = find(&sources, name).unwrap_err();
        problem
            .rsplit_once(": ")
            .map(|(_, reason)| reason.to_owned())
            .unwrap()
    };
    assert_eq!(problem("pipe.ml"), "not a regular file");
    assert_eq!(problem("huge.ml"), "larger than 4 MiB");
    assert_eq!(problem("lines.ml"), "more than 200000 lines");
    assert_eq!(problem("binary.ml"), "a binary file");
    assert_eq!(text(&sources, "latin1.ml"), "caf\u{fffd}\n");
    let device = Path::new("/dev/zero");
    let command = SourceFolders::default().with_recorded_paths();
    assert!(
        find(&command, device.to_str().unwrap())
            .unwrap_err()
            .ends_with("not a regular file")
    );
}

#[test]
fn libraries_are_not_mistaken_for_own_files() {
    let folder = project();
    write(&folder, "project/src/map.ml", "own");
    let sources = folders(&folder);
    let standard = |file| {
        sources.find(WantedSource {
            file,
            is_standard: true,
        })
    };
    assert!(standard("map.ml").is_err());
    write(&folder, "project/map.ml", "standard");
    assert_eq!(standard("map.ml").unwrap().text, "standard");
    write(&folder, "project/rustc/abc/library/vec.rs", "never");
    assert!(find(&sources, "/rustc/abc/library/vec.rs").is_err());
    assert!(find(&sources, "(unknown file)").is_err());
}
