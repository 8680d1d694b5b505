//! Libraries are loaded into running programs.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use heapline_attach::{Library, Process, call};

#[test]
fn another_version_of_a_library_is_loaded_beside_the_first() {
    let math = std::fs::read(format!(
        "/lib/{}-linux-gnu/libm.so.6",
        std::env::consts::ARCH
    ))
    .unwrap();
    let mut cat = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = cat.stdin.take().unwrap();
    let mut output = cat.stdout.take().unwrap();
    let mut echo = |byte: u8| {
        input.write_all(&[byte]).unwrap();
        let mut answer = [0];
        output.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [byte]);
    };
    echo(1);
    let process = Process::open(i32::try_from(cat.id()).unwrap()).unwrap();
    let base = |name| {
        let library = Library { name, bytes: &math };
        // It looks at no arguments.
        call(&process, library, "fegetround", b"").unwrap().base
    };
    let first = base("first");
    assert_ne!(first, base("second"));
    assert_eq!(first, base("first"));
    echo(2);
    drop(input);
    assert!(cat.wait().unwrap().success());
}
