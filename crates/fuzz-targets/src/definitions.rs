//! Files that name toplevel definitions: `.cmt` files of the compiler, and sources.

use heapline_heap::Bindings;

/// Runs the target on an input.
pub fn run(file: &[u8]) {
    if let Ok(bindings) = Bindings::of_cmt(file) {
        let _ = bindings.at("cache.ml", 5);
    }
    if let Ok(text) = str::from_utf8(file) {
        let bindings = Bindings::of_source(text);
        let lines = text.lines().count() as u64;
        for line in 0..=lines.min(100) {
            if let Some(found) = bindings.at("cache.ml", line) {
                assert!((1..=line).contains(&found.first_line));
                assert!((line..=lines).contains(&found.last_line));
            }
        }
    }
}
