//! Programs that cannot be attached to are refused, with a reason, and are not touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

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

fn wait_until_stopped(pid: u32) {
    let status = || fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    heapline_testkit::wait("the process to stop", || status().contains("(stopped)"));
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
    wait_until_stopped(sleep.id());
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
    let modules = || fs::read_to_string(format!("/proc/{}/maps", sleep.id())).unwrap();
    assert!(!modules().contains("libc.so"), "{}", modules());
    let mut debug = sleep.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        // While it is being attached to.
        heapline_testkit::pass_time(std::time::Duration::from_millis(100));
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
        heapline_testkit::wait("the recording to start", || {
            heapline_recorder::tail::path(&trace).exists()
        });
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

/// A program that sleeps, and has some symbols of OCaml's runtime.
fn program_with_symbols(folder: &Path, name: &str, symbols: &[&str]) -> PathBuf {
    let code = folder.join(format!("{name}.c"));
    let symbols: Vec<String> = symbols
        .iter()
        .map(|name| format!("void {name}(void) {{}}"))
        .collect();
    let main = "int pause(void); int main(void) { pause(); return 0; }";
    fs::write(&code, format!("{}\n{main}\n", symbols.join("\n"))).unwrap();
    compile(folder, &code, name)
}

pub(crate) fn compile(folder: &Path, code: &Path, name: &str) -> PathBuf {
    let program = folder.join(name);
    let status = Command::new("cc")
        .args(["-w", "-rdynamic", "-o"])
        .args([&program, code])
        .status();
    assert!(status.unwrap().success());
    program
}

/// Ends a process that was refused, which must still run.
fn end(mut child: Child) {
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

/// OCaml versions are known by the symbols of their runtimes.
#[test]
fn runtimes_that_are_not_supported_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, symbols, reason) in [
        (
            "bytecode",
            ["caml_interprete"].as_slice(),
            "runs OCaml bytecode",
        ),
        ("old", &["caml_start_program"], "an OCaml before 4.11"),
        (
            "early5",
            &["caml_start_program", "caml_memprof_start"],
            "OCaml 5.0, 5.1 or 5.2, which have no sampler; build it with 5.3 or later",
        ),
        (
            "functions_that_do_nothing",
            // As 5.2 has them.
            &[
                "caml_start_program",
                "caml_memprof_start",
                "caml_memprof_stop",
                "caml_memprof_discard",
                "caml_memprof_new_domain",
                "caml_ml_domain_id",
            ],
            "OCaml 5.0, 5.1 or 5.2, which have no sampler; build it with 5.3 or later",
        ),
    ] {
        let program = program_with_symbols(folder.path(), name, symbols);
        let child = Command::new(program).spawn().unwrap();
        assert_refused(child.id(), &[], reason);
        assert_snapshot_refused(child.id(), reason);
        end(child);
    }
}

fn assert_snapshot_refused(pid: u32, reason: &str) {
    let output = heapline()
        .args(["snapshot", &pid.to_string()])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(said(&output).contains(reason), "{output:?}");
}

/// Its runtime has all that is known by name, but other stacks and domain states.
#[test]
fn oxcaml_is_refused_by_name_and_runs_on() {
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("oxcaml.c");
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/simulated_runtime.c");
    let text = format!("#define OXCAML\n#include \"{}\"\n", runtime.display());
    fs::write(&code, text).unwrap();
    let program = compile(folder.path(), &code, "oxcaml");
    let reason = "was built with OxCaml, whose runtime heapline does not support; build it with OCaml 4.14, or \
                  5.3 or later, or link memtrace";

    let mut child = Command::new(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
    assert_eq!(&line, b"ready\n");
    assert_refused(child.id(), &[], reason);
    assert_refused(child.id(), &["--explain"], reason);
    assert_snapshot_refused(child.id(), reason);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());

    // Those that others start are not looked at before they run: the library says it.
    let record = |options: &[&str]| {
        let output = heapline()
            .arg("record")
            .args(options)
            .arg("--")
            .arg(&program)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .output();
        output.unwrap()
    };
    let output = record(&[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(output.stdout, b"");
    assert!(said(&output).contains(reason), "{output:?}");
    let output = record(&["--follow-exec"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stdout, b"ready\n");
    assert!(said(&output).contains(reason), "{output:?}");
}

/// The toplevel is a bytecode program.
#[test]
fn real_bytecode_is_refused() {
    let toplevel = Command::new("ocaml")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn();
    let Ok(child) = toplevel else {
        heapline_testkit::missing("real_bytecode_is_refused: there is no program `ocaml`");
        return;
    };
    assert_refused(
        child.id(),
        &[],
        "runs OCaml bytecode, which is not supported",
    );
    end(child);
}

#[test]
fn programs_in_strict_seccomp_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("strict.c");
    let text = "#include <linux/seccomp.h>\n#include <sys/prctl.h>\n#include <unistd.h>\n\
                int main(void) { char c; if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) return 1; \
                write(1, \"\\n\", 1); read(0, &c, 1); return 0; }\n";
    fs::write(&code, text).unwrap();
    let mut child = Command::new(compile(folder.path(), &code, "strict"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It has said that it is in this mode.
    let mut line = [0];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
    for options in [[].as_slice(), &["--allow-seccomp"]] {
        assert_refused(child.id(), options, "runs under strict seccomp");
    }
    end(child);
}

/// Such a program is made by hand: compilers for it are rarely installed.
#[test]
fn programs_of_32_bits_are_refused() {
    const BASE: u32 = 0x0804_8000;
    const CODE: u32 = 52 + 32;
    // pause: system call 29, again and again.
    let code = [0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7];
    let mut elf = Vec::new();
    elf.extend(b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0");
    for half in [2_u16, 3] {
        elf.extend(half.to_le_bytes());
    }
    for word in [1, BASE + CODE, 52, 0, 0] {
        elf.extend(word.to_le_bytes());
    }
    for half in [52_u16, 32, 1, 40, 0, 0] {
        elf.extend(half.to_le_bytes());
    }
    let size = CODE + u32::try_from(code.len()).unwrap();
    for word in [1, 0, BASE, BASE, size, size, 5, 4096] {
        elf.extend(word.to_le_bytes());
    }
    elf.extend(code);
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("small");
    heapline_testkit::write_program(&program, &elf);
    let Ok(child) = Command::new(&program).spawn() else {
        heapline_testkit::missing("programs_of_32_bits_are_refused: this system does not run them");
        return;
    };
    assert_refused(child.id(), &[], "is not a 64-bit x86 program");
    end(child);
}
