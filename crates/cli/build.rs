//! Builds the library that `heapline record` preloads, and sets `cfg(recording)`.
//!
//! Cargo cannot make a binary depend on a shared library. So the agent is an ordinary dependency, which
//! gets its sources and those of its dependencies onto this machine, and a second cargo builds it as
//! a shared library: in a checkout as the member of the workspace that it is, so that neither paths nor hashes of them get into the
//! library, and in an installation from a registry in a package around it.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package around the agent. Panics are caught in the agent: an error there must end the recording,
/// not the program. The profile has a name of its own because variables such as
/// `CARGO_PROFILE_RELEASE_PANIC` are meant for the program.
const PACKAGE: &str = "\
[package]
name = \"heapline-agent-library\"
version = \"0.0.0\"
edition = \"2024\"

[lib]
path = \"lib.rs\"
crate-type = [\"cdylib\"]

[workspace]

[profile.agent]
inherits = \"release\"
opt-level = 3
lto = \"fat\"
codegen-units = 1
panic = \"unwind\"
debug = false
strip = true
";

/// Identical code folding: the linker keeps one of several functions with the same code. Makes the binary 4 % smaller.
const MERGE_FUNCTIONS: &str = "-Wl,--icf=all";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(recording)");
    let out = PathBuf::from(variable("OUT_DIR"));
    if can_merge_functions(&out) {
        println!("cargo::rustc-link-arg-bins={MERGE_FUNCTIONS}");
    }
    // Cargo.toml decides where there is an agent: on its platforms, with the feature `record`.
    let Some(agent) = env::var_os("DEP_HEAPLINE_AGENT_DIR").map(PathBuf::from) else {
        return;
    };
    println!("cargo::rustc-cfg=recording");
    let folder = shared_directory(&out).join("agent");
    let library = match workspace(&agent) {
        Some(manifest) => build_member(&manifest, &folder),
        None => write_package(&agent, &folder)
            .map_err(|error| format!("cannot write {}: {error}", folder.display()))
            .and_then(|allowed| build_package(&folder, &allowed)),
    };
    match library {
        Ok(library) => {
            println!("cargo::rustc-env=HEAPLINE_AGENT={}", library.display());
            let checkout = variable("CARGO_MANIFEST_DIR");
            println!("cargo::rustc-env=HEAPLINE_AGENT_CHECKOUT={checkout}");
        }
        Err(problem) => {
            let problem = problem.trim().replace('\n', "\ncargo::error=");
            println!("cargo::error=cannot build the agent that `heapline record` preloads");
            println!("cargo::error={problem}");
        }
    }
}

