//! What cannot be recorded is refused before it is started, and it is said why.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::run::heapline;
use crate::toolchain::compilers;

/// A C program that looks like one of an OCaml runtime: it exports these symbols.
fn impostor(folder: &Path, name: &str, symbols: &[&str]) -> PathBuf {
    let functions: Vec<String> = symbols
        .iter()
        .map(|symbol| format!("void {symbol}(void) {{}}\n"))
        .collect();
    let source = format!(
        "#include <stdio.h>\n{}int main(void) {{ puts(\"started\"); return 0; }}\n",
        functions.concat()
    );
    let file = folder.join(format!("{name}.c"));
    fs::write(&file, source).unwrap();
    let program = folder.join(name);
    let status = Command::new("cc")
        .arg(&file)
        .args(["-rdynamic", "-o"])
        .arg(&program)
        .status()
        .unwrap();
    assert!(status.success());
    program
}

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

/// What OCaml's runtime exports in all of its versions.
const RUNTIME: [&str; 5] = [
    "caml_start_program",
    "caml_c_call",
    "caml_debuginfo_extract",
    "caml_debuginfo_next",
    "caml_debuginfo_location",
];

#[test]
fn programs_that_are_not_ocaml_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = impostor(folder.path(), "plain", &[]);
    assert_refused(&program, &["OCaml"]);
}

#[test]
fn runtimes_without_a_sampler_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let old = impostor(folder.path(), "old", &RUNTIME);
    assert_refused(&old, &["4.11"]);
    let symbols = [&RUNTIME[..], &["caml_memprof_start", "caml_memprof_stop"]].concat();
    let between = impostor(folder.path(), "between", &symbols);
    assert_refused(&between, &["5.0", "5.3"]);
}

#[test]
fn scripts_are_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    fs::write(&script, "#!/bin/sh\necho started\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    assert_refused(&script, &["script", "--follow-exec"]);
}

#[test]
fn files_that_cannot_be_run_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert_refused(&folder.path().join("missing"), &["missing"]);
    assert_refused(folder.path(), &["folder"]);
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
        fs::copy(compiler.program("maps"), &program).unwrap();
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
        // Looks like a program in C.
        ("complete", &["-output-complete-exe"], "OCaml"),
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
