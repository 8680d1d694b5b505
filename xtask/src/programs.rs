//! Large programs that others built with OCaml 5, and two servers, for the tests of recording.
//!
//! Those of Debian are unpacked like the [compilers](crate::ocaml), with the libraries that they need, and semgrep-core is
//! in a Python wheel. The servers are compiled here, with libraries of Debian.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::command::{Outcome, program, root};
use crate::debian::{Root, Suite};
use crate::{consumers, ocaml, setup};

/// The directory of the programs, for the tests.
pub(crate) const PROGRAMS: &str = "HEAPLINE_OCAML_PROGRAMS";

const SUITE: &str = "sid";

/// Rocq, Haxe, and what the servers are linked with; about 190 MB in all.
const PACKAGES: [&str; 57] = [
    // With its proofs of arithmetic, which have plug-ins of their own.
    "coq",
    "libcoq-core",
    "libcoq-core-ocaml",
    "libcoq-stdlib",
    "libfindlib-ocaml",
    "libzarith-ocaml",
    "libgmp10",
    "haxe",
    "libmbedcrypto16",
    "libmbedtls21",
    "libmbedx509-7",
    "libpcre2-8-0",
    "libuv1t64",
    "zlib1g",
    // The compiler for the servers: the one that their libraries were built with.
    "ocaml",
    "ocaml-nox",
    "ocaml-base",
    "libstdlib-ocaml",
    "libstdlib-ocaml-dev",
    "libcompiler-libs-ocaml-dev",
    "libc6",
    "libc6-dev",
    "libzstd1",
    "libzstd-dev",
    "linux-libc-dev",
    "libeio-ocaml",
    "libeio-ocaml-dev",
    "libbigstringaf-ocaml",
    "libbigstringaf-ocaml-dev",
    "libcstruct-ocaml",
    "libcstruct-ocaml-dev",
    "libdomain-local-await-ocaml-dev",
    "libfmt-ocaml",
    "libfmt-ocaml-dev",
    "libhmap-ocaml",
    "libhmap-ocaml-dev",
    "libiomux-ocaml",
    "libiomux-ocaml-dev",
    "liblwt-dllist-ocaml",
    "liblwt-dllist-ocaml-dev",
    "libmtime-ocaml",
    "libmtime-ocaml-dev",
    "liboptint-ocaml",
    "liboptint-ocaml-dev",
    "libpsq-ocaml",
    "libpsq-ocaml-dev",
    "libthread-table-ocaml-dev",
    "liburing-ocaml",
    "liburing-ocaml-dev",
    "liburing2",
    "liburing-dev",
    "liblwt-ocaml",
    "liblwt-ocaml-dev",
    "libocplib-endian-ocaml",
    "libocplib-endian-ocaml-dev",
    "libev4t64",
    "libev-dev",
];

/// Semgrep's wheel, 72 MB, and its hash, so that it cannot change.
const SEMGREP: &str = "semgrep==1.185.0 \
    --hash=sha256:0eb6aaadad5b957af96d1300487e10af1dc8016e8ef53072effb48cd4906c02b";

/// The servers, and the libraries that they are linked with.
const SERVERS: [(&str, &str); 2] = [("eio_server", "eio_main"), ("lwt_server", "lwt.unix")];

