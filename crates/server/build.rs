//! Embeds the page, and builds it first with npm in a checkout that has changed.
//!
//! The packaged crate has the built page in `page`, which is a link to `ui/dist` in a checkout, and needs
//! no npm. In a checkout without npm the program is built without the page; `heapline view` then says
//! what to install. `HEAPLINE_UI=required` makes that an error, `HEAPLINE_UI=skip` does not even try.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The sources of the page, in `ui`.
const SOURCES: [&str; 6] = [
    "index.html",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "build.mjs",
    "src",
];

fn main() {
    println!("cargo::rerun-if-env-changed=HEAPLINE_UI");
    let wish = std::env::var("HEAPLINE_UI").unwrap_or_default();
    let page = match &*wish {
        "skip" => Err("HEAPLINE_UI=skip was set when it was built".to_owned()),
        _ => page(Path::new(env!("CARGO_MANIFEST_DIR"))),
    };
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let written = match &page {
        Ok(folder) => embed(folder, &out),
        Err(reason) => {
            if wish == "required" {
                println!("cargo::error=the page cannot be built: {reason}");
            } else if wish != "skip" {
                println!("cargo::warning=the viewer is built without its page: {reason}");
            }
            write_list(&out, &[], reason)
        }
    };
    if let Err(error) = written {
        println!("cargo::error=the page cannot be embedded: {error}");
    }
}

/// The folder of the page, or why there is none.
fn page(package: &Path) -> Result<PathBuf, String> {
    let page = package.join("page");
    match fs::symlink_metadata(&page) {
        Ok(metadata) if metadata.is_dir() => {
            println!("cargo::rerun-if-changed={}", page.display());
            Ok(page)
        }
        // A link, or what git makes of it where there are none: a checkout.
        Ok(_) => build(&package.join("../../ui")),
        Err(_) => {
            // Such a package must not be published.
            println!(
                "cargo::error=this package was made without the page: use cargo xtask package"
            );
            Err("the package does not contain it".to_owned())
        }
    }
}

/// Builds the page if it has changed.
fn build(ui: &Path) -> Result<PathBuf, String> {
    for name in SOURCES {
        println!("cargo::rerun-if-changed={}", ui.join(name).display());
    }
    if !ui.join("package.json").exists() {
        return Err("the folder ui is not there".to_owned());
    }
    let hash = |names: &[&str]| {
        hash(ui, names).map_err(|error| format!("{} cannot be read: {error}", ui.display()))
    };
    let sources = hash(&SOURCES)?;
    let built = ui.join("dist");
    if stamp(&built) == Some(sources.clone()) {
        return Ok(built);
    }
    let packages = hash(&["package-lock.json"])?;
    let modules = ui.join("node_modules");
    if stamp(&modules) != Some(packages.clone()) {
        npm(ui, &["ci", "--ignore-scripts", "--no-audit", "--no-fund"])?;
        put_stamp(&modules, &packages)?;
    }
    // Another build may be looking at the old one.
    let name = format!("dist.{}", std::process::id());
    let fresh = ui.join(&name);
    let result = npm(ui, &["run", "build", "--", &name])
        .and_then(|()| put_stamp(&fresh, &sources))
        .and_then(|()| {
            let _ = fs::remove_dir_all(&built);
            fs::rename(&fresh, &built).map_err(|error| format!("cannot move {name}: {error}"))
        });
    if result.is_err() {
        let _ = fs::remove_dir_all(&fresh);
        // Another build was faster.
        if stamp(&built) == Some(sources) {
            return Ok(built);
        }
    }
    result.map(|()| built)
}

/// Runs npm; what it says is the error if it fails.
fn npm(ui: &Path, arguments: &[&str]) -> Result<(), String> {
    let text = format!("npm {}", arguments.join(" "));
    let output = Command::new("npm")
        .args(arguments)
        .current_dir(ui)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                "npm is not installed (on Debian: apt-get install npm), then build again".to_owned()
            }
            _ => format!("`{text}` cannot be run: {error}"),
        })?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    // Warnings of build scripts are one line.
    let said: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let start = &said[..said.len().min(12)];
    Err(format!("`{text}` in ui failed: {}", start.join(" | ")))
}

/// The stamp of the sources that a directory was built from, if it is complete.
fn stamp(folder: &Path) -> Option<String> {
    fs::read_to_string(folder.join(".made-from")).ok()
}

fn put_stamp(folder: &Path, text: &str) -> Result<(), String> {
    fs::write(folder.join(".made-from"), text)
        .map_err(|error| format!("cannot write to {}: {error}", folder.display()))
}

/// Tells whether files have changed. Times do not: a checkout sets them as it likes.
fn hash(root: &Path, names: &[&str]) -> io::Result<String> {
    let mut files = BTreeSet::new();
    for name in names {
        let path = root.join(name);
        if path.exists() {
            collect(&path, &mut files)?;
        }
    }
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.strip_prefix(root).unwrap_or(&file).hash(&mut hasher);
        fs::read(&file)?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// All files of a folder.
fn collect(path: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            collect(&entry?.path(), files)?;
        }
    } else {
        files.insert(path.to_owned());
    }
    Ok(())
}

/// Copies the page beside the program's other generated files, where no other build changes it.
fn embed(page: &Path, out: &Path) -> io::Result<()> {
    let mut files = BTreeSet::new();
    collect(page, &mut files)?;
    let copy = out.join("page");
    let mut names = Vec::new();
    for file in files {
        let Ok(name) = file.strip_prefix(page) else {
            continue;
        };
        if name.extension().is_none() {
            continue; // The stamp.
        }
        let to = copy.join(name);
        fs::create_dir_all(to.parent().unwrap_or(&copy))?;
        fs::copy(&file, &to)?;
        names.push(name.to_owned());
    }
    write_list(out, &names, "")
}

/// Writes the table that `assets.rs` includes.
fn write_list(out: &Path, names: &[PathBuf], missing: &str) -> io::Result<()> {
    let mut code = format!("const MISSING: &str = {missing:?};\n");
    code += "static FILES: &[File] = &[\n";
    for name in names {
        let kind = match name.extension().and_then(OsStr::to_str) {
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("png") => "image/png",
            Some("woff2") => "font/woff2",
            Some("txt") => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        };
        let path = out.join("page").join(name).display().to_string();
        let name = name.display();
        // Writing to a string does not fail.
        let _ = writeln!(
            code,
            "    File {{ path: \"{name}\", kind: {kind:?}, bytes: include_bytes!({path:?}) }},"
        );
    }
    code += "];\n";
    fs::write(out.join("assets.rs"), code)
}
