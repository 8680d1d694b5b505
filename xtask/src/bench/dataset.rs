//! `cargo xtask bench dataset`: the speed of adding many small runs to a dataset, of listing and checking them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::command::{Outcome, cargo, program, root};

/// Runs of the generated fleet.
const RUNS: usize = 2000;

/// Sampled blocks of a run: a trace of about 1 MB.
const BLOCKS: usize = 65_000;

/// Measures, and leaves the traces and the dataset in a folder.
pub(super) fn measure(folder: &str) -> Outcome {
    let packages = ["--package=heapline-cli", "--package=heapline-testkit"];
    cargo(&[&["build", "--locked", "--release"], &packages[..]].concat()).run()?;
    let built = |name: &str| root().join("target/release").join(name);
    let folder = Path::new(folder);
    let (traces, dataset) = (folder.join("traces"), folder.join("dataset"));
    for used in [&traces, &dataset] {
        if used.exists() {
            return Err(format!("{} exists already", used.display()));
        }
    }
    let text = |path: &Path| path.display().to_string();
    program(
        &text(&built("make-fleet")),
        &[&text(&traces), &RUNS.to_string(), &BLOCKS.to_string()],
    )
    .run()?;

    let heapline = text(&built("heapline"));
    let dataset = text(&dataset);
    let (mut seconds, mut bytes, mut count) = (0.0, 0, 0);
    for service in entries(&traces)? {
        for version in entries(&service)? {
            let files = entries(&version)?;
            let sizes = files.iter().filter_map(|file| file.metadata().ok());
            bytes += sizes.map(|metadata| metadata.len()).sum::<u64>();
            count += files.len();
            let labels = [("service", &service), ("version", &version)]
                .map(|(key, path)| format!("--label={key}={}", name(path)));
            let files: Vec<String> = files.iter().map(|file| text(file)).collect();
            let mut arguments = vec!["dataset", "add", &dataset];
            arguments.extend(labels.iter().map(String::as_str));
            arguments.extend(files.iter().map(String::as_str));
            seconds += timed(&heapline, &arguments)?;
        }
    }
    let stored = size(Path::new(&dataset))?;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "{count} runs, {:.1} MB of traces, {:.1} MB of dataset",
        megabytes(bytes),
        megabytes(stored)
    );
    println!(
        "add    {seconds:.2} s: {:.0} runs/s, {:.1} MB/s",
        count as f64 / seconds,
        megabytes(bytes) / seconds
    );
    for command in ["list", "check"] {
        let seconds = timed(&heapline, &["dataset", command, &dataset])?;
        println!("{command:<6} {seconds:.2} s");
    }
    Ok(())
}

/// Seconds that a program takes.
fn timed(name: &str, arguments: &[&str]) -> Outcome<f64> {
    let started = Instant::now();
    program(name, arguments).output()?;
    Ok(started.elapsed().as_secs_f64())
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn entries(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let unreadable = |error| format!("cannot read {}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Bytes of all files below a folder.
fn size(path: &Path) -> Outcome<u64> {
    if path.is_file() {
        return Ok(path.metadata().map_or(0, |metadata| metadata.len()));
    }
    entries(path)?.iter().map(|entry| size(entry)).sum()
}