/// Unpacks and builds the programs unless that was done. Returns the value for [`PROGRAMS`].
pub(crate) fn set_up() -> Outcome<String> {
    let folder = setup::shared_cache()?.join("ocaml-programs");
    let value = folder.join("tools").display().to_string();
    let complete = folder.join(".complete");
    let recipe = recipe()?;
    // Written last.
    if fs::read_to_string(&complete).ok().as_ref() == Some(&recipe) {
        return Ok(value);
    }
    println!("programs of OCaml 5 are missing: unpacking those of Debian {SUITE}, and semgrep");
    let unusable = |error| format!("cannot write to {}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(unusable)?;
    }
    Suite::open(SUITE)?.unpack(&PACKAGES, &folder)?;
    let root = Root::new(&folder);
    let library = ocaml::write_tools(&root).map_err(unusable)??;
    let tools = folder.join("tools");
    let rocq = library.join("rocq-runtime/rocqworker");
    let haxe = folder.join("usr/bin/haxe");
    for (executable, name) in [(&rocq, "rocqworker"), (&haxe, "haxe")] {
        root.adopt(executable).map_err(|problem| {
            format!("{problem}\nAre the packages in xtask/src/programs.rs still right?")
        })?;
        symlink(executable, tools.join(name)).map_err(unusable)?;
    }
    symlink(library.join("coq"), tools.join("rocq")).map_err(unusable)?;
    symlink(folder.join("usr/share/haxe/std"), tools.join("haxe-std")).map_err(unusable)?;
    let semgrep = semgrep(&folder)?;
    symlink(semgrep, tools.join("semgrep-core")).map_err(unusable)?;
    servers(&root, &library)?;
    fs::write(complete, recipe).map_err(unusable)?;
    Ok(value)
}

/// What the directory is made of: when it changes, it is made again.
fn recipe() -> Outcome<String> {
    let mut recipe = [
        include_str!("debian.rs"),
        include_str!("ocaml.rs"),
        include_str!("programs.rs"),
    ]
    .concat();
    for (name, _) in SERVERS {
        let source = source(name);
        recipe += &fs::read_to_string(&source)
            .map_err(|error| format!("cannot read {}: {error}", source.display()))?;
    }
    Ok(recipe)
}

fn source(server: &str) -> PathBuf {
    root()
        .join("tests/ocaml/servers")
        .join(server)
        .with_extension("ml")
}

/// Unpacks semgrep's wheel. Returns the program.
fn semgrep(folder: &Path) -> Outcome<PathBuf> {
    let python = consumers::python()?;
    let downloads = folder.join("semgrep");
    let unusable = |error| format!("cannot write to {}: {error}", downloads.display());
    fs::create_dir_all(&downloads).map_err(unusable)?;
    fs::write(downloads.join("requirements.txt"), SEMGREP).map_err(unusable)?;
    let download = [
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        "-r",
        "requirements.txt",
    ];
    program(&python, &download).folder(&downloads).run()?;
    let unpack = "\"$0\" -m zipfile -e *.whl . && rm *.whl && chmod -R a+rX . && chmod a+x */purelib/semgrep/bin/semgrep-core
        echo */purelib/semgrep/bin/semgrep-core";
    let path = program("sh", &["-ec", unpack, &python])
        .folder(&downloads)
        .output()?;
    Ok(downloads.join(path.trim()))
}

/// Compiles the servers.
fn servers(root: &Root, library: &Path) -> Outcome {
    let tools = root.folder.join("tools");
    let unusable = |error| format!("cannot write to {}: {error}", tools.display());
    let found = library.display();
    let settings = format!(
        "path=\"{found}\"\nstdlib=\"{found}\"\ndestdir=\"{found}\"\nocamlopt=\"{}\"\n",
        tools.join("ocamlopt").display()
    );
    let conf = tools.join("findlib.conf");
    fs::write(&conf, settings).map_err(unusable)?;
    for (name, package) in SERVERS {
        let file = format!("{name}.ml");
        fs::copy(source(name), tools.join(&file)).map_err(unusable)?;
        let arguments = [
            "ocamlopt", "-g", "-thread", "-package", package, "-linkpkg", &file, "-o", name,
        ];
        program("ocamlfind", &arguments)
            .folder(&tools)
            .env("OCAMLFIND_CONF", &conf.display().to_string())
            .output()
            .map_err(|problem| {
                format!("{problem}\nAre the packages in xtask/src/programs.rs still right?")
            })?;
    }
    Ok(())
}
