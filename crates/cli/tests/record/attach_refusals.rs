//! Programs that cannot be attached to are refused, with a reason, and are not touched.

use std::process::{Command, Stdio};

use crate::attach::{Running, attach, said};
use crate::run::heapline;
use crate::toolchain::compilers;

fn assert_refused(pid: u32, options: &[&str], reason: &str) {
    let output = attach(pid, options);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = said(&output);
    assert!(said.contains(reason), "{said}");
}

fn send(signal: &str, pid: u32) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn processes_that_are_no_ocaml_programs_are_refused() {
    assert_refused(
        i32::MAX.cast_unsigned(),
        &[],
        "there is no process 2147483647",
    );
    let mut sleep = Command::new("sleep").arg("1000").spawn().unwrap();
    assert_refused(sleep.id(), &[], "is no OCaml program");
    send("-STOP", sleep.id());
    // The signal is on its way.
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_refused(sleep.id(), &[], "is stopped; continue it first: kill -CONT");
    sleep.kill().unwrap();
    sleep.wait().unwrap();
}

/// The dynamic linker waits with its debugging output until somebody reads it.
#[test]
fn programs_that_are_being_loaded_are_not_taken_for_static_ones() {
    let path: Vec<String> = (0..2000).map(|n| format!("/nonexistent/{n}")).collect();
    let mut sleep = Command::new("sleep")
        .arg("1000")
        .env("LD_DEBUG", "libs")
        .env("LD_LIBRARY_PATH", path.join(":"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let modules = || std::fs::read_to_string(format!("/proc/{}/maps", sleep.id())).unwrap();
    assert!(!modules().contains("libc.so"), "{}", modules());
    let mut debug = sleep.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        std::io::copy(&mut debug, &mut std::io::sink()).unwrap();
    });
    let output = attach(sleep.id(), &[]);
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    reader.join().unwrap();
    assert!(said(&output).contains("is no OCaml program"), "{output:?}");
}

#[test]
fn a_program_that_is_recorded_already_is_refused() {
    for compiler in compilers("a_program_that_is_recorded_already_is_refused") {
        let running = Running::start(&compiler.program("steady"), &[]);
        let trace = running.folder.path().join("trace.ctf");
        let mut first = heapline()
            .args(["attach", &running.pid().to_string(), "--quiet", "-o"])
            .arg(&trace)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while !heapline_recorder::tail::path(&trace).exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_refused(
            running.pid(),
            &[],
            "end that first: heapline attach --detach",
        );
        // It goes on without the one that has attached, until somebody ends it.
        first.kill().unwrap();
        first.wait().unwrap();
        assert_refused(
            running.pid(),
            &[],
            "end that first: heapline attach --detach",
        );
        let output = running.attach(&["--detach"]);
        assert!(output.status.success(), "{output:?}");
        assert_refused(running.pid(), &["--detach"], "is not recording process");
        let trace = crate::trace::Trace::strict(&trace);
        assert!(!trace.allocations.is_empty());
        assert!(running.finish().status.success());
    }
}

#[test]
fn a_program_with_its_own_sampler_is_refused_and_goes_on() {
    for compiler in compilers("a_program_with_its_own_sampler_is_refused_and_goes_on") {
        let running = Running::start(&compiler.program("steady"), &["memprof"]);
        let trace = running.folder.path().join("trace.ctf");
        let options = ["-o", trace.to_str().unwrap()];
        assert_refused(
            running.pid(),
            &options,
            "the program uses Gc.Memprof itself",
        );
        assert!(!trace.exists());
        let output = running.finish();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(said(&output), "");
    }
}

#[test]
fn static_programs_are_refused() {
    for compiler in compilers("static_programs_are_refused") {
        let flags = ["-ccopt", "-static"];
        let program = compiler.program_with("steady", "steady-static", &flags);
        let running = Running::start(&program, &[]);
        assert_refused(running.pid(), &[], "it is statically linked");
        assert!(running.finish().status.success());
    }
}
