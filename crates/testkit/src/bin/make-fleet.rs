//! Writes traces of many runs: `make-fleet FOLDER RUNS` makes `FOLDER/SERVICE/VERSION/NUMBER.ctf`.
//! `cargo xtask bench dataset` runs it.

use std::path::PathBuf;
use std::process::ExitCode;

use heapline_testkit::fleet::FleetRun;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((folder, runs)) = (match &arguments[..] {
        [folder, runs] => runs
            .parse()
            .ok()
            .map(|runs: u64| (PathBuf::from(folder), runs)),
        _ => None,
    }) else {
        return ExitCode::from(2);
    };
    for number in 0..runs {
        let run = FleetRun { number };
        let folder = folder.join(run.service()).join(run.version());
        let written = std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(folder.join(format!("{number:05}.ctf")), run.trace()));
        if written.is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
