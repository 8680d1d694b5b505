//! Tests wait in one way.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// A sleep is too short on a busy machine and too long on others; a loop without a deadline hangs.
#[test]
fn tests_wait_by_the_functions_for_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        sources(&entry.unwrap().path().join("tests"), &mut files);
    }
    sources(&root.join("fleet/tests"), &mut files);
    assert!(files.len() > 100, "only {} files were found", files.len());
    let sleep = ["thread::", "sleep"].concat();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            !text.contains(&sleep),
            "{} has {sleep}: use heapline_testkit::wait",
            file.display()
        );
    }
}
