//! Benchmark of recording real programs: user time and peak memory, plain and recorded by turns.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{Outcome, cargo, exists, program, root};

/// Runs of each program in each way.
const TURNS: usize = 5;

const RATES: [&str; 2] = ["1e-4", "1e-3"];

/// Measures user time and memory of a program.
const TIME: &str = "/usr/bin/time";

pub(super) fn measure() -> Outcome {
    if !exists(TIME) {
        return Err(format!("{TIME} is missing; install the package \"time\""));
    }
    let build = [
        "build",
        "--locked",
        "--release",
        "--package",
        "heapline-cli",
    ];
    cargo(&build).run()?;
    let folder = root().join("target/bench-programs");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let bench = Programs {
        heapline: root().join("target/release/heapline").display().to_string(),
        folder,
    };
    let columns: String = RATES.iter().fold(String::new(), |mut text, rate| {
        let _ = write!(text, " {rate:>14} {:>8}", "memory");
        text
    });
    println!("{:<34} {:>9} {:>9}{columns}", "", "user", "memory");
    for workload in bench.workloads()? {
        bench.compare(&workload)?;
    }
    println!("\nTimes are medians of {TURNS} runs, and ratios to the plain runs.");
    Ok(())
}

struct Programs {
    heapline: String,
    folder: PathBuf,
}

struct Workload {
    name: String,
    command: Vec<String>,
}

/// The cost of a run: user time in seconds, peak memory in MiB.
#[derive(Clone, Copy)]
struct Cost {
    user: f64,
    memory: f64,
}

impl Programs {
    /// Programs of Debian's with work for a second or more, and recursions.
    fn workloads(&self) -> Outcome<Vec<Workload>> {
        let text = |name: &str| {
            let path = root().join(name);
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let source = text("tests/ocaml/debian/large.ml")?;
        let copies = (0..30).map(|n| format!("module M{n} = struct\n{source}\nend\n"));
        self.write("copies.ml", &copies.collect::<String>())?;
        let proofs = text("tests/ocaml/debian/proofs.v")?;
        let (imports, proofs) = proofs.split_at(proofs.find("Fixpoint").unwrap_or(0));
        let copies = (0..20).map(|n| format!("Module M{n}.\n{proofs}\nEnd M{n}.\n"));
        self.write(
            "copies.v",
            &(imports.to_owned() + &copies.collect::<String>()),
        )?;
        self.write("Main.hx", &haxe_program())?;
        self.write("deep.ml", &text("xtask/ocaml/deep.ml")?)?;
        let mut workloads = vec![
            ("coqc, proofs", "coqc copies.v"),
            ("haxe, to JavaScript", "haxe -main Main --js main.js"),
            (
                "liquidsoap --check",
                "liquidsoap --check output.dummy(sine())",
            ),
            ("ocamlopt.opt", "ocamlopt.opt -c copies.ml"),
        ];
        workloads.retain(|(_, command)| {
            let name = command.split(' ').next().unwrap_or_default();
            let is_there = exists(name);
            if !is_there {
                println!("{name} is not installed");
            }
            is_there
        });
        program("ocamlopt.opt", &["-g", "deep.ml", "-o", "deep"])
            .folder(&self.folder)
            .run()?;
        workloads.push(("recursion, 5,000 frames", "./deep 5000 30000000"));
        workloads.push(("recursion, 100,000 frames", "./deep 100000 30000000"));
        let workload = |(name, command): (&str, &str)| Workload {
            name: name.to_owned(),
            command: command.split(' ').map(str::to_owned).collect(),
        };
        Ok(workloads.into_iter().map(workload).collect())
    }

    fn write(&self, name: &str, text: &str) -> Outcome {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn compare(&self, workload: &Workload) -> Outcome {
        let mut plain = Vec::new();
        let mut recorded = RATES.map(|_| Vec::new());
        for _ in 0..TURNS {
            plain.push(self.cost(&workload.command)?);
            for (rate, costs) in RATES.iter().zip(&mut recorded) {
                let record = [
                    "record",
                    "--force",
                    "--quiet",
                    "-o",
                    "trace.ctf",
                    "--rate",
                    rate,
                    "--",
                ];
                let mut command = vec![self.heapline.clone()];
                command.extend(record.map(str::to_owned));
                command.extend(workload.command.iter().cloned());
                costs.push(self.cost(&command)?);
            }
        }
        let plain = median(&plain);
        let mut line = format!(
            "{:<34} {:>7.2} s {:>5.0} MiB",
            workload.name, plain.user, plain.memory
        );
        for costs in recorded {
            let cost = median(&costs);
            let (user, memory) = (cost.user / plain.user, cost.memory / plain.memory);
            let _ = write!(line, " {user:>14.2} {memory:>8.2}");
        }
        println!("{line}");
        Ok(())
    }

    fn cost(&self, command: &[String]) -> Outcome<Cost> {
        let measured = self.folder.join("cost");
        let output = measured.display().to_string();
        let time = ["-o", &output, "-f", "%U %M"];
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        program(TIME, &[&time[..], &command].concat())
            .folder(&self.folder)
            .output()?;
        parse(&measured)
    }
}

fn parse(path: &Path) -> Outcome<Cost> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(user)), Some(Ok(kib))) => Ok(Cost {
            user,
            memory: kib / 1024.0,
        }),
        _ => Err(format!("{TIME} printed {text:?}")),
    }
}

/// The medians of each.
fn median(costs: &[Cost]) -> Cost {
    let middle = |value: fn(&Cost) -> f64| {
        let mut values: Vec<f64> = costs.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Cost {
        user: middle(|cost| cost.user),
        memory: middle(|cost| cost.memory),
    }
}

/// A program of many functions.
fn haxe_program() -> String {
    let mut text = "class Main {\n".to_owned();
    for n in 0..4000 {
        let _ = writeln!(
            text,
            "static function f{n}(a:Int):Array<Int> {{ var m = new Map<String, Int>(); \
             for (i in 0...a) m.set(\"k\" + i, i * {n}); return [for (k in m.keys()) m.get(k)]; }}"
        );
    }
    text + "static function main() { trace(f1(3)); }\n}\n"
}
