//! Folded stacks: one line per stack.

use std::io::{self, Write};
use std::ops::ControlFlow;

use heapline_profile::Scope;

use crate::fold::{Leaf, Tree};
use crate::names::{foldable, whole};
use crate::text::Out;

/// Writes one line for each stack of functions: their names, outermost first and separated by
/// semicolons, a space, and the bytes that were allocated there.
///
/// Semicolons and line ends in names become `_`. A stack without frames is `(unknown)`. For what is
/// alive at some moment, give [`Scope::live_at`].
pub fn collapsed(scope: &Scope<'_>, leaf: Leaf, out: &mut impl Write) -> io::Result<()> {
    let tree = Tree::new(scope, leaf, &[scope.by_stack()]);
    let mut out = Out::new(out);
    let written = visit_folded(&tree, |stack, [bytes]| {
        for part in stack {
            out.put(part.as_bytes());
        }
        out.put(b" ");
        out.number(whole(*bytes));
        out.put(b"\n");
        match out.check() {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    });
    match written {
        ControlFlow::Continue(()) => out.finish(),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Visits folded stacks: their names, and semicolons in between.
pub(crate) fn visit_folded<const N: usize, B>(
    tree: &Tree<N>,
    mut f: impl FnMut(&mut dyn Iterator<Item = &str>, &[f64; N]) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let names: Vec<_> = tree.names.iter().map(|name| foldable(&name.text)).collect();
    tree.visit(|path, bytes| {
        let mut parts = path.iter().enumerate().flat_map(|(i, &name)| {
            let separator = if i == 0 { "" } else { ";" };
            [separator, &*names[name as usize]]
        });
        f(&mut parts, bytes)
    })
}
