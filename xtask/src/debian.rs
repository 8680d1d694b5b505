//! Packages of other Debian suites, unpacked into a directory without installing them.
//!
//! They are built for another C library than the one of this machine. So programs of such a directory get its
//! dynamic linker and its libraries by their full paths, and run without a chroot.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{Outcome, Run, program};
use crate::setup;

/// A suite of Debian, with package lists of its own.
pub(crate) struct Suite {
    name: &'static str,
    /// The options that have apt look at this suite only.
    options: Vec<String>,
}

impl Suite {
    /// Downloads the package lists of a suite.
    pub(crate) fn open(name: &'static str) -> Outcome<Self> {
        Self::open_for(name, None)
    }

    /// Those for another architecture than this machine's, by Debian's name of it.
    pub(crate) fn open_for(name: &'static str, architecture: Option<&str>) -> Outcome<Self> {
        let lists = setup::cache()?.join("apt");
        let folder = match architecture {
            Some(architecture) => lists.join(format!("{name}-{architecture}")),
            None => lists.join(name),
        };
        let unusable = |error| format!("cannot write to {}: {error}", folder.display());
        for part in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(folder.join(part)).map_err(unusable)?;
        }
        // Nothing is installed there, so that no package of this machine counts.
        fs::write(folder.join("status"), "").map_err(unusable)?;
        // Packages of experimental are for sid.
        let suites: &[&str] = match name {
            "experimental" => &["sid", name],
            _ => &[name],
        };
        let archive = archive()?;
        let source = |suite| format!("deb [signed-by={KEYRING}] {archive} {suite} main\n");
        let sources: Vec<String> = suites.iter().map(source).collect();
        fs::write(folder.join("sources.list"), sources.concat()).map_err(unusable)?;
        let folder = folder.display();
        let mut suite = Self {
            name,
            options: vec![
                format!("-oDir::Etc::sourcelist={folder}/sources.list"),
                "-oDir::Etc::sourceparts=/dev/null".into(),
                format!("-oDir::State={folder}"),
                format!("-oDir::State::status={folder}/status"),
                format!("-oDir::Cache={folder}"),
                "-oAcquire::Languages=none".into(),
                // The user that apt downloads as cannot write to everybody's cache.
                "-oAPT::Sandbox::User=root".into(),
                format!("-oAPT::Default-Release={name}"),
            ],
        };
        if let Some(architecture) = architecture {
            suite.options.extend([
                format!("-oAPT::Architecture={architecture}"),
                format!("-oAPT::Architectures={architecture}"),
            ]);
        }
        suite.apt("apt-get", &["update", "-q"]).output()?;
        Ok(suite)
    }

    /// The version of a package, such as `5.4.1-1`.
    pub(crate) fn version(&self, package: &str) -> Outcome<Option<String>> {
        let policy = self.apt("apt-cache", &["policy", package]).output()?;
        let candidate = policy
            .lines()
            .find_map(|line| line.trim().strip_prefix("Candidate: "));
        Ok(candidate
            .filter(|&version| version != "(none)")
            .map(str::to_owned))
    }

    /// Unpacks those of the packages that the suite has.
    pub(crate) fn unpack(&self, packages: &[&str], root: &Path) -> Outcome {
        let downloads = root.join("packages");
        fs::create_dir_all(&downloads)
            .map_err(|error| format!("cannot make {}: {error}", downloads.display()))?;
        let mut names = Vec::new();
        for &package in packages {
            if self.version(package)?.is_some() {
                names.push(package);
            }
        }
        self.apt("apt-get", &[&["download", "-q"][..], &names].concat())
            .folder(&downloads)
            .output()?;
        let unpack = "for package in packages/*.deb; do dpkg-deb -x $package .; done
            rm -r packages
            # As on Debian since its directories were merged.
            for part in bin lib lib64; do
              if [ -e $part ] && [ ! -h $part ]; then cp -a $part/. usr/$part; rm -r $part; fi
              ln -sfn usr/$part $part
            done
            # Links to libraries are meant for the root directory that this one is not.
            find usr/lib -type l -lname '/lib/*' | while read link; do
              ln -sfn $PWD$(readlink $link) $link
            done";
        program("sh", &["-ec", unpack]).folder(root).output()?;
        Ok(())
    }

    fn apt(&self, command: &str, arguments: &[&str]) -> Run {
        let options = self.options.iter().map(String::as_str);
        let arguments: Vec<&str> = options.chain(arguments.iter().copied()).collect();
        program(command, &arguments)
    }
}

impl std::fmt::Display for Suite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The archive that this machine gets its own packages from.
fn archive() -> Outcome<String> {
    let targets = program(
        "apt-get",
        &[
            "indextargets",
            "--format",
            "$(SITE)",
            "Created-By: Packages",
            "Label: Debian",
        ],
    )
    .output()?;
    targets
        .lines()
        .next()
        .map(str::to_owned)
        .ok_or_else(|| "this machine has no package lists of Debian; run apt-get update".into())
}

/// The dynamic linker and the libraries of a directory that packages were unpacked into.
pub(crate) struct Root {
    pub(crate) folder: PathBuf,
    pub(crate) linker: PathBuf,
    pub(crate) libraries: PathBuf,
}

impl Root {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            linker: folder.join("lib64/ld-linux-x86-64.so.2"),
            libraries: folder.join("usr/lib/x86_64-linux-gnu"),
        }
    }

    /// Makes a program run with the libraries of this directory.
    pub(crate) fn adopt(&self, executable: &Path) -> Outcome {
        program(
            "patchelf",
            &[
                "--set-interpreter",
                &self.linker.display().to_string(),
                "--set-rpath",
                &self.libraries.display().to_string(),
                &executable.display().to_string(),
            ],
        )
        .output()
        .map(drop)
    }

    /// A C compiler for programs that run with the libraries of this directory, and export their symbols, as OCaml has it by default.
    pub(crate) fn c_compiler(&self) -> String {
        let libraries = self.libraries.display();
        format!(
            "gcc --sysroot={} -B{libraries} -L{libraries} -Wl,-E -Wl,--dynamic-linker={} -Wl,-rpath,{libraries}",
            self.folder.display(),
            self.linker.display(),
        )
    }
}
