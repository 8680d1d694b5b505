//! The OCaml compilers and programs that the tests of recording need.
//!
//! Debian has one compiler. The others are built from the sources that npm has, once, into a
//! folder outside of the checkout: a few minutes each.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{Outcome, program};
use crate::setup;

/// The compilers, as a list like that of `PATH`, for the tests. Where it is set, what they need
/// must be there; where it is not, they say so and are skipped.
pub(crate) const COMPILERS: &str = "HEAPLINE_OCAMLOPT";

/// Real programs to record, and their packages.
const PROGRAMS: [(&str, &str); 6] = [
    ("ocamlopt", "ocaml-nox"),
    ("coqc", "coq"),
    ("menhir", "menhir"),
    ("why3", "why3"),
    ("frama-c", "frama-c-base"),
    ("dune", "ocaml-dune"),
];

const RECIPE: &str = include_str!("build-ocaml.sh");

/// A compiler that is built here.
struct Source {
    version: &'static str,
    /// The hash of the package in npm's registry, so that it cannot change.
    integrity: &'static str,
    /// See `build-ocaml.sh`.
    compiler: &'static str,
}

const SOURCES: [Source; 2] = [
    Source {
        version: "5.3.0",
        integrity: "sha512-D0uG44Q3r6LY4wSzhBZpHe+q1yMJ4QHgk5R1Osv7qLWBgWPQ2jE60vY6rXgJraL/H9fvsWOF3KZSIro/bS+Z8A==",
        compiler: "ocamlopt.opt",
    },
    Source {
        version: "4.14.1000",
        integrity: "sha512-98nVnqnoICa5brYnm60Wwevy72/YUki9KqogPPkXc357gUQoXCZ1vKsxMME6nyaAcuI9OT5/ozupoo4vTn8HQA==",
        compiler: "ocamlopt",
    },
];

/// Installs and builds what is missing. Returns the value for [`COMPILERS`].
pub(crate) fn set_up() -> Outcome<String> {
    install()?;
    build()
}

/// Installs what Debian has.
pub(crate) fn install() -> Outcome {
    setup::debian("cc", "build-essential")?;
    setup::debian("make", "build-essential")?;
    setup::debian("npm", "npm")?;
    setup::debian_all(&PROGRAMS)
}

/// Builds the other compilers. Returns the value for [`COMPILERS`].
pub(crate) fn build() -> Outcome<String> {
    let mut compilers = vec![setup::path_of("ocamlopt")?];
    let cache = setup::cache()?;
    for source in &SOURCES {
        compilers.push(source.install(&cache)?);
    }
    let compilers = std::env::join_paths(compilers)
        .map_err(|error| format!("a compiler has an odd path: {error}"))?;
    Ok(compilers.to_string_lossy().into_owned())
}

impl Source {
    /// Builds it unless that was done, and returns its `ocamlopt`.
    fn install(&self, cache: &Path) -> Outcome<PathBuf> {
        let prefix = cache.join(format!("ocaml-{}", self.version));
        // What was built in another way is built again.
        let complete = prefix.join(".complete");
        let recipe = format!("{} {}\n{RECIPE}", self.integrity, self.compiler);
        if fs::read_to_string(&complete).ok().as_ref() != Some(&recipe) {
            println!(
                "OCaml {} is missing: building it, which takes a few minutes",
                self.version
            );
            let work = cache.join(format!("ocaml-{}.{}", self.version, std::process::id()));
            fs::create_dir_all(&work)
                .map_err(|error| format!("cannot make {}: {error}", work.display()))?;
            let built = self.build(&work, &prefix).inspect_err(|_| {
                // The log, which stays, is elsewhere.
                let _ = fs::remove_dir_all(&work);
            })?;
            let put = || {
                fs::write(built.join(".complete"), &recipe)?;
                if prefix.exists() {
                    fs::remove_dir_all(&prefix)?;
                }
                fs::rename(&built, &prefix)?;
                fs::remove_dir_all(&work)
            };
            put().map_err(|error| {
                format!(
                    "cannot move OCaml {} to {}: {error}",
                    self.version,
                    prefix.display()
                )
            })?;
        }
        Ok(prefix.join("bin/ocamlopt"))
    }

    /// Builds it in `work` for use in `prefix`, and returns where it is until then.
    fn build(&self, work: &Path, prefix: &Path) -> Outcome<PathBuf> {
        let package = format!("ocaml@{}", self.version);
        let described = program("npm", &["pack", "--json", &package])
            .folder(work)
            .output()?;
        if !described.contains(self.integrity) {
            return Err(format!(
                "npm's package {package} is not the one that we know ({})",
                self.integrity
            ));
        }
        let archive = format!("ocaml-{}.tgz", self.version);
        program("tar", &["xzf", &archive]).folder(work).run()?;
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let installed = work.join("installed");
        let script = work.join("build-ocaml.sh");
        fs::write(&script, RECIPE)
            .map_err(|error| format!("cannot write {}: {error}", script.display()))?;
        program("nice", &["sh", "../build-ocaml.sh"])
            .folder(&work.join("package"))
            .env("PREFIX", &prefix.display().to_string())
            .env("DESTDIR", &installed.display().to_string())
            .env("JOBS", &jobs.to_string())
            .env("COMPILER", self.compiler)
            .run_into(&prefix.with_file_name(format!("ocaml-{}.log", self.version)))?;
        // DESTDIR is put before the whole of the prefix.
        Ok(installed.join(prefix.strip_prefix("/").unwrap_or(prefix)))
    }
}
