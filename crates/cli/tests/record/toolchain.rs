//! OCaml compilers, and the test programs compiled by them.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

/// A list of `ocamlopt` programs, like that of `PATH`. `cargo xtask ocaml` prints one.
const COMPILERS: &str = "HEAPLINE_OCAMLOPT";

pub(crate) struct Compiler {
    path: PathBuf,
    /// Such as `5.3.0`.
    pub(crate) version: String,
    compiled: Mutex<HashMap<String, Arc<OnceLock<PathBuf>>>>,
}

/// All compilers; none where they are not set up, which is said once for each test.
pub(crate) fn compilers(test: &str) -> &'static [Compiler] {
    static ALL: OnceLock<Vec<Compiler>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        std::env::split_paths(&std::env::var_os(COMPILERS).unwrap_or_default())
            .filter(|path| !path.as_os_str().is_empty())
            .map(Compiler::new)
            .collect()
    });
    if all.is_empty() {
        // Past the harness, which hides what tests that pass print.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED {test}: {COMPILERS} names no OCaml compilers; `cargo xtask test` sets them up"
        );
    }
    all
}

/// Those with domains.
pub(crate) fn with_domains(test: &str) -> impl Iterator<Item = &'static Compiler> {
    compilers(test).iter().filter(|compiler| compiler.is_5())
}

impl Compiler {
    fn new(path: PathBuf) -> Self {
        let output = Command::new(&path)
            .arg("-version")
            .output()
            .unwrap_or_else(|error| panic!("{COMPILERS}: {}: {error}", path.display()));
        let version = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        Self {
            path,
            version,
            compiled: Mutex::default(),
        }
    }

    pub(crate) fn is_5(&self) -> bool {
        !self.version.starts_with("4.")
    }

    /// A program of `tests/ocaml/programs`, such as `ocaml5/waves`.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.program_with(name, name, &[])
    }

    /// The same linked in another way: `kind` names the result.
    pub(crate) fn program_with(&self, name: &str, kind: &str, flags: &[&str]) -> PathBuf {
        let cell = Arc::clone(
            self.compiled
                .lock()
                .unwrap()
                .entry(kind.to_owned())
                .or_default(),
        );
        cell.get_or_init(|| self.compile(name, kind, flags)).clone()
    }

    /// Compiles a program unless an earlier run of the tests did.
    fn compile(&self, name: &str, kind: &str, flags: &[&str]) -> PathBuf {
        let source = programs().join(name).with_extension("ml");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("ocaml-{}", self.version))
            .join(kind);
        fs::create_dir_all(&folder).unwrap();
        let stem = Path::new(name).file_name().unwrap();
        let program = folder.join(stem).with_extension("exe");
        let text = fs::read(&source).unwrap();
        // Compiled under its plain name, which is the one that traces and Printexc show.
        let copy = folder.join(stem).with_extension("ml");
        if program.exists() && fs::read(&copy).is_ok_and(|compiled| compiled == text) {
            return program;
        }
        let _ = fs::remove_file(&program);
        fs::write(&copy, text).unwrap();
        let output = Command::new(&self.path)
            .args(["-g", "-I", "+unix", "-I", "+threads"])
            .args(["unix.cmxa", "threads.cmxa"])
            .args(flags)
            .arg(copy.file_name().unwrap())
            .args(["-o", "new"])
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "OCaml {} cannot compile {}:\n{}",
            self.version,
            source.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        fs::rename(folder.join("new"), &program).unwrap();
        program
    }
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ocaml/programs")
}
