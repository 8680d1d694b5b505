//! The OCaml compilers and programs that the tests of recording need.
//!
//! One compiler is installed from this machine's Debian. Those of other Debian suites are unpacked, once, into a
//! directory outside of the checkout. Only what Debian has in no suite is built from source.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::command::{Outcome, program};
use crate::debian::{Root, Suite};
use crate::setup;

/// The compilers, as a list like that of `PATH`, for the tests. Where it is set, what they need
/// must be there; where it is not, they say so and are skipped.
pub(crate) const COMPILERS: &str = "HEAPLINE_OCAMLOPT";

/// Real programs to record, and their packages.
const PROGRAMS: [(&str, &str); 8] = [
    ("ocamlopt", "ocaml-nox"),
    ("coqc", "coq"),
    ("menhir", "menhir"),
    ("why3", "why3"),
    ("frama-c", "frama-c-base"),
    ("dune", "ocaml-dune"),
    ("patchelf", "patchelf"),
    ("ocamlfind", "ocaml-findlib"),
];

/// Versions of OCaml, and the suites that have them, now or before long.
pub(crate) const PREBUILT: [(&str, &[&str]); 3] = [
    ("5.3", &["trixie"]),
    ("5.4", &["sid", "forky"]),
    ("5.5", &["experimental", "sid"]),
];

/// The packages of a compiler, by their names in all suites, and what programs are linked with.
pub(crate) const PACKAGES: [&str; 10] = [
    "ocaml",
    "ocaml-nox",
    "ocaml-base",
    "libstdlib-ocaml",
    "libstdlib-ocaml-dev",
    "libc6",
    "libc6-dev",
    "libzstd1",
    "libzstd-dev",
    "linux-libc-dev",
];

/// The programs of a compiler that tests and dune use.
const TOOLS: [&str; 5] = [
    "ocamlopt",
    "ocamlc",
    "ocamldep",
    "ocamlmklib",
    "ocamlobjinfo",
];

/// A compiler that is built here.
const SOURCE: Source = Source {
    version: "4.14.1000",
    integrity: "sha512-98nVnqnoICa5brYnm60Wwevy72/YUki9KqogPPkXc357gUQoXCZ1vKsxMME6nyaAcuI9OT5/ozupoo4vTn8HQA==",
};

const RECIPE: &str = include_str!("build-ocaml.sh");

/// Installs and builds what is missing. Returns the value for [`COMPILERS`].
pub(crate) fn set_up() -> Outcome<String> {
    install()?;
    compilers()
}

/// Installs what Debian has.
pub(crate) fn install() -> Outcome {
    setup::debian("cc", "build-essential")?;
    setup::debian("make", "build-essential")?;
    setup::debian("npm", "npm")?;
    setup::debian_all(&PROGRAMS)
}

/// Unpacks and builds the other compilers. Returns the value for [`COMPILERS`].
pub(crate) fn compilers() -> Outcome<String> {
    let mut compilers = vec![setup::path_of("ocamlopt")?];
    compilers.push(SOURCE.install(&setup::cache()?)?);
    let directory = setup::shared_cache()?;
    for (version, suites) in PREBUILT {
        compilers.push(unpack(version, suites, &directory)?);
    }
    let compilers = std::env::join_paths(compilers)
        .map_err(|error| format!("a compiler has an odd path: {error}"))?;
    Ok(compilers.to_string_lossy().into_owned())
}

/// Unpacks a compiler of one of these suites unless that was done, and returns its `ocamlopt`.
fn unpack(version: &str, suites: &[&'static str], cache: &Path) -> Outcome<PathBuf> {
    let folder = cache.join(format!("debian-ocaml-{version}"));
    let ocamlopt = folder.join("tools/ocamlopt");
    // Written last.
    let complete = folder.join(".complete");
    let recipe = [include_str!("debian.rs"), include_str!("ocaml.rs")].concat();
    if fs::read_to_string(&complete).ok().as_ref() == Some(&recipe) {
        return Ok(ocamlopt);
    }
    let prefix = format!("{version}.");
    for &suite in suites {
        let suite = Suite::open(suite)?;
        let found = suite.version("ocaml")?;
        let Some(found) = found.filter(|found| found.starts_with(&prefix)) else {
            continue;
        };
        println!("OCaml {version} is missing: unpacking {found} of Debian {suite}");
        let unusable = |error| format!("cannot write to {}: {error}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(unusable)?;
        }
        suite.unpack(&PACKAGES, &folder)?;
        let _ = write_tools(&Root::new(&folder)).map_err(unusable)??;
        fs::write(complete, recipe).map_err(unusable)?;
        return Ok(ocamlopt);
    }
    Err(format!(
        "no Debian suite of {suites:?} has OCaml {version}; change the suites in xtask/src/ocaml.rs"
    ))
}

/// Writes programs that run the compiler where it is, and have it link with the libraries beside it. Returns the directory of
/// its own library.
pub(crate) fn write_tools(root: &Root) -> std::io::Result<Outcome<PathBuf>> {
    let tools = root.folder.join("tools");
    fs::create_dir_all(&tools)?;
    // Packages for an earlier release may leave its directory, without a compiler.
    let library = fs::read_dir(root.libraries.join("ocaml"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.join("stdlib.cmxa").exists())
        .ok_or(std::io::ErrorKind::NotFound)?;
    let bin = root.folder.join("usr/bin");
    for name in [
        "ocamlopt.opt",
        "ocamlc.opt",
        "ocamldep.opt",
        "ocamlobjinfo.opt",
        "ocamlrun",
    ] {
        if let Err(problem) = root.adopt(&bin.join(name)) {
            return Ok(Err(problem));
        }
    }
    // The compiler is also a large program to record. Dune would prefer the name ocamlopt.opt.
    std::os::unix::fs::symlink(bin.join("ocamlopt.opt"), tools.join("ocamlopt.native"))?;
    for tool in TOOLS {
        // With a C compiler of ours, OCaml does not tell it to make a library.
        let cc = match tool {
            "ocamlopt" | "ocamlc" => format!("-cc \"{} $shared\" ", root.c_compiler()),
            _ => String::new(),
        };
        let native = bin.join(format!("{tool}.opt"));
        let run = if native.exists() {
            native.display().to_string()
        } else {
            let bin = bin.display();
            format!("{bin}/ocamlrun {bin}/{tool}")
        };
        let script = format!(
            "#!/bin/sh\nexport OCAMLLIB={}\n\
             case \" $* \" in *\" -shared \"*) shared=-shared;; *) shared=;; esac\n\
             exec {run} {cc}\"$@\"\n",
            library.display()
        );
        let path = tools.join(tool);
        fs::write(&path, script)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(Ok(library))
}

/// A compiler that is built from the sources that npm has.
struct Source {
    version: &'static str,
    /// The hash of the package in npm's registry, so that it cannot change.
    integrity: &'static str,
}

impl Source {
    /// Builds it unless that was done, and returns its `ocamlopt`.
    fn install(&self, cache: &Path) -> Outcome<PathBuf> {
        let prefix = cache.join(format!("ocaml-{}", self.version));
        // What was built in another way is built again.
        let complete = prefix.join(".complete");
        let recipe = format!("{}\n{RECIPE}", self.integrity);
        if fs::read_to_string(&complete).ok().as_ref() != Some(&recipe) {
            println!("OCaml {} is missing: building it", self.version);
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
            .run_into(&prefix.with_file_name(format!("ocaml-{}.log", self.version)))?;
        // DESTDIR is put before the whole of the prefix.
        Ok(installed.join(prefix.strip_prefix("/").unwrap_or(prefix)))
    }
}
