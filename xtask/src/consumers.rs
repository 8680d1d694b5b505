//! Checks that other programs can open exports.

use std::path::{Path, PathBuf};

use crate::command::{Outcome, exists, program, root};
use crate::setup;
use crate::test::build_workspace;

/// One with everything, several domains, collections, no names, nothing at all, stacks that were cut.
const TRACES: [&str; 6] = [
    "fixtures/mix-ocaml53/trace.ctf",
    "fixtures/generated/domains.ctf",
    "fixtures/generated/collector.ctf",
    "fixtures/odd/stripped.ctf",
    "fixtures/odd/empty.ctf",
    "fixtures/odd/t1000.ctf",
];

/// Installs them where later runs find them, and checks the exports of the built program.
pub(crate) fn check() -> Outcome {
    build_workspace()?;
    let python = python()?;
    let cache = cache()?;
    let folder = folder();
    for name in ["package.json", "package-lock.json"] {
        std::fs::copy(folder.join(name), cache.join(name))
            .map_err(|error| format!("cannot write to {}: {error}", cache.display()))?;
    }
    let npm = text(&cache);
    program("npm", &["ci", "--ignore-scripts", "--prefix", &npm]).run()?;

    let schema = cache.join("node_modules/speedscope/dist/release/file-format-schema.json");
    let script = text(&folder.join("check.py"));
    let heapline = text(&root().join("target/debug/heapline"));
    let schema = text(&schema);
    let arguments = [&[&*script, &*heapline, &*schema][..], &TRACES[..]].concat();
    program(&python, &arguments).run()?;
    let script = text(&folder.join("dataset.py"));
    program(&python, &[&script, &heapline, &text(&root())]).run()
}

/// Installs the packages of `requirements.txt` where later runs find them. Returns the Python that has
/// them.
pub(crate) fn python() -> Outcome<String> {
    setup::debian("python3", "python3")?;
    let has_venv = program("python3", &["-c", "import ensurepip"])
        .output()
        .is_ok();
    setup::debian_unless(has_venv, "python3-venv")?;
    let cache = cache()?;
    let python = text(&cache.join("venv/bin/python"));
    if !exists(&python) {
        program("python3", &["-m", "venv", &text(&cache.join("venv"))]).run()?;
    }
    let requirements = text(&folder().join("requirements.txt"));
    program(
        &python,
        &["-m", "pip", "install", "--quiet", "-r", &requirements],
    )
    .run()?;
    Ok(python)
}

fn folder() -> PathBuf {
    root().join("tests/consumers")
}

fn cache() -> Outcome<PathBuf> {
    let cache = setup::cache()?.join("consumers");
    std::fs::create_dir_all(&cache)
        .map_err(|error| format!("cannot make {}: {error}", cache.display()))?;
    Ok(cache)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
