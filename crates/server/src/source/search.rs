//! Searches a folder for the file that a recorded path most likely means.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Entries of folders that are looked at.
const ENTRIES: usize = 100_000;

/// Levels below the folder that are looked at.
const DEPTH: usize = 24;

/// Folders with copies of sources, or with those of others.
const SKIPPED: [&str; 3] = ["_build", "target", "node_modules"];

/// The names in a path, without the root and `.`; `None` if `..` or a drive is in it, or nothing.
pub(super) fn parts(path: &Path) -> Option<Vec<&OsStr>> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    (!parts.is_empty()).then_some(parts)
}

/// Searches for the file whose path ends with most of the last parts, and for the least deep of those.
/// Returns the number of parts, too. Symbolic links are not followed; hidden folders are left out.
pub(super) fn longest_suffix(folder: &Path, parts: &[&OsStr]) -> Option<(usize, PathBuf)> {
    let name = *parts.last()?;
    let mut best: Option<(usize, PathBuf)> = None;
    let mut entries = 0;
    let mut waiting = VecDeque::from([(folder.to_owned(), 0)]);
    while let Some((path, depth)) = waiting.pop_front() {
        let Ok(listed) = fs::read_dir(&path) else {
            continue;
        };
        let mut folders: Vec<OsString> = Vec::new();
        for entry in listed.flatten() {
            entries += 1;
            if entries > ENTRIES {
                return best;
            }
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let entry_name = entry.file_name();
            if kind.is_dir() && depth < DEPTH && !is_skipped(&entry_name) {
                folders.push(entry_name);
            } else if kind.is_file() && entry_name == name {
                let found = path.join(&entry_name);
                let length = common_suffix(&found, parts);
                if best.as_ref().is_none_or(|(longest, _)| length > *longest) {
                    best = Some((length, found));
                }
            }
        }
        // The same file is found each time.
        folders.sort();
        let below = folders.iter().map(|name| (path.join(name), depth + 1));
        waiting.extend(below);
    }
    best
}

fn is_skipped(name: &OsStr) -> bool {
    let is_hidden = name.as_encoded_bytes().starts_with(b".");
    is_hidden || SKIPPED.iter().any(|skipped| name == *skipped)
}

/// The number of last parts that a path has in common with others.
fn common_suffix(path: &Path, parts: &[&OsStr]) -> usize {
    let names = path.components().rev().map(Component::as_os_str);
    let pairs = names.zip(parts.iter().rev());
    pairs.take_while(|(a, b)| a == *b).count()
}
