//! OCaml compilers, and the test programs compiled by them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

/// A list of `ocamlopt` programs, like that of `PATH`. `cargo xtask ocaml` prints one.
const COMPILERS: &str = "HEAPLINE_OCAMLOPT";

pub(crate) struct Compiler {
    pub(crate) path: PathBuf,
    /// Such as `5.3.0`.
    pub(crate) version: String,
    /// The directory of the programs that it has compiled.
    directory: String,
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
        heapline_testkit::missing(&format!(
            "{test}: {COMPILERS} names no OCaml compilers; `cargo xtask ocaml` sets them up"
        ));
    }
    all
}

/// Those with domains.
pub(crate) fn with_domains(test: &str) -> impl Iterator<Item = &'static Compiler> {
    let all = compilers(test);
    if !all.is_empty() && !all.iter().any(Compiler::is_5) {
        heapline_testkit::missing(&format!("{test}: {COMPILERS} names no OCaml 5"));
    }
    all.iter().filter(|compiler| compiler.is_5())
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
            directory: format!("ocaml-{version}"),
            version,
            compiled: Mutex::default(),
        }
    }

    /// One that compiles for arm64.
    pub(crate) fn for_arm64(path: PathBuf) -> Self {
        let mut compiler = Self::new(path);
        compiler.directory = format!("ocaml-arm64-{}", compiler.version);
        compiler
    }

    pub(crate) fn is_5(&self) -> bool {
        !self.version.starts_with("4.")
    }

    /// The folder of the programs that link the OCaml library, built by dune.
    pub(crate) fn linked_programs(&self) -> PathBuf {
        let cell = Arc::clone(
            self.compiled
                .lock()
                .unwrap()
                .entry("the OCaml library".to_owned())
                .or_default(),
        );
        cell.get_or_init(|| self.build_library()).clone()
    }

    fn build_library(&self) -> PathBuf {
        // The engine is the same for all: two builds of it at once would wait for each other.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = ONE_AT_A_TIME.lock().unwrap();
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let build = scratch.join(format!("dune-{}", self.version));
        // Dune takes the compiler from PATH.
        let mut path = vec![self.path.parent().unwrap().to_owned()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        let output = Command::new("dune")
            .args(["build", "--root"])
            .arg(root().join("ocaml"))
            .arg("--build-dir")
            .arg(&build)
            .arg("@all")
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("HEAPLINE_SOURCE", root())
            .env("CARGO_TARGET_DIR", scratch.join("engine"))
            .output()
            .unwrap_or_else(|error| panic!("dune: {error}; `cargo xtask ocaml` installs it"));
        assert!(
            output.status.success(),
            "the OCaml library cannot be built with OCaml {}:\n{}",
            self.version,
            String::from_utf8_lossy(&output.stderr)
        );
        build.join("default/test")
    }

    /// The compiler as a native program: `path` may be a script that runs it.
    pub(crate) fn native(&self) -> PathBuf {
        let native = self.path.with_extension("native");
        native.canonicalize().unwrap_or_else(|_| self.path.clone())
    }

    /// The directory of the standard library.
    pub(crate) fn libraries(&self) -> String {
        let output = Command::new(&self.path).arg("-where").output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Returns true if it has the library that loads modules into a running program.
    pub(crate) fn has_dynlink(&self) -> bool {
        let libraries = self.libraries();
        let found = |name: &str| Path::new(&libraries).join(name).exists();
        found("dynlink.cmxa") || found("dynlink/dynlink.cmxa")
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
        let source = root().join("tests/ocaml/programs").join(name);
        let source = source.with_extension("ml");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(&self.directory)
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
        // What is loaded finds the libraries in the program.
        let libraries: &[&str] = match flags {
            ["-shared"] => &[],
            _ => &["unix.cmxa", "threads.cmxa"],
        };
        let output = Command::new(&self.path)
            .args(["-g", "-I", "+unix", "-I", "+threads"])
            .args(libraries)
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

/// The project's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_owned()
}
