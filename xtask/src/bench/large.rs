//! The time and memory that large traces take, on all cores and on one.

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::command::{Outcome, cargo, program, root};
use crate::setup;

/// The sizes of the traces.
const SIZES: [&str; 3] = ["512M", "2G", "8G"];

/// The limit of memory.
const MEMORY: &str = "1GiB";

/// GNU's time, which tells the memory; that of shells does not.
const TIME: &str = "/usr/bin/time";

/// Generates traces in a folder, if they are not there, and measures how they are indexed and asked about.
pub(crate) fn measure(folder: &str) -> Outcome {
    setup::debian_unless(Path::new(TIME).exists(), "time")?;
    let packages = ["-p", "heapline-cli", "-p", "heapline-testkit"];
    cargo(&[&["build", "--locked", "--release"], &packages[..]].concat()).run()?;
    let built = |name: &str| root().join("target/release").join(name);
    let (heapline, long_run) = (built("heapline"), built("long-run"));
    fs::create_dir_all(folder).map_err(|error| format!("cannot create {folder}: {error}"))?;
    println!("{:<34} {:>9} {:>9} {:>9}", "", "seconds", "MB/s", "MB");
    for size in SIZES {
        let trace = Path::new(folder).join(format!("long-{size}.ctf"));
        let trace = trace.display().to_string();
        if !Path::new(&trace).exists() {
            program(&text(&long_run), &["--bytes", size, &trace]).run()?;
        }
        let index = ["index", &trace, "--force", "--memory", MEMORY];
        let heapline = text(&heapline);
        let one_core = [&["-c", "0", &heapline], &index[..]].concat();
        measured(
            &trace,
            &format!("{size}, index, one core"),
            "taskset",
            &one_core,
        )?;
        measured(&trace, &format!("{size}, index"), &heapline, &index)?;
        for report in [
            &["summary", &trace][..],
            &["hotspots", &trace, "--where", "allocated in 40%..41%"],
            &["hotspots", &trace],
            &["series", &trace],
        ] {
            let asked = [report, &["--memory", MEMORY]].concat();
            let name = report.iter().filter(|part| **part != trace);
            let name: Vec<&str> = name.copied().collect();
            measured(
                &trace,
                &format!("{size}, {}", name.join(" ")),
                &heapline,
                &asked,
            )?;
        }
    }
    Ok(())
}

/// Prints the time, the bytes of the trace per second, and the memory of a command.
fn measured(trace: &str, name: &str, command: &str, arguments: &[&str]) -> Outcome {
    let bytes = fs::metadata(trace)
        .map_err(|error| format!("{trace}: {error}"))?
        .len();
    let log = std::env::temp_dir().join(format!("heapline-bench-{}", std::process::id()));
    let log_name = log.display().to_string();
    let timed = [&["-f", "%M", "-o", &log_name, command], arguments].concat();
    let start = Instant::now();
    program(TIME, &timed).output()?;
    let seconds = start.elapsed().as_secs_f64();
    let memory = fs::read_to_string(&log).unwrap_or_default();
    let _ = fs::remove_file(&log);
    let kib: f64 = memory.trim().parse().unwrap_or(f64::NAN);
    println!(
        "{name:<34} {seconds:>9.2} {:>9.1} {:>9.0}",
        bytes as f64 / seconds / 1e6,
        kib * 1024.0 / 1e6
    );
    Ok(())
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
