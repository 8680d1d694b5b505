//! The lines at which the fields of a module are defined.
//!
//! The code of a module stores each of its toplevel definitions in a field of the module's block. The call
//! that computes a definition comes just before that, and calls have debug information. So this needs
//! neither the files of the compiler nor those of a debugger.

#[cfg(any(target_arch = "aarch64", test))]
mod aarch64;
#[cfg(any(target_arch = "x86_64", test))]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64::stores;
#[cfg(target_arch = "x86_64")]
use x86_64::stores;

use super::images::{Mappings, Symbols};
use super::raw::Raw;

/// The name of the function that a module's definitions are in, after the name of the module: of OCaml 4,
/// and OCaml 5.
const ENTRIES: [&[u8]; 2] = [b"__entry", b".entry"];

/// A definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) field: usize,
    /// The descriptor of the call before it is stored.
    pub(super) descriptor: usize,
}

/// Finds definitions.
#[derive(Clone, Copy)]
pub(super) struct Finder<'a> {
    pub(super) raw: Raw,
    pub(super) mappings: &'a Mappings,
    pub(super) symbols: &'a Symbols,
    /// Return addresses and their descriptors, in order.
    pub(super) calls: &'a [(usize, usize)],
}

impl Finder<'_> {
    /// The definitions of a module, given its symbol, block, and number of fields.
    pub(super) fn of_module(self, name: &[u8], module: usize, fields: usize) -> Vec<Definition> {
        let Self { raw, symbols, .. } = self;
        let range = ENTRIES
            .iter()
            .find_map(|entry| symbols.range(&[name, entry].concat()));
        let Some((start, end)) = range else {
            return Vec::new();
        };
        let code: Vec<u8> = (start..end).map(|at| raw.byte(at)).collect();
        let code = Code {
            bytes: &code,
            start,
            module,
            fields,
            initialize: symbols.range(b"caml_initialize").map(|(at, _)| at),
            // Bytes that look like an instruction may be something else.
            load: |at| self.mappings.is_readable(at).then(|| raw.word(at)),
        };
        let mut previous = start;
        let mut found = Vec::new();
        for (field, at) in once(stores(&code)) {
            let after = self.calls.partition_point(|(call, _)| *call <= at);
            let call = after.checked_sub(1).map(|n| self.calls[n]);
            // Without a call it is a constant or a function, and the call is that of another one.
            if let Some((call, descriptor)) = call
                && call > previous
            {
                found.push(Definition { field, descriptor });
            }
            previous = at;
        }
        found
    }
}

/// The code that initialises a module.
struct Code<'a, L> {
    bytes: &'a [u8],
    /// Its address.
    start: usize,
    /// The address of the module's block.
    module: usize,
    /// The number of its fields.
    fields: usize,
    /// OCaml 5: the function that stores to a field.
    initialize: Option<usize>,
    /// Reads a word, if that is possible.
    load: L,
}

/// A field of the module that the code stores to, and the address where it does.
type Store = (usize, usize);

/// The stores to fields that are stored to once, by address: what is stored to twice was not understood.
fn once(mut stores: Vec<Store>) -> Vec<Store> {
    stores.sort_unstable();
    let mut found: Vec<_> = stores
        .chunk_by(|(a, _), (b, _)| a == b)
        .filter_map(|places| match places {
            [place] => Some(*place),
            _ => None,
        })
        .collect();
    found.sort_unstable_by_key(|(_, place)| *place);
    found
}
