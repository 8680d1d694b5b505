//! The locations of traces.

use std::path::{Path, PathBuf};

use crate::collections::Collected;
use crate::generate::Program;
use crate::harm::packets;
use crate::heap;

/// The folder of the traces that are part of the project.
#[must_use]
pub fn folder() -> PathBuf {
    root().join("fixtures")
}

/// Traces of all sorts in that folder: of real programs, of several domains, without events, and damaged.
pub const VARIED: [&str; 5] = [
    "mix-ocaml53/trace.ctf",
    "mix-ocaml413/trace.ctf",
    "generated/domains.ctf",
    "odd/empty.ctf",
    "damaged/garbage.ctf",
];

/// The reference traces that lie beside the project on some machines, if they do. Tests that
/// cannot do without are [ignored](reference()), and run by `cargo xtask test` where these are.
#[must_use]
pub fn reference_folder() -> Option<PathBuf> {
    let folder = root().join("../shared/traces");
    folder.is_dir().then_some(folder)
}

/// A file of the reference traces, for tests that are ignored unless asked for.
///
/// # Panics
///
/// If it is not there.
#[must_use]
pub fn reference(path: &str) -> PathBuf {
    let path = root().join("../shared/traces").join(path);
    assert!(path.is_file(), "{} is not there", path.display());
    path
}

/// All traces below the project's fixtures and, where they are, the reference traces, but the
/// large one.
#[must_use]
pub fn traces() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder()];
    folders.extend(reference_folder());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ctf") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns true if a trace was damaged on purpose.
#[must_use]
pub fn is_damaged(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "damaged")
}

/// The fixtures that are made, not recorded: their paths below [`folder`], and their bytes.
#[must_use]
pub fn generated() -> Vec<(&'static str, Vec<u8>)> {
    let program = Program {
        allocations: 2000,
        locations: 300,
        depth: 12,
        ..Program::default()
    };
    let domains = Program {
        domains: 4,
        ..program
    };
    let collected = Collected {
        domains: 2,
        seconds: 6,
        rate: 1e-5,
        ..Collected::default()
    };
    let intact = program.trace();
    let edit = |edit: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut parts: Vec<Vec<u8>> = packets(&intact)
            .into_iter()
            .map(|range| intact[range].to_vec())
            .collect();
        edit(&mut parts);
        parts.concat()
    };
    let truncated = intact[..intact.len() - 1000].to_vec();
    let garbage = edit(&|parts| parts.insert(2, b"this is not a packet; ".repeat(20)));
    let forked = edit(&|parts| {
        let mut child = parts[2].clone();
        child[30..38].copy_from_slice(&4712_u64.to_le_bytes());
        parts.insert(3, child);
    });
    let overwritten = edit(&|parts| {
        let half = parts[2].len() / 2;
        parts[2][half..half + 64].fill(0xee);
    });
    let names = edit(&|parts| {
        let half = parts[1].len() / 2;
        parts[1][half..half + 16].fill(0xee);
    });
    vec![
        ("generated/domains.ctf", domains.trace()),
        ("generated/collector.ctf", collected.trace()),
        ("generated/server.heap", heap::server().finish()),
        (
            "generated/server-later.heap",
            heap::server_after(3000).finish(),
        ),
        ("damaged/truncated.ctf", truncated),
        ("damaged/garbage.ctf", garbage),
        ("damaged/forked.ctf", forked),
        ("damaged/overwritten.ctf", overwritten),
        ("damaged/names.ctf", names),
    ]
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
