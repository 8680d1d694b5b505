//! Recognizes Rust programs.

use std::fs::File;
use std::path::Path;

use object::{Object, ObjectSection, ReadCache};

/// The section that marks Rust programs with Heapline's sampler: see the sampler's `trace.rs`.
pub(crate) const SAMPLER: &str = ".heapline";

/// The compiler's name in the section `.comment`, which stripped programs have too.
const COMPILER: &[u8] = b"rustc version ";

/// Returns what to do instead of attaching to a program, if it is written in Rust.
pub(crate) fn instead_of_attaching(program: &Path) -> Option<&'static str> {
    let cache = ReadCache::new(File::open(program).ok()?);
    let file = object::File::parse(&cache).ok()?;
    if file.section_by_name(SAMPLER).is_some() {
        return Some("record it from its start: heapline record -- PROGRAM");
    }
    let comment = file.section_by_name(".comment")?.data().ok()?;
    let is_rust = comment.windows(COMPILER.len()).any(|part| part == COMPILER);
    is_rust.then_some(
        "add Heapline's allocator to it (two lines: heapline record --help), and record it from its start",
    )
}
