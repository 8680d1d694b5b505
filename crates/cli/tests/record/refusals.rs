//! Real OCaml programs that cannot be recorded are refused before they are started, and it is said
//! why. (`tests/refusals.rs` has programs that only look like it, for which no OCaml is needed.)

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::run::heapline;
use crate::toolchain::compilers;

fn record(program: &Path, trace: &Path) -> Output {
    heapline()
        .arg("record")
        .arg("-o")
        .arg(trace)
        .arg("--")
        .arg(program)
        .output()
        .unwrap()
}

/// Status 2, nothing started, nothing left behind, and a message with all of these words.
#[track_caller]
fn assert_refused(program: &Path, words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.ctf");
    let output = record(program, &trace);
    assert_not_started(&output, words);
    assert!(!trace.exists(), "a trace was made");
}

#[track_caller]
fn assert_not_started(output: &Output, words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "",
        "it was started"
    );
    for word in words {
        assert!(stderr.contains(word), "no {word:?} in: {stderr}");
    }
}

#[test]
fn files_that_cannot_be_run_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert_refused(&folder.path().join("missing"), &["missing"]);
    assert_refused(folder.path(), &["directory"]);
    let text = folder.path().join("text");
    fs::write(&text, "no program").unwrap();
    assert_refused(&text, &["text"]);
}

#[test]
fn static_and_setuid_programs_are_refused() {
    for compiler in compilers("static_and_setuid_programs_are_refused") {
        let linked = compiler.program_with("maps", "maps-static", &["-ccopt", "-static"]);
        assert_refused(&linked, &["static"]);
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("setuid");
        heapline_testkit::copy_program(&compiler.program("maps"), &program);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
        assert_refused(&program, &["setuid"]);
    }
}

#[test]
fn bytecode_is_refused() {
    if compilers("bytecode_is_refused").is_empty() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("hello.ml");
    fs::write(&source, "let () = print_endline \"started\"").unwrap();
    for (name, flags, word) in [
        ("plain", &[][..], "bytecode"),
        ("custom", &["-custom"], "bytecode"),
        ("complete", &["-output-complete-exe"], "bytecode"),
    ] {
        let program = folder.path().join(name);
        let compiled = Command::new("ocamlc")
            .args(flags)
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{compiled:?}");
        assert_refused(&program, &[word]);
    }
    let interpreter = Command::new("which").arg("ocamlrun").output().unwrap();
    let interpreter = String::from_utf8(interpreter.stdout).unwrap();
    assert_refused(Path::new(interpreter.trim()), &["bytecode"]);
}

#[test]
fn output_that_cannot_be_written_is_refused() {
    for compiler in compilers("output_that_cannot_be_written_is_refused") {
        let program = compiler.program("maps");
        let folder = tempfile::tempdir().unwrap();
        let nowhere = folder.path().join("no/such/folder/trace.ctf");
        assert_not_started(&record(&program, &nowhere), &["no/such/folder"]);
        let precious = folder.path().join("precious.ctf");
        fs::write(&precious, "precious").unwrap();
        assert_not_started(&record(&program, &precious), &["precious.ctf", "--force"]);
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
    }
}
