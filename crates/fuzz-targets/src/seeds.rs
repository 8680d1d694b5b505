//! Inputs to start from.

use std::fs;
use std::path::{Path, PathBuf};

/// Messages of Emacs to `heapline sturgeon`.
const STURGEON: &[u8] = b"(greetings 1)\n(feed 1 meta many . 0)\n(feed 2 many meta many . 1)\n\
     (feed 2 patch (5 . 7) 12 (propertize . 0) (clicked))\n(feed 2 ack (17 . 21))\n\
     (feed 9 a \"b\\303\\251\" meta once . 5)\n(quit 2 . finalize)\n";

/// Budgets of all kinds.
const BUDGETS: &[u8] = b"allocated < 1GiB\npeak <= 200MiB # of the whole run\nblocks live at end < 10k\n\
     live at 50% where inside \"M*\" and not size > 3w < 10Mw\npromoted where heap = minor or lifetime > 2s < 5\n";

/// Names and contents of the seeds of a target: the fixtures of the format that it reads.
///
/// # Panics
///
/// If the fixtures cannot be read.
#[must_use]
pub fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let (extensions, prefix): (&[&str], &[u8]) = match target {
        "budget" => return vec![("budgets".into(), BUDGETS.to_vec())],
        "sturgeon" => return vec![("emacs".into(), STURGEON.to_vec())],
        // It makes the trace around its input by itself.
        "locations" => return vec![("empty".into(), Vec::new())],
        "spacetime" => (&["p", "profile"], b""),
        "heap" => (&["heap"], b""),
        "definitions" => (&["cmt", "ml"], b""),
        // Options of the reader.
        "reader" => (&["ctf"], &[0xf0]),
        // The length of the trace; the rest is the tail.
        "tail" => (&["ctf"], &[0, 0x40, 0x81]),
        // The size to keep it within, and how often it is written.
        "keep" => (&["ctf"], &[0, 0x40, 5]),
        // Changes of the index.
        "index" => (&["ctf"], &[2, 0, 0, 40, 1, 0, 1, 0, 8]),
        "profile" => (&["ctf"], b"live at peak and (size > 3w or inside \"M*\")\n"),
        _ => (&["ctf"], b""),
    };
    let mut paths = Vec::new();
    collect(
        &heapline_testkit::fixtures::folder(),
        extensions,
        &mut paths,
    );
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let names: Vec<_> = path
                .iter()
                .rev()
                .take(2)
                .map(|part| part.to_string_lossy())
                .collect();
            let bytes =
                fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let bytes = match target {
                // Their checksums would refuse all that a fuzzer does to them.
                "heap" => heapline_testkit::heap::without_checksums(&bytes),
                _ => bytes,
            };
            (names.join("-"), [prefix, &bytes].concat())
        })
        .collect()
}

/// Finds files below a directory by their extension; compressed ones have another.
fn collect(directory: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
    let entries =
        fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    for path in entries.flatten().map(|entry| entry.path()) {
        let extension = path.extension().unwrap_or_default();
        if path.is_dir() {
            collect(&path, extensions, found);
        } else if extensions.iter().any(|seed| extension == *seed) {
            found.push(path);
        }
    }
}
