//! `cargo xtask reproduce`: builds `heapline` in two directories, which must give the same program.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{Outcome, cargo, program, root};

/// Directories of different lengths: paths of the same length could hide in padding.
const DIRECTORIES: [&str; 2] = ["a", "another/directory"];

/// Builds what was committed in two clones, and compares the programs.
pub(crate) fn run() -> Outcome {
    let [first, second] = DIRECTORIES.map(build);
    let (first, second) = (first?, second?);
    check_paths(&first)?;
    let [one, other] = [&first, &second].map(|path| read(path));
    let (one, other) = (one?, other?);
    if one == other {
        println!("{} bytes, the same in two directories", one.len());
        return Ok(());
    }
    let places = one.iter().zip(&other);
    let differ = places.filter(|(a, b)| a != b).count() + one.len().abs_diff(other.len());
    Err(format!(
        "{differ} bytes of {} and {} differ",
        first.display(),
        second.display()
    ))
}

fn build(name: &str) -> Outcome<PathBuf> {
    let folder = root().join("target/reproduce").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let (from, to) = (root().display().to_string(), folder.display().to_string());
    program("git", &["clone", "--quiet", &from, &to]).run()?;
    let target = folder.join("target").display().to_string();
    cargo(&["build", "--locked", "--release", "--target-dir", &target])
        .folder(&folder)
        .run()?;
    Ok(folder.join("target/release/heapline"))
}

/// Checks that a program does not have the path of the directory that it was built in.
pub(crate) fn check_paths(built: &Path) -> Outcome {
    let Some(directory) = built.ancestors().nth(3) else {
        return Err(format!("{} is in no directory", built.display()));
    };
    let path = directory.display().to_string();
    let has_path = read(built)?
        .windows(path.len())
        .any(|part| part == path.as_bytes());
    if has_path {
        return Err(format!(
            "{} has the path of the directory in which it was built, so that it is another program in others",
            built.display()
        ));
    }
    Ok(())
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