/// The target directory: the agent is the same in all profiles and feature sets of the program, so they share one build of
/// it. `OUT_DIR` itself if it is not where cargo puts it today (`TARGET/PROFILE/build/PACKAGE/out`).
fn shared_directory(out: &Path) -> &Path {
    let is_known = out
        .ancestors()
        .nth(2)
        .is_some_and(|build| build.ends_with("build"));
    out.ancestors().nth(4).filter(|_| is_known).unwrap_or(out)
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

/// Returns true if the linker knows how to merge functions, as the one that Rust 1.90 and later bring along does, and if nobody
/// minds: a profiler would show one name for all of them.
fn can_merge_functions(folder: &Path) -> bool {
    let is_meant = variable("CARGO_CFG_TARGET_OS") == "linux"
        && variable("OPT_LEVEL") == "3"
        && variable("DEBUG") == "false";
    let source = folder.join("empty.rs");
    if !is_meant || fs::write(&source, "fn main() {}\n").is_err() {
        return false;
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--target", &variable("TARGET")]);
    rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    rustc.arg(format!("-Clink-arg={MERGE_FUNCTIONS}"));
    rustc.arg(source).arg("-o").arg(folder.join("empty"));
    rustc.output().is_ok_and(|output| output.status.success())
}

/// Writes a package around the agent that is a shared library. Returns the lock file with the versions that it may be built with.
fn write_package(agent: &Path, folder: &Path) -> io::Result<String> {
    fs::create_dir_all(folder)?;
    let patches: Vec<String> = siblings(agent)?
        .iter()
        .map(|(name, path)| format!("{name} = {{ path = '{}' }}\n", path.display()))
        .collect();
    let manifest = format!(
        "{PACKAGE}\n[dependencies]\nheapline-agent = {{ path = '{}' }}\n\n[patch.crates-io]\n{}",
        agent.display(),
        patches.concat()
    );
    update(&folder.join("Cargo.toml"), manifest.as_bytes())?;
    update(&folder.join("lib.rs"), b"extern crate heapline_agent;\n")?;

    // The versions of the program itself.
    let source = Path::new(&variable("CARGO_MANIFEST_DIR")).join("Cargo.lock");
    for path in [&agent.join("Cargo.toml"), &source] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let allowed = fs::read_to_string(&source)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", source.display())))?;
    update(&folder.join("Cargo.lock"), allowed.as_bytes())?;
    Ok(allowed)
}

/// Writes a file, atomically, if its content changes: a new modification time alone would have everything built again, and
/// builds of other profiles may be reading it.
fn update(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    let new = path.with_extension(format!("new{}", std::process::id()));
    fs::write(&new, content)?;
    fs::rename(new, path)
}

/// Heapline's other crates where a registry was unpacked. They are preferred because `cargo package`
/// verifies packages before their dependencies are in any registry.
fn siblings(agent: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let version = format!("-{}", variable("CARGO_PKG_VERSION"));
    if !agent.to_string_lossy().ends_with(&version) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(agent.parent().unwrap_or(agent))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(name) = name.strip_suffix(&version)
            && name.starts_with("heapline-")
            && path != agent
        {
            found.push((name.to_owned(), path.clone()));
        }
    }
    found.sort();
    Ok(found)
}

/// The manifest of the workspace that a package is part of, if it is not a package by itself.
fn workspace(package: &Path) -> Option<PathBuf> {
    let own = package.join("Cargo.toml");
    let output = Command::new(variable("CARGO"))
        .args(["locate-project", "--workspace", "--message-format", "plain"])
        .arg("--manifest-path")
        .arg(&own)
        .output()
        .ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    let path = PathBuf::from(path.trim_end());
    (output.status.success() && path != own).then_some(path)
}

/// Builds the agent as a member of a workspace, and returns the library.
fn build_member(manifest: &Path, folder: &Path) -> Result<PathBuf, String> {
    for path in [manifest, &manifest.with_file_name("Cargo.lock")] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let agent = ["--package=heapline-agent", "--lib", "--crate-type=cdylib"];
    // Cargo and the compiler write paths that are relative to the directory in which they are started.
    let root = manifest.parent().unwrap_or(manifest);
    let command = [&["rustc"], &agent[..]].concat();
    build("libheapline_agent", &command, root, folder)
}

/// Builds the package around the agent, and returns the library.
fn build_package(folder: &Path, allowed: &str) -> Result<PathBuf, String> {
    // Drops from the lock file what the agent does not need, without running code of other packages. All that is needed has been
    // downloaded for the build that this is part of, but a vendored or unusual registry may need to be asked.
    let resolve = ["metadata", "--format-version=1", "--quiet"];
    cargo(folder, &[&resolve[..], &["--offline"]].concat()).or_else(|_| cargo(folder, &resolve))?;
    let lock = folder.join("Cargo.lock");
    let resolved = fs::read_to_string(&lock)
        .map_err(|error| format!("cannot read {}: {error}", lock.display()))?;
    let strangers =
        packages(&resolved).filter(|package| !packages(allowed).any(|other| other == *package));
    let strangers: Vec<&str> = strangers.map(|(name, ..)| name).collect();
    if !strangers.is_empty() {
        let names = strangers.join(", ");
        return Err(format!(
            "these packages would have other versions than in Cargo.lock: {names}"
        ));
    }
    build("libheapline_agent_library", &["build"], folder, folder)
}

/// Builds a library into a target directory of its own, as that of the build that this is part of is locked.
fn build(name: &str, command: &[&str], source: &Path, folder: &Path) -> Result<PathBuf, String> {
    let target = variable("TARGET");
    let output = folder.join("target");
    let output_option = format!("--target-dir={}", output.display());
    let options = [
        "--locked",
        "--profile=agent",
        "--target",
        &target,
        &output_option,
    ];
    cargo(source, &[command, &options].concat())?;
    let library = output.join(target).join("agent").join(name);
    watch(&library.with_extension("d"), folder);
    Ok(library.with_extension("so"))
}

/// Name, version and checksum of the packages of a lock file that come from a registry.
fn packages(lock: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    fn field<'a>(package: &'a str, name: &str) -> Option<&'a str> {
        let mut lines = package.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))
    }
    lock.split("[[package]]").filter_map(|package| {
        let checksum = field(package, "checksum")?;
        Some((
            field(package, "name")?,
            field(package, "version")?,
            checksum,
        ))
    })
}

fn cargo(folder: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut cargo = Command::new(variable("CARGO"));
    cargo.args(arguments).current_dir(folder);
    // Those of the build that this is part of: a linter in the compiler's place, and flags such as
    // coverage, which are not for other people's programs.
    for name in [
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
    ] {
        cargo.env_remove(name);
    }
    let output = cargo
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Builds again when one of the sources changes that cargo lists as those of the library. Files of the generated package are
/// written while this script runs: cargo would take them for changes and build again each time.
fn watch(list: &Path, generated: &Path) {
    let list = fs::read_to_string(list).unwrap_or_default();
    let Some((_, sources)) = list.split_once(": ") else {
        return;
    };
    for source in sources.trim_end().replace("\\ ", "\0").split(' ') {
        let source = source.replace('\0', " ");
        if !Path::new(&source).starts_with(generated) {
            println!("cargo::rerun-if-changed={source}");
        }
    }
}
