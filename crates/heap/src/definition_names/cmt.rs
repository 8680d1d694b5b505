//! The toplevel definitions in a `.cmt` file: the typed syntax tree of a module, marshalled by the compiler.
//!
//! The layout of the tree is that of `typing/typedtree.ml` of OCaml 4.11 to 5.3. What does not look like it is left
//! out: later versions may have more fields.

use heapline_formats::marshal::{Block, Header, Heap, Limits, MarshalError, Value};

use super::{Binding, Bindings, MAX_BINDINGS, MAX_NAME, base_name, joined, qualified};

/// The beginning of the part with the tree. A part with the interface, like a `.cmi` file, may come before it.
const MAGIC: &[u8] = b"Caml1999T";

/// Larger trees are refused.
const LIMITS: Limits = Limits {
    bytes: 32 << 20,
    decompressed_bytes: 32 << 20,
    objects: 1 << 22,
};

/// Digits after that.
const VERSION: usize = 3;

/// Modules within modules that are looked at.
const MAX_DEPTH: usize = 16;

/// Variables of a pattern that are named.
const MAX_VARIABLES: usize = 8;

/// Constructors of the tree, by tag.
const IMPLEMENTATION: u8 = 1;
const STRUCTURE_VALUE: u8 = 1;
const STRUCTURE_MODULE: u8 = 6;
const STRUCTURE_RECURSIVE_MODULES: u8 = 7;
const STRUCTURE_INCLUDE: u8 = 12;
const MODULE_STRUCTURE: u8 = 1;
/// Before OCaml 5.1, and since.
const MODULE_CONSTRAINTS: [u8; 2] = [4, 5];
const PATTERN_VARIABLE: u8 = 0;
const PATTERN_ALIAS: u8 = 1;
const PATTERN_TUPLE: u8 = 3;

/// The reason why there are no definitions in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CmtError {
    /// It is no `.cmt` file.
    #[error("not a .cmt file")]
    NotCmt,
    /// It cannot be read.
    #[error(transparent)]
    Marshal(#[from] MarshalError),
    /// It is not of an implementation, or of an unknown version.
    #[error("the .cmt file is not of an implementation, or of an unknown version")]
    Unknown,
}

/// The definitions of a file.
pub(super) fn bindings(file: &[u8]) -> Result<Bindings, CmtError> {
    let start = file
        .windows(MAGIC.len())
        .position(|bytes| bytes == MAGIC)
        .ok_or(CmtError::NotCmt)?;
    let value = file.get(start + MAGIC.len() + VERSION..);
    let value = value.ok_or(CmtError::NotCmt)?;
    let header = Header::read(value, LIMITS)?.ok_or(CmtError::NotCmt)?;
    let content = header.content(value)?;
    let tree = Tree(Heap::parse(&header, &content)?);
    // cmt_infos: cmt_modname, cmt_annots, ...
    let root = tree.0.root();
    let unit = tree.field(root, 0).and_then(|name| tree.text(name));
    let annotations = tree.field(root, 1).ok_or(CmtError::Unknown)?;
    let structure = tree.tagged(annotations, IMPLEMENTATION);
    let structure = structure.and_then(|block| block.exactly());
    let [structure] = structure.ok_or(CmtError::Unknown)?;
    let mut found = Walk {
        steps: tree.0.object_count(),
        tree: &tree,
        bindings: Vec::new(),
        pending: Vec::new(),
    };
    found.structure(structure, "", 0);
    while let Some((structure, path, depth)) = found.pending.pop() {
        found.structure(structure, &path, depth);
    }
    Ok(Bindings {
        unit: unit.map(str::to_owned),
        bindings: found.bindings,
    })
}

/// The value in a file.
struct Tree<'a>(Heap<'a>);

impl Tree<'_> {
    /// A field of a block.
    fn field(&self, value: Value, field: usize) -> Option<Value> {
        self.0.block(value)?.get(field)
    }

    /// A block with a tag.
    fn tagged(&self, value: Value, tag: u8) -> Option<Block<'_>> {
        self.0.block(value).filter(|block| block.tag == tag)
    }

    /// All fields of a block with tag 0, if there are so many.
    fn record<const N: usize>(&self, value: Value) -> Option<[Value; N]> {
        self.tagged(value, 0)?.exactly()
    }

    /// The block in the first field of a block: what a node of the tree is, before its location.
    fn description(&self, value: Value) -> Option<Block<'_>> {
        self.0.block(self.field(value, 0)?)
    }

    /// The text of a string in UTF-8.
    fn text(&self, value: Value) -> Option<&str> {
        std::str::from_utf8(self.0.string(value)?).ok()
    }
}

struct Walk<'a> {
    tree: &'a Tree<'a>,
    bindings: Vec<Binding>,
    /// Structures, with the path of the modules around them.
    pending: Vec<(Value, String, usize)>,
    /// Cells of lists that may still be looked at: a damaged file may have cyclic ones.
    steps: usize,
}

impl<'a> Walk<'a> {
    /// The elements of a list.
    fn list(&mut self, mut list: Value) -> Vec<Value> {
        let mut elements = Vec::new();
        while self.steps > 0
            && let Some([head, tail]) = self.tree.record(list)
        {
            self.steps -= 1;
            elements.push(head);
            list = tail;
        }
        elements
    }

