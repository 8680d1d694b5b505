//! Checks before it is started that a program can be recorded.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, ReadCache};

use crate::ocaml_runtime;
use crate::rust_program::SAMPLER;

/// The processor that this was built for, as ELF files have it, and its name.
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = object::elf::EM_AARCH64;
#[cfg(target_arch = "aarch64")]
const PROCESSOR: &str = "arm64";
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = object::elf::EM_X86_64;
#[cfg(target_arch = "x86_64")]
const PROCESSOR: &str = "x86-64";

/// The kind of program, which determines how it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Kind {
    /// Recorded by a preloaded library.
    Ocaml,
    /// Recorded by its own sampler.
    Rust,
}

/// The trailer of bytecode files, followed by three digits.
const BYTECODE: &[u8] = b"Caml1999X";

/// Finds a program as a shell does.
pub(super) fn find(name: &Path) -> anyhow::Result<PathBuf> {
    let is_plain = name
        .parent()
        .is_some_and(|parent| parent.as_os_str().is_empty());
    let shown = name.display();
    if !is_plain {
        let metadata = fs::metadata(name).with_context(|| format!("cannot run {shown}"))?;
        if metadata.is_dir() {
            bail!("{shown} is a directory, not a program");
        }
        if metadata.permissions().mode() & 0o111 == 0 {
            bail!("{shown} is not executable; if it is a program, run `chmod +x` on it");
        }
        return Ok(name.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|candidate| {
            fs::metadata(candidate)
                .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
        })
        .with_context(|| format!("cannot find {shown} in PATH; give its path, such as ./{shown}"))
}

/// Determines how to record the program; fails if it is not supported. With `follows_exec` it may also
/// be a program that runs OCaml programs.
pub(super) fn check(path: &Path, follows_exec: bool) -> anyhow::Result<Kind> {
    let shown = path.display();
    let mut file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
    let mode = file.metadata()?.permissions().mode();
    if mode & 0o6000 != 0 {
        bail!(
            "{shown} is setuid or setgid, which disables preloading; \
             record a copy without these bits, as the user that it runs as"
        );
    }
    let mut start = [0; 256];
    let len = file.read(&mut start)?;
    let start = &start[..len];
    if is_bytecode(&mut file, start)? {
        return Err(bytecode(path));
    }
    if let Some(line) = start.strip_prefix(b"#!") {
        if follows_exec {
            return Ok(Kind::Ocaml);
        }
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let interpreter = String::from_utf8_lossy(line);
        bail!(
            "{shown} is a script for {}; give the OCaml program that it runs, or use \
             heapline record --follow-exec to record all OCaml programs that it runs",
            interpreter.trim()
        );
    }
    check_elf(path, file, follows_exec)
}

fn bytecode(path: &Path) -> anyhow::Error {
    anyhow!(
        "{} is OCaml bytecode, or runs it, which is not supported; build the program with ocamlopt \
         (dune: the .exe target)",
        path.display()
    )
}

fn is_bytecode(file: &mut File, start: &[u8]) -> anyhow::Result<bool> {
    let line = start
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let is_interpreted = line.starts_with(b"#!") && line.windows(8).any(|part| part == b"ocamlrun");
    let mut end = [0; 12];
    let has_end = file.seek(SeekFrom::End(-12)).is_ok() && file.read_exact(&mut end).is_ok();
    file.rewind()?;
    Ok(is_interpreted || has_end && end.starts_with(BYTECODE))
}

fn check_elf(path: &Path, file: File, follows_exec: bool) -> anyhow::Result<Kind> {
    let shown = path.display();
    let cache = ReadCache::new(file);
    let Ok(elf) = ElfFile64::<Endianness, _>::parse(&cache) else {
        bail!("{shown} is not a 64-bit ELF program; only Linux programs can be recorded");
    };
    let endian = elf.endian();
    let header = elf.elf_header();
    if header.e_machine(endian) != MACHINE {
        bail!("{shown} is for another processor; only {PROCESSOR} programs can be recorded");
    }
    if elf.section_by_name(SAMPLER).is_some() {
        return Ok(Kind::Rust);
    }
    let is_dynamic = elf
        .elf_program_headers()
        .iter()
        .any(|segment| segment.p_type(endian) == object::elf::PT_INTERP);
    if !is_dynamic {
        bail!(
            "{shown} is statically linked, which does not allow preloading; \
             link it dynamically, or link Heapline's OCaml library"
        );
    }
    if follows_exec {
        return Ok(Kind::Ocaml);
    }
    let exports = |name: &str| {
        elf.dynamic_symbols()
            .any(|symbol| symbol.is_definition() && symbol.name() == Ok(name))
    };
    if !exports("caml_start_program") {
        if exports("caml_interprete") {
            return Err(bytecode(path));
        }
        // A program that is stripped still has the runtime's messages.
        let hides = elf
            .symbols()
            .any(|symbol| symbol.name() == Ok("caml_start_program"))
            || elf
                .section_by_name(".rodata")
                .and_then(|section| section.data().ok())
                .is_some_and(ocaml_runtime::is_in);
        if hides {
            bail!(
                "{shown} does not export the symbols of its OCaml runtime; link it with \
                 -ccopt -Wl,-E"
            );
        }
        bail!(
            "{shown} is neither an OCaml program nor a Rust program that calls \
             heapline::trace_if_requested; if it runs OCaml programs, use heapline record --follow-exec"
        );
    }
    // Its runtime has a sampler, but other stacks and frame descriptors.
    if exports("caml_alloc_local") {
        bail!(
            "{shown} was built with OxCaml, whose runtime heapline does not support; build it with \
             OCaml 4.14, or 5.3 or later, or link memtrace, whose traces heapline reads"
        );
    }
    if !exports("caml_memprof_start") {
        bail!(
            "{shown} was built with an OCaml before 4.11, which has no sampler; \
             build it with 4.14, or 5.3 or later"
        );
    }
    // 5.2 has all functions of `Gc.Memprof`, which do nothing, but not this one of `Domain`.
    if !exports("caml_memprof_young_trigger") && !exports("caml_ml_domain_index") {
        bail!(
            "{shown} was built with OCaml 5.0, 5.1 or 5.2, which have no sampler; \
             build it with 5.3 or later, or 4.14"
        );
    }
    Ok(Kind::Ocaml)
}
