//! Recognizes OCaml's runtime in programs without symbols.

use regex::bytes::Regex;

/// Strings of C in every runtime: a variable that it reads, and a message. As patterns, which do not match themselves in this
/// program; others that know of them, too, seldom end both with a zero byte.
const STRINGS: [&str; 2] = [r"OCAMLRUNPARAM\x00", r"Fatal error: exception %s\n\x00"];

/// Returns true if a program, or its constants, have OCaml's runtime.
pub(crate) fn is_in(bytes: &[u8]) -> bool {
    STRINGS
        .iter()
        .all(|string| Regex::new(string).is_ok_and(|string| string.is_match(bytes)))
}