    /// Adds the definitions of a structure: `str_items`, ...
    fn structure(&mut self, structure: Value, path: &str, depth: usize) {
        let Some(items) = self.tree.field(structure, 0) else {
            return;
        };
        for item in self.list(items) {
            // str_desc, str_loc, str_env
            let Some(item) = self.tree.description(item) else {
                continue;
            };
            match (item.tag, item.len(), item.get(item.len() - 1)) {
                (STRUCTURE_VALUE, 2, Some(bindings)) => {
                    for binding in self.list(bindings) {
                        self.value(binding, path, depth);
                    }
                }
                (STRUCTURE_MODULE, 1, Some(module)) => self.module(module, path, depth),
                (STRUCTURE_RECURSIVE_MODULES, 1, Some(modules)) => {
                    for module in self.list(modules) {
                        self.module(module, path, depth);
                    }
                }
                // incl_mod, ...
                (STRUCTURE_INCLUDE, 1, Some(include)) => {
                    let included = self.tree.field(include, 0);
                    self.nested(included, path.to_owned(), depth);
                }
                _ => {}
            }
        }
    }

    /// Adds a definition of a value: `vb_pat`, `vb_expr`, ..., `vb_loc`.
    fn value(&mut self, binding: Value, path: &str, depth: usize) {
        let fields = self.tree.tagged(binding, 0).filter(|block| block.len() > 1);
        let fields = fields.map(|block| (block.get(0), block.get_back(0)));
        let Some((Some(pattern), Some(location))) = fields else {
            return;
        };
        let names = self.variables(pattern);
        self.add(location, qualified(path, &joined(&names)), depth);
    }

    /// Adds a definition of a module: `mb_id`, `mb_name`, ..., `mb_expr`, `mb_attributes`, `mb_loc`.
    fn module(&mut self, module: Value, path: &str, depth: usize) {
        let fields = self.tree.tagged(module, 0).filter(|block| block.len() > 4);
        let fields = fields.map(|block| [block.get(1), block.get_back(2), block.get_back(0)]);
        let Some([Some(name), Some(expression), Some(location)]) = fields else {
            return;
        };
        // A name with its location, unless it is `_`.
        let name = self.tree.field(name, 0);
        let name = name.and_then(|name| self.tree.field(name, 0));
        let name = name.and_then(|name| self.tree.text(name));
        let Some(name) = name else {
            return;
        };
        let path = qualified(path, &joined(&[name]));
        self.add(location, path.clone(), depth);
        self.nested(Some(expression), path, depth + 1);
    }

    /// Remembers the structure that a module expression is, perhaps with a type.
    fn nested(&mut self, expression: Option<Value>, path: String, depth: usize) {
        if depth > MAX_DEPTH || path.len() > MAX_NAME || self.pending.len() >= MAX_BINDINGS {
            return;
        }
        let mut at = expression;
        for _ in 0..MAX_DEPTH {
            // mod_desc, mod_loc, ...
            let Some(block) = at.and_then(|at| self.tree.description(at)) else {
                return;
            };
            match (block.tag, block.len(), block.get(0)) {
                (MODULE_STRUCTURE, 1, Some(structure)) => {
                    self.pending.push((structure, path, depth));
                    return;
                }
                (tag, 4, inner) if MODULE_CONSTRAINTS.contains(&tag) => at = inner,
                _ => return,
            }
        }
    }

    /// The variables of a pattern that is a name, or a tuple of names: `pat_desc`, `pat_loc`, ...
    fn variables(&mut self, pattern: Value) -> Vec<&'a str> {
        let tree = self.tree;
        let variable = |pattern| {
            let block = tree.description(pattern)?;
            // A name with its location follows its identifier.
            let name = match block.tag {
                PATTERN_VARIABLE => block.get(1)?,
                PATTERN_ALIAS => block.get(2)?,
                _ => return None,
            };
            tree.text(tree.field(name, 0)?)
        };
        let tuple = tree
            .description(pattern)
            .filter(|block| block.tag == PATTERN_TUPLE);
        match tuple.and_then(|block| block.exactly()) {
            Some([patterns]) => {
                let patterns = self.list(patterns).into_iter();
                patterns.filter_map(variable).take(MAX_VARIABLES).collect()
            }
            None => variable(pattern).into_iter().collect(),
        }
    }

    /// Adds a definition with its location: `loc_start`, `loc_end`, `loc_ghost`.
    fn add(&mut self, location: Value, name: String, depth: usize) {
        let Some([start, end, _]) = self.tree.record(location) else {
            return;
        };
        let (Some((file, first_line)), Some((_, last_line))) =
            (self.position(start), self.position(end))
        else {
            return;
        };
        if self.bindings.len() < MAX_BINDINGS {
            self.bindings.push(Binding {
                name,
                file: Some(base_name(file).to_owned()),
                first_line,
                last_line,
                depth,
            });
        }
    }

    /// A file and a line: `pos_fname`, `pos_lnum`, `pos_bol`, `pos_cnum`.
    fn position(&self, position: Value) -> Option<(&'a str, u64)> {
        let [file, Value::Int(line), _, _] = self.tree.record(position)? else {
            return None;
        };
        Some((self.tree.text(file)?, u64::try_from(line).ok()?))
    }
}
