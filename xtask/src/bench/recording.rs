//! Benchmark of recording overhead, in instructions: the runtime's part and ours.

use std::fs;
use std::path::{Path, PathBuf};

use super::collected;
use crate::command::{Outcome, Run, cargo, program, root};

/// Copies of a program that are compiled at once, to give the compiler something to do.
const COPIES: usize = 10;

/// The agent's functions that OCaml 4 calls: what they do, and what is done for them, is our part.
const OURS: &str = "--toggle-collect=heapline_agent::arch::*::direct";

pub(super) fn measure(bench: &str) -> Outcome {
    let folder = root().join("target/bench-recording");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    // With symbols, so that our part is seen.
    let target = folder.display().to_string();
    let agent = [
        "rustc",
        "--locked",
        "--package=heapline-agent",
        "--lib",
        "--crate-type=cdylib",
    ];
    let how = [
        "--profile",
        "agent",
        "--config",
        "profile.agent.strip=false",
    ];
    cargo(&[&agent[..], &how, &["--target-dir", &target]].concat()).run()?;
    let recording = Recording {
        bench: bench.to_owned(),
        agent: folder.join("agent/libheapline_agent.so"),
        folder,
    };
    recording.count_map()?;
    recording.count_compiler()?;
    println!(
        "\nWhat is the sampler's is a difference, which is not exact at low rates: collections come \
         at other times."
    );
    Ok(())
}

/// The environment for recording a program.
struct Recording {
    bench: String,
    agent: PathBuf,
    folder: PathBuf,
}

impl Recording {
    /// A program that does little but allocate.
    fn count_map(&self) -> Outcome {
        let source = self.folder.join("map.ml").display().to_string();
        fs::copy(root().join("xtask/ocaml/map.ml"), &source)
            .map_err(|error| format!("{source}: {error}"))?;
        let binary = self.folder.join("map.exe").display().to_string();
        program("ocamlopt", &["-g", &source, "-o", &binary]).run()?;
        self.count("a Map of 20,000 strings, built 20 times", &[&binary])
    }

    /// Instructions for a block, the runtime's and ours.
    fn count(&self, name: &str, command: &[&str]) -> Outcome {
        let trace = self.folder.join("trace.ctf");
        let alone = instructions(callgrind(&[], command))?;
        println!(
            "\nRecording {name}: {:.0} million instructions alone",
            alone / 1e6
        );
        println!(
            "{:>8} {:>10} {:>16} {:>16} {:>10} {:>10} {:>12}",
            "rate", "blocks", "sampler/block", "recorder/block", "all", "ours", "bytes/block"
        );
        for rate in ["1e-4", "1e-3", "1e-2"] {
            let all = instructions(self.recorded(callgrind(&[], command), rate, &trace))?;
            let ours = instructions(self.recorded(callgrind(&[OURS], command), rate, &trace))?;
            let (blocks, bytes) = self.size(&trace)?;
            println!(
                "{rate:>8} {blocks:>10} {:>16.0} {:>16.0} {:>+9.2}% {:>+9.2}% {:>12.1}",
                (all - alone - ours) / blocks,
                ours / blocks,
                100.0 * (all - alone) / alone,
                100.0 * ours / alone,
                bytes / blocks
            );
        }
        Ok(())
    }

    /// Counts instructions of the compiler, which has deep stacks and much code.
    fn count_compiler(&self) -> Outcome {
        let text = root().join("tests/ocaml/debian/large.ml");
        let text =
            fs::read_to_string(&text).map_err(|error| format!("{}: {error}", text.display()))?;
        let copies = (0..COPIES).map(|n| format!("module M{n} = struct\n{text}\nend\n"));
        let source = self.folder.join("copies.ml").display().to_string();
        fs::write(&source, copies.collect::<String>())
            .map_err(|error| format!("{source}: {error}"))?;
        let compiler = ["ocamlopt.opt", "-c", &source];
        self.count(
            &format!("ocamlopt.opt, {COPIES} copies of a program"),
            &compiler,
        )
    }

    /// The run of a program that is recorded.
    fn recorded(&self, run: Run, rate: &str, trace: &Path) -> Run {
        run.env("LD_PRELOAD", &self.agent.display().to_string())
            .env("MEMTRACE", &trace.display().to_string())
            .env("MEMTRACE_RATE", rate)
    }

    /// The number of blocks of a trace, and its size in bytes.
    fn size(&self, trace: &Path) -> Outcome<(f64, f64)> {
        let shown = trace.display().to_string();
        let counted = program(&self.bench, &["--blocks", &shown]).output()?;
        let blocks = counted
            .trim()
            .parse()
            .map_err(|_| format!("no number: {counted}"))?;
        let bytes = fs::metadata(trace)
            .map_err(|error| format!("{shown}: {error}"))?
            .len() as f64;
        Ok((blocks, bytes))
    }
}

/// A program, counted by callgrind.
fn callgrind(options: &[&str], command: &[&str]) -> Run {
    // The agent changes code, which callgrind must notice.
    let always = [
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        "--smc-check=all",
    ];
    program("valgrind", &[&always, options, command].concat())
}

fn instructions(run: Run) -> Outcome<f64> {
    let output = run.output()?;
    collected(&output).ok_or_else(|| format!("valgrind counted nothing:\n{output}"))
}
