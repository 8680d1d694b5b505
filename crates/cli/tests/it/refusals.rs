//! `heapline record` does not start what it cannot record, and says why. The programs are made with
//! the C compiler: what tells runtimes apart are symbols.
#![cfg(recording)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A program with the given functions that leaves a file behind if it is started.
fn program(folder: &Path, functions: &[&str], options: &[&str]) -> PathBuf {
    let source = folder.join("program.c");
    let functions = functions
        .iter()
        .map(|name| format!("void {name}(void) {{}}\n"));
    let mut text = String::from("#include <stdio.h>\n");
    text.extend(functions);
    text.push_str("int main(void) { fclose(fopen(\"started\", \"w\")); return 0; }\n");
    fs::write(&source, text).unwrap();
    let program = folder.join("program");
    let status = Command::new("cc")
        .args(options)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status();
    assert!(status.expect("a C compiler").success());
    program
}

/// The message with which a program is refused.
fn refusal(folder: &TempDir, program: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_heapline"))
        .args(["record", "--"])
        .arg(program)
        .current_dir(folder)
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(!folder.path().join("started").exists(), "it was started");
    let left = fs::read_dir(folder).unwrap().flatten();
    let traces = left.filter(|entry| entry.file_name().to_string_lossy().contains(".ctf"));
    assert_eq!(traces.count(), 0, "something is left behind");
    message
}

const START: &str = "caml_start_program";
const MEMPROF: &str = "caml_memprof_start";

#[test]
fn a_static_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), &[START, MEMPROF], &["-static"]);
    assert!(refusal(&folder, &program).contains("is statically linked"));
}

#[test]
fn a_program_that_is_not_ocamls_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), &[], &["-rdynamic"]);
    assert!(refusal(&folder, &program).contains("is neither an OCaml program nor a Rust program"));
}

#[test]
fn a_runtime_that_hides_its_symbols_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), &[START, MEMPROF], &[]);
    assert!(refusal(&folder, &program).contains("-ccopt -Wl,-E"));
}

/// As Debian's oxenstored is.
#[test]
fn a_stripped_runtime_that_hides_its_symbols_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let messages = folder.path().join("messages.h");
    let text = r#"
        const char variable[] = "OCAMLRUNPARAM";
        const char message[] = "Fatal error: exception %s\n";
    "#;
    fs::write(&messages, text).unwrap();
    let options = ["-s", "-include", messages.to_str().unwrap()];
    let program = program(folder.path(), &[START, MEMPROF], &options);
    assert!(refusal(&folder, &program).contains("-ccopt -Wl,-E"));
}

#[test]
fn ocaml_before_4_11_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), &[START], &["-rdynamic"]);
    assert!(refusal(&folder, &program).contains("before 4.11"));
}

#[test]
fn ocaml_5_0_to_5_2_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), &[START, MEMPROF], &["-rdynamic"]);
    assert!(refusal(&folder, &program).contains("5.0, 5.1 or 5.2"));
}

/// They are there, and do nothing.
#[test]
fn ocaml_5_2_with_all_functions_of_the_sampler_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let discard = "caml_memprof_discard";
    let id = "caml_ml_domain_id";
    let program = program(
        folder.path(),
        &[START, MEMPROF, discard, id],
        &["-rdynamic"],
    );
    assert!(refusal(&folder, &program).contains("5.0, 5.1 or 5.2"));
}

#[test]
fn oxcaml_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let sampler = ["caml_memprof_discard", "caml_ml_domain_index"];
    let functions = [&[START, MEMPROF, "caml_alloc_local"], &sampler[..]].concat();
    let program = program(folder.path(), &functions, &["-rdynamic"]);
    let message = refusal(&folder, &program);
    assert!(message.contains("was built with OxCaml"), "{message}");
    assert!(message.contains("5.3 or later"), "{message}");
}

#[test]
fn a_setuid_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let young = "caml_memprof_young_trigger";
    let program = program(folder.path(), &[START, MEMPROF, young], &["-rdynamic"]);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    assert!(refusal(&folder, &program).contains("is setuid"));
}

#[test]
fn bytecode_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    for bytes in [
        "#!/usr/bin/ocamlrun\nCaml1999X031",
        "\x7fELF with its own runtime Caml1999X031",
    ] {
        heapline_testkit::write_program(&program, bytes);
        assert!(refusal(&folder, &program).contains("is OCaml bytecode"));
    }
}

#[test]
fn what_is_no_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    for bytes in ["", "\x7fELF", "text", "\x7fELF\x02\x01\x01 cut off"] {
        heapline_testkit::write_program(&program, bytes);
        assert!(refusal(&folder, &program).contains("is not a 64-bit ELF program"));
    }
}

#[test]
fn a_script_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    heapline_testkit::write_program(&program, "#!/bin/sh -e\ntouch started\n");
    let message = refusal(&folder, &program);
    assert!(message.contains("is a script for /bin/sh -e"), "{message}");
    assert!(message.contains("--follow-exec"), "{message}");
}
