//! Tests of recording on arm64, with Debian's arm64 packages of OCaml in an emulator.
//!
//! `qemu-aarch64` emulates the processor and passes system calls on, so that programs of the other architecture run like those
//! of this one. It does not emulate ptrace.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::command::{Outcome, Run, lint, program, root};
use crate::debian::Suite;
use crate::{ocaml, setup, test};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";

/// The headers of the C library for the other architecture.
const HEADERS: &str = "/usr/aarch64-linux-gnu/include";

/// The compilers, as a list like that of `PATH`, and the agent, for the tests.
const COMPILERS: &str = "HEAPLINE_ARM64_OCAMLOPT";
const AGENT: &str = "HEAPLINE_ARM64_AGENT";

/// The latest OCaml 4 that Debian has for arm64, and the suite that has it.
const OLD: (&str, &[&str]) = ("4.13", &["bookworm"]);

/// The version whose C library runs unit tests.
const LIBRARIES_OF: &str = "5.3";

/// Sets up what is missing, and tests the agent.
pub(crate) fn check() -> Outcome {
    setup::debian_all(&[
        ("qemu-aarch64", "qemu-user"),
        (LINKER, "gcc-aarch64-linux-gnu"),
    ])?;
    // The compiler only recommends it.
    setup::debian_unless(Path::new(HEADERS).is_dir(), "libc6-dev-arm64-cross")?;
    program("rustup", &["target", "add", TARGET]).run()?;
    let cache = setup::shared_cache()?;
    let mut compilers = Vec::new();
    for (version, suites) in std::iter::once(OLD).chain(ocaml::PREBUILT) {
        compilers.push(unpack(version, suites, &cache)?);
    }
    let emulator = format!("qemu-aarch64 -L {}", folder(&cache, LIBRARIES_OF).display());
    let packages = [
        "--package=heapline-agent",
        "--package=heapline-attach",
        "--package=heapline",
    ];
    let tests = ["test", "--locked", "--lib", "--target", TARGET];
    cross(lint(&[&tests[..], &packages].concat()))
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", &emulator)
        .run()?;
    let agent = check_program()?;
    let compilers = std::env::join_paths(compilers)
        .map_err(|error| format!("a compiler has an odd path: {error}"))?;
    lint(&[&test::TESTS[..], &["--test=record", "--", "arm64::"]].concat())
        .env(COMPILERS, &compilers.to_string_lossy())
        .env(AGENT, &agent.display().to_string())
        .reproducible()
        .run()
}

/// A cargo that links for the other architecture.
fn cross(cargo: Run) -> Run {
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
}

/// Checks the program for arm64. Its build script builds the library that is preloaded, which is returned.
fn check_program() -> Outcome<PathBuf> {
    let check = ["check", "--locked", "--package=heapline-cli"];
    cross(lint(&[&check[..], &["--target", TARGET]].concat()))
        .env("CC_aarch64_unknown_linux_gnu", LINKER)
        .env("HEAPLINE_UI", "skip")
        .run()?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let built = target.join(TARGET).join("agent/target");
    let built = built.join(TARGET).join("agent");
    Ok(built.join("libheapline_agent.so"))
}

/// Where the packages of a version are.
fn folder(cache: &Path, version: &str) -> PathBuf {
    cache.join(format!("debian-arm64-ocaml-{version}"))
}

/// Unpacks a compiler of one of these suites unless that was done, and returns an `ocamlopt` that runs it in the emulator.
fn unpack(version: &str, suites: &[&'static str], cache: &Path) -> Outcome<PathBuf> {
    let folder = folder(cache, version);
    let ocamlopt = folder.join("tools/ocamlopt");
    // Written last.
    let complete = folder.join(".complete");
    let recipe = [include_str!("debian.rs"), include_str!("arm64.rs")].concat();
    if fs::read_to_string(&complete).ok().as_ref() == Some(&recipe) {
        return Ok(ocamlopt);
    }
    let prefix = format!("{version}.");
    for &suite in suites {
        let suite = Suite::open_for(suite, Some("arm64"))?;
        let found = suite.version("ocaml")?;
        let Some(found) = found.filter(|found| found.starts_with(&prefix)) else {
            continue;
        };
        println!("OCaml {version} for arm64 is missing: unpacking {found} of Debian {suite}");
        let unusable = |error| format!("cannot write to {}: {error}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(unusable)?;
        }
        // What Rust's libraries are linked with.
        suite.unpack(&[&ocaml::PACKAGES[..], &["libgcc-s1"]].concat(), &folder)?;
        write_compiler(&folder, &ocamlopt).map_err(unusable)?;
        fs::write(complete, recipe).map_err(unusable)?;
        return Ok(ocamlopt);
    }
    Err(format!(
        "no Debian suite of {suites:?} has OCaml {version} for arm64; change the suites in xtask/src"
    ))
}

/// Writes a program that runs the compiler in the emulator. It links with the libraries of its directory.
fn write_compiler(folder: &Path, path: &Path) -> std::io::Result<()> {
    let libraries = folder.join("usr/lib/aarch64-linux-gnu");
    // OCaml 5 is in a directory that is named after its version.
    let (old, new) = (folder.join("usr/lib/ocaml"), libraries.join("ocaml"));
    let library = match fs::read_dir(&new) {
        Ok(mut entries) => entries.next().ok_or(std::io::ErrorKind::NotFound)??.path(),
        Err(_) => old,
    };
    let (root, libraries) = (folder.display(), libraries.display());
    let script = format!(
        "#!/bin/sh\nexport OCAMLLIB={}\n\
         exec qemu-aarch64 -L {root} {root}/usr/bin/ocamlopt.opt \
         -cc \"{LINKER} --sysroot={root} -B{libraries} -L{libraries} -Wl,-E\" \"$@\"\n",
        library.display()
    );
    fs::create_dir_all(path.parent().unwrap_or(folder))?;
    fs::write(path, script)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}
