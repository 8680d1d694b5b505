//! `cargo xtask package`: makes the packages for crates.io, and installs `heapline` from them.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use crate::command::{Outcome, cargo, program, root};
use crate::workspace::{self, Member};
use crate::{browser, setup};

/// The files that a published package must have, besides what cargo requires.
const FILES: [&str; 2] = ["README.md", "LICENSE"];
const FIELDS: [&str; 4] = ["description", "keywords", "categories", "include"];

/// A program that must not be run.
const NO_NPM: &str = "#!/bin/sh\necho 'npm was called' >&2\nexit 1\n";

/// The program that is recorded.
const PROGRAM: &str = "let () = print_int (List.length (List.init 1_000_000 string_of_int))\n";

/// Builds the page, which is part of the server's package, and makes and checks all packages.
pub(crate) fn run() -> Outcome {
    browser::setup()?;
    cargo(&["build", "--locked"]).run()?;
    check()
}

/// Makes all packages, in `target/package`, and checks them. The page must have been built, by the
/// server's build script.
pub(crate) fn check() -> Outcome {
    let members = workspace::published()?;
    for member in &members {
        check_metadata(member)?;
    }
    // The page is not in git, and so "dirty". Installing them verifies more than cargo does by itself.
    let mut arguments = vec!["package", "--locked", "--allow-dirty", "--no-verify"];
    for member in &members {
        arguments.extend(["--package", &member.name]);
    }
    cargo(&arguments).run()?;
    // Outside of the checkout: nothing of it may be found by accident. Always the same directory, so that what has not changed
    // is not compiled again.
    install(&members, &setup::cache()?.join("packages"))
}

fn check_metadata(member: &Member) -> Outcome {
    let name = &member.name;
    for file in FILES {
        if !member.folder.join(file).exists() {
            return Err(format!("{name} has no {file}"));
        }
    }
    for field in FIELDS {
        if member.manifest["package"].get(field).is_none() {
            return Err(format!("{name} has no `{field}` in its Cargo.toml"));
        }
    }
    Ok(())
}

/// Unpacks all packages, installs `heapline` from them, without npm, and tries it.
fn install(members: &[Member], folder: &Path) -> Outcome {
    let problem = |error: io::Error| format!("cannot write to {}: {error}", folder.display());
    let bin = folder.join("bin");
    fs::create_dir_all(folder.join(".cargo")).map_err(problem)?;
    fs::create_dir_all(&bin).map_err(problem)?;
    let npm = bin.join("npm");
    fs::write(&npm, NO_NPM).map_err(problem)?;
    program("chmod", &["+x", &text(&npm)]).run()?;

    // As if they were on crates.io. They lie side by side there too.
    let mut config = String::from("[patch.crates-io]\n");
    for member in members {
        let package = format!("{}-{}", member.name, member.version);
        let archive = root()
            .join("target/package")
            .join(format!("{package}.crate"));
        let unpacked = folder.join("unpacked");
        fs::create_dir_all(&unpacked).map_err(problem)?;
        program("tar", &["xmzf", &text(&archive)])
            .folder(&unpacked)
            .output()?;
        update(&unpacked.join(&package), &folder.join(&package)).map_err(problem)?;
        fs::remove_dir_all(&unpacked).map_err(problem)?;
        // Writing to a string does not fail.
        let _ = writeln!(config, "{} = {{ path = {package:?} }}", member.name);
    }
    fs::write(folder.join(".cargo/config.toml"), config).map_err(problem)?;

    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(
        [bin.clone()]
            .into_iter()
            .chain(std::env::split_paths(&path)),
    )
    .map_err(|error| format!("PATH is odd: {error}"))?;
    let version = members
        .iter()
        .find(|member| member.name == "heapline-cli")
        .map(|member| &member.version)
        .ok_or("heapline-cli is not published")?;
    let cli = format!("heapline-cli-{version}");
    let target = folder.join("target");
    cargo(&[
        "install", "--debug", "--force", "--path", &cli, "--root", ".",
    ])
    .folder(folder)
    .env("PATH", &path.to_string_lossy())
    .env("CARGO_TARGET_DIR", &text(&target))
    .env("CARGO_PROFILE_DEV_DEBUG", "false")
    // Whether it can be built from a package does not depend on how fast it is.
    .env("CARGO_PROFILE_AGENT_LTO", "off")
    .env("CARGO_PROFILE_AGENT_OPT_LEVEL", "1")
    .env("CARGO_PROFILE_AGENT_CODEGEN_UNITS", "16")
    .run()?;
    try_out(&bin.join("heapline"), version, &folder.join("tried"))
}

/// Uses an installed program, in a directory that is made anew: it refuses to overwrite what an earlier run left.
fn try_out(heapline: &Path, version: &str, folder: &Path) -> Outcome {
    let problem = |error: io::Error| format!("cannot write to {}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(problem)?;
    }
    fs::create_dir_all(folder).map_err(problem)?;
    let heapline = Installed {
        program: &text(heapline),
        folder,
    };
    heapline.says(&["--version"], version)?;
    heapline.says(&["demo", "--text"], "sampled blocks")?;
    heapline.says(&["report", "demo", "-o", "demo.html"], "")?;
    let page = fs::read_to_string(folder.join("demo.html")).unwrap_or_default();
    if !page.contains("<title>") || !page.contains("Preact Team") {
        return Err("the report lacks the page, or the notices of its libraries".into());
    }

    fs::write(folder.join("program.ml"), PROGRAM).map_err(problem)?;
    setup::debian("ocamlopt", "ocaml-nox")?;
    program("ocamlopt", &["program.ml", "-o", "program"])
        .folder(folder)
        .run()?;
    heapline.says(
        &["record", "-o", "program.ctf", "--", "./program"],
        "blocks sampled",
    )?;
    heapline.says(&["summary", "program.ctf", "--all-code"], "string_of_int")
}

/// Makes a directory the same as another one, and touches only files that differ: cargo compiles again what has a new time,
/// and packages give all files the same.
fn update(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(to)? {
        let old = entry?;
        if fs::symlink_metadata(from.join(old.file_name())).is_err() {
            if old.file_type()?.is_dir() {
                fs::remove_dir_all(old.path())?;
            } else {
                fs::remove_file(old.path())?;
            }
        }
    }
    for entry in fs::read_dir(from)? {
        let new = entry?;
        let old = to.join(new.file_name());
        if new.file_type()?.is_dir() {
            update(&new.path(), &old)?;
        } else if fs::read(&old).ok() != Some(fs::read(new.path())?) {
            fs::rename(new.path(), old)?;
        }
    }
    Ok(())
}

/// An installed `heapline`.
struct Installed<'a> {
    program: &'a str,
    folder: &'a Path,
}

impl Installed<'_> {
    fn says(&self, arguments: &[&str], expected: &str) -> Outcome {
        println!("\n> heapline {}", arguments.join(" "));
        let printed = program(self.program, arguments)
            .folder(self.folder)
            .output()?;
        if printed.contains(expected) {
            return Ok(());
        }
        Err(format!(
            "the installed heapline does not say {expected:?}, but:\n{printed}"
        ))
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
