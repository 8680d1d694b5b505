//! `cargo xtask fuzz`: the fuzz targets, on a stable toolchain.
//!
//! cargo-fuzz is the better tool for a long hunt (`cargo +nightly fuzz run reader`), but needs a
//! nightly compiler for its sanitizers. Safe code has little use for those, and coverage, which the
//! fuzzer lives on, can be had without.

use std::fs;

use crate::command::{Outcome, cargo, program, root};

/// The flags that cargo-fuzz passes for coverage.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// Runs each target for so many seconds, from the fixtures and whatever earlier runs found.
pub(crate) fn run(seconds: u32) -> Outcome {
    // With an explicit target the flags do not reach build scripts, which would not link.
    let host = host()?;
    let build = [
        "build",
        "--locked",
        "--release",
        "--manifest-path",
        "fuzz/Cargo.toml",
    ];
    cargo(&[&build[..], &["--target", &host]].concat())
        .env("RUSTFLAGS", COVERAGE)
        .run()?;
    let corpora = root().join("fuzz/corpus");
    let directory = corpora.display().to_string();
    let write_seeds = [
        "run",
        "--package=heapline-fuzz-targets",
        "--bin=write-seeds",
        &directory,
    ];
    cargo(&write_seeds).run()?;
    let unreadable = |error| format!("cannot read {directory}: {error}");
    for entry in fs::read_dir(&corpora).map_err(unreadable)? {
        let corpus = entry.map_err(unreadable)?.path();
        let target = corpus.file_name().unwrap_or_default().to_string_lossy();
        let artifacts = root().join("fuzz/artifacts").join(&*target);
        fs::create_dir_all(&artifacts).map_err(|error| error.to_string())?;
        let path = format!("fuzz/target/{host}/release/{target}");
        let limits = [
            format!("-max_total_time={seconds}"),
            format!("-artifact_prefix={}/", artifacts.display()),
            "-rss_limit_mb=1000".into(),
            "-timeout=20".into(),
            "-max_len=70000".into(),
            "-print_final_stats=1".into(),
            "-verbosity=0".into(),
            corpus.display().to_string(),
        ];
        let arguments: Vec<&str> = limits.iter().map(String::as_str).collect();
        program(&path, &arguments).run()?;
    }
    Ok(())
}

fn host() -> Outcome<String> {
    let version = program("rustc", &["-vV"]).output()?;
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or_else(|| "rustc does not say what machine it is for".into())
}
