//! What recording costs, in instructions: the runtime's part and ours.

use std::fs;
use std::path::Path;

use super::collected;
use crate::command::{Outcome, cargo, program, root};

/// Instructions and blocks, of one run.
struct Cost {
    instructions: f64,
    blocks: f64,
    bytes: f64,
}

pub(super) fn count(bench: &str) -> Outcome {
    let agent = [
        "build",
        "--locked",
        "--package",
        "heapline-agent",
        "--profile",
        "agent",
    ];
    cargo(&agent).run()?;
    let folder = root().join("target/bench-recording");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let source = folder.join("map.ml").display().to_string();
    fs::copy(root().join("xtask/ocaml/map.ml"), &source)
        .map_err(|error| format!("{source}: {error}"))?;
    let binary = folder.join("map.exe").display().to_string();
    program("ocamlopt", &["-g", &source, "-o", &binary]).run()?;

    let alone = run(&[&binary], None, bench)?.instructions;
    println!(
        "\nRecording, instructions: the program alone {:.0} million",
        alone / 1e6
    );
    println!(
        "{:>8} {:>10} {:>16} {:>16} {:>14} {:>12}",
        "rate", "blocks", "sampler/block", "recorder/block", "of the program", "bytes/block"
    );
    for rate in ["1e-4", "1e-3", "1e-2"] {
        let sampler = run(&[&binary, rate], None, bench)?;
        let trace = folder.join("map.ctf");
        let all = run(&[&binary], Some((rate, &trace)), bench)?;
        let sampler = sampler.instructions - alone;
        let ours = all.instructions - alone - sampler;
        println!(
            "{rate:>8} {:>10} {:>16.0} {:>16.0} {:>13.2}% {:>12.1}",
            all.blocks,
            sampler / all.blocks,
            ours / all.blocks,
            100.0 * ours / alone,
            all.bytes / all.blocks
        );
    }
    Ok(())
}

/// Counts a run; with a rate and a trace it is recorded.
fn run(command: &[&str], recorded: Option<(&str, &Path)>, bench: &str) -> Outcome<Cost> {
    // The agent changes code, which callgrind must notice.
    let mut arguments = vec![
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        "--smc-check=all",
    ];
    arguments.extend(command);
    let mut valgrind = program("valgrind", &arguments);
    if let Some((rate, trace)) = recorded {
        let agent = root().join("target/agent/libheapline_agent.so");
        valgrind = valgrind
            .env("LD_PRELOAD", &agent.display().to_string())
            .env("MEMTRACE", &trace.display().to_string())
            .env("MEMTRACE_RATE", rate);
    }
    let output = valgrind.output()?;
    let instructions =
        collected(&output).ok_or_else(|| format!("valgrind counted nothing:\n{output}"))?;
    let (mut blocks, mut bytes) = (0.0, 0.0);
    if let Some((_, trace)) = recorded {
        let shown = trace.display().to_string();
        let counted = program(bench, &["--blocks", &shown]).output()?;
        blocks = counted
            .trim()
            .parse()
            .map_err(|_| format!("no number: {counted}"))?;
        bytes = fs::metadata(trace)
            .map_err(|error| format!("{shown}: {error}"))?
            .len() as f64;
    }
    Ok(Cost {
        instructions,
        blocks,
        bytes,
    })
}
