//! `cargo xtask fuzz`: the fuzz targets, on a stable toolchain.
//!
//! cargo-fuzz is the better tool for a long hunt (`cargo +nightly fuzz run reader`), but needs a
//! nightly compiler for its sanitizers. Safe code has little use for those, and coverage, which the
//! fuzzer lives on, can be had without.

use std::fs;
use std::path::Path;

use crate::command::{Outcome, cargo, program, root};

const TARGETS: [&str; 11] = [
    "reader",
    "locations",
    "round_trip",
    "profile",
    "tail",
    "spacetime",
    "heap",
    "definitions",
    "sturgeon",
    "keep",
    "index",
];

/// Messages of Emacs to `heapline sturgeon`.
const STURGEON: &str = "(greetings 1)\n(feed 1 meta many . 0)\n(feed 2 many meta many . 1)\n\
     (feed 2 patch (5 . 7) 12 (propertize . 0) (clicked))\n(feed 2 ack (17 . 21))\n\
     (feed 9 a \"b\\303\\251\" meta once . 5)\n(quit 2 . finalize)\n";

/// The flags that cargo-fuzz passes for coverage.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// Runs each target for so many seconds, from the fixtures and whatever earlier runs found. With a
/// seed it does the same every time.
pub(crate) fn run(seconds: u32, seed: Option<u32>) -> Outcome {
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
    for target in TARGETS {
        let corpus = root().join("fuzz/corpus").join(target);
        plant_seeds(&corpus, target)
            .map_err(|error| format!("cannot write the seeds of {target}: {error}"))?;
        let artifacts = root().join("fuzz/artifacts").join(target);
        fs::create_dir_all(&artifacts).map_err(|error| error.to_string())?;
        let path = format!("fuzz/target/{host}/release/{target}");
        let corpus = corpus.display().to_string();
        let limits = [
            format!("-max_total_time={seconds}"),
            format!("-artifact_prefix={}/", artifacts.display()),
            "-rss_limit_mb=1000".into(),
            "-timeout=20".into(),
            "-max_len=70000".into(),
            "-print_final_stats=1".into(),
            "-verbosity=0".into(),
            format!("-seed={}", seed.unwrap_or(0)),
        ];
        let mut arguments: Vec<&str> = limits.iter().map(String::as_str).collect();
        arguments.push(&corpus);
        program(&path, &arguments).run()?;
    }
    Ok(())
}

/// Gives a target the fixtures to start from.
fn plant_seeds(corpus: &Path, target: &str) -> std::io::Result<()> {
    fs::create_dir_all(corpus)?;
    if target == "locations" {
        // It makes the trace around its input by itself.
        return Ok(());
    }
    if target == "sturgeon" {
        return fs::write(corpus.join("emacs"), STURGEON);
    }
    let mut folders = vec![root().join("fixtures")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if is_seed(&path, target) {
                let mut bytes = fs::read(&path)?;
                match target {
                    // This target takes its options from the first byte.
                    "reader" => bytes.insert(0, 0xf0),
                    // This one the length of the trace; the rest is for the tail.
                    "tail" => drop(bytes.splice(0..0, [0, 0x40, 0x81])),
                    // This one the size to keep it within, and how often it is written.
                    "keep" => drop(bytes.splice(0..0, [0, 0x40, 5])),
                    // This one changes of the index.
                    "index" => drop(bytes.splice(0..0, [2, 0, 0, 40, 1, 0, 1, 0, 8])),
                    // And this one a query from the first line.
                    "profile" => {
                        let query = b"live at peak and (size > 3w or inside \"M*\")\n";
                        bytes.splice(0..0, query.iter().copied());
                    }
                    _ => {}
                }
                let name: Vec<_> = path
                    .iter()
                    .rev()
                    .take(2)
                    .map(|part| part.to_string_lossy())
                    .collect();
                fs::write(corpus.join(name.join("-")), bytes)?;
            }
        }
    }
    Ok(())
}

/// Returns true if a fixture is of a format that a target reads, and not compressed.
fn is_seed(path: &Path, target: &str) -> bool {
    let extensions: &[&str] = match target {
        "spacetime" => &["p", "profile"],
        "heap" => &["heap"],
        "definitions" => &["cmt", "ml"],
        _ => &["ctf"],
    };
    let extension = path.extension().unwrap_or_default();
    extensions.iter().any(|seed| extension == *seed)
}

fn host() -> Outcome<String> {
    let version = program("rustc", &["-vV"]).output()?;
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or_else(|| "rustc does not say what machine it is for".into())
}
