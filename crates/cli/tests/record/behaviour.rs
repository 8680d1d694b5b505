//! Recording does not show: the same output, the same errors, the same end.

use crate::run::{Program, truths};
use crate::toolchain::compilers;

/// Programs with the arguments to try, where there are any.
const PROGRAMS: [(&str, &[&str]); 13] = [
    ("maps", &[]),
    ("threads", &[]),
    ("exceptions", &[]),
    ("fork", &[]),
    ("exec", &[]),
    ("signals", &["handled", "term", "int", "abort"]),
    (
        "exits",
        &[
            "return", "exit", "at_exit", "_exit", "raise", "thread", "overflow",
        ],
    ),
    ("deep", &[]),
    ("bigarrays", &[]),
    ("marshal", &[]),
    ("sizes", &[]),
    ("sites", &[]),
    ("surroundings", &["plain", "two words", "--", "-o", ""]),
];

#[test]
fn programs_do_the_same_when_they_are_recorded() {
    for compiler in compilers("programs_do_the_same_when_they_are_recorded") {
        for (name, ways) in PROGRAMS {
            let none = [""];
            let ways = if ways.is_empty() { &none } else { ways };
            for way in ways {
                let program = Program::new(compiler.program(name));
                let program = if *ways == none {
                    program
                } else {
                    program.args(&[way])
                };
                assert_same(
                    &program,
                    &format!("{name} {way} (OCaml {})", compiler.version),
                );
            }
        }
    }
}

#[test]
fn programs_with_domains_do_the_same_when_they_are_recorded() {
    for compiler in crate::toolchain::with_domains("programs_with_domains_do_the_same") {
        for name in ["domains", "waves", "short", "effects", "domain_exit"] {
            let program = Program::new(compiler.program(&format!("ocaml5/{name}")));
            assert_same(&program, name);
        }
    }
}

/// Recorded at a rate at which nearly everything is sampled, and at one that is usual.
#[track_caller]
fn assert_same(program: &Program, what: &str) {
    let (plain, _) = program.plain();
    for rate in ["0.1", "1e-4"] {
        let recording = program.record(&["--rate", rate]);
        assert_eq!(recording.ended, plain, "{what}: {}", recording.said);
        let trace = recording.read();
        assert!(
            rate == "1e-4" || !trace.allocations.is_empty(),
            "{what}: nothing was recorded: {}",
            recording.said
        );
    }
}

#[test]
fn all_of_a_large_input_goes_through() {
    let input: String = "a line of words\n".repeat(60_000);
    for compiler in compilers("all_of_a_large_input_goes_through") {
        let program = Program::new(compiler.program("streams")).input(input.as_str());
        let (plain, _) = program.plain();
        assert_eq!(plain.stdout.len(), input.len());
        let recording = program.record(&["--rate", "1e-2"]);
        assert_eq!(recording.ended, plain, "{}", recording.said);
        recording.read();
    }
}

#[test]
fn the_environment_is_the_users() {
    for compiler in compilers("the_environment_is_the_users") {
        let program = Program::new(compiler.program("surroundings"))
            .env("MEMTRACE_RATE", "0.5")
            .env("OCAMLRUNPARAM", "b")
            .env("EMPTY", "")
            // Something that every program has anyhow.
            .env("LD_PRELOAD", "libm.so.6");
        let (plain, _) = program.plain();
        assert!(plain.stdout.contains("LD_PRELOAD=libm.so.6"), "{plain:?}");
        let recording = program.record(&["--rate", "1e-2", "--context", "a test"]);
        assert_eq!(recording.ended, plain, "OCaml {}", compiler.version);
        let trace = recording.read();
        assert_eq!(trace.context.as_deref(), Some("a test"));
        assert!((trace.rate - 0.01).abs() < 1e-12, "{}", trace.rate);
    }
}

/// As under `nohup`, or as children of programs that block signals.
#[test]
fn ignored_and_blocked_signals_stay_so() {
    let ways = [
        "--ignore-signal=HUP,INT,QUIT,PIPE,CHLD,TERM,USR1",
        "--block-signal=USR2,TERM,ALRM",
        "--default-signal",
    ];
    for compiler in compilers("ignored_and_blocked_signals_stay_so") {
        for way in ways {
            let program = Program::new(compiler.program("surroundings")).started_by(&["env", way]);
            assert_same(&program, way);
        }
    }
}

/// A program whose output is closed may fail, and fails in the same way.
#[test]
fn closed_descriptors_stay_closed() {
    for compiler in compilers("closed_descriptors_stay_closed") {
        for redirection in ["<&-", ">&-", "<&- >&-"] {
            let script = format!("exec \"$0\" \"$@\" {redirection}");
            let program =
                Program::new(compiler.program("descriptors")).started_by(&["sh", "-c", &script]);
            assert_same(&program, redirection);
        }
    }
}

/// The runtime has one sampler; by default the recording keeps it, and the program believes that it
/// has it.
#[test]
fn a_program_with_a_sampler_of_its_own_runs_in_both_ways() {
    for compiler in compilers("a_program_with_a_sampler_of_its_own_runs_in_both_ways") {
        let program = Program::new(compiler.program("memprof"));
        let (plain, output) = program.plain();
        assert!(plain.stdout.starts_with("started\nstopped\n"));
        let samples: u64 = truths(&output, "own samples")[0].parse().unwrap();
        assert!(samples > 1_000);

        let ours = program.record(&["--rate", "1e-2"]);
        assert_eq!(ours.ended, plain, "OCaml {}", compiler.version);
        assert!(ours.said.contains("Gc.Memprof"), "{}", ours.said);
        let trace = ours.read();
        let without = Program::new(compiler.program("memprof")).args(&["without"]);
        trace.assert_near(trace.heap_words(), without.words(), &compiler.version);

        let theirs = program.record(&["--rate", "1e-2", "--memprof", "theirs"]);
        assert_eq!(theirs.ended, plain, "OCaml {}", compiler.version);
        assert!(theirs.said.contains("its own sampler"), "{}", theirs.said);
        assert!(theirs.read().allocations.len() < 100);
    }
}

#[test]
fn programs_are_recorded_however_they_were_linked() {
    for compiler in compilers("programs_are_recorded_however_they_were_linked") {
        for (kind, flags) in [
            ("maps-stripped", "-s"),
            ("maps-no-pie", "-no-pie"),
            ("maps-now", "-Wl,-z,now"),
        ] {
            let program = Program::new(compiler.program_with("maps", kind, &["-ccopt", flags]));
            assert_same(&program, &format!("{kind} (OCaml {})", compiler.version));
        }
    }
}

#[test]
fn a_trace_is_not_larger_than_allowed() {
    for compiler in compilers("a_trace_is_not_larger_than_allowed") {
        let program = Program::new(compiler.program("maps"));
        let (plain, _) = program.plain();
        let recording = program.record(&["--rate", "0.5", "--max-size", "1MiB"]);
        assert_eq!(recording.ended, plain, "OCaml {}", compiler.version);
        let size = std::fs::metadata(&recording.trace).unwrap().len();
        assert!(size <= 1024 * 1024, "{size}");
        let trace = recording.read();
        assert!(
            trace.allocations.len() > 1_000,
            "{}",
            trace.allocations.len()
        );
        // What is recorded is recorded to its end.
        assert!(trace.collections > trace.allocations.len() as u64 / 2);
    }
}
