//! Writes traces of many runs: `make-fleet FOLDER RUNS BLOCKS` makes `FOLDER/SERVICE/VERSION/NUMBER.ctf`, of so many blocks each.
//! `cargo xtask bench dataset` runs it.

use std::path::PathBuf;
use std::process::ExitCode;

use heapline_testkit::fleet::FleetRun;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, runs, blocks] = &arguments[..] else {
        return ExitCode::from(2);
    };
    let (Ok(runs), Ok(blocks)) = (runs.parse(), blocks.parse()) else {
        return ExitCode::from(2);
    };
    let folder = PathBuf::from(folder);
    for number in 0..runs {
        let run = FleetRun { number, blocks };
        let folder = folder.join(run.service()).join(run.version());
        let written = std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(folder.join(format!("{number:05}.ctf")), run.trace()));
        if written.is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
