//! Domains of OCaml 5.3, whose samplers must not all be alike.

pub(crate) fn watch() {}
