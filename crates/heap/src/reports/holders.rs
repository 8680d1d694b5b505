//! Rows by root, module and definition, which add up to everything.

use hashbrown::HashMap;

use super::retained::{RetainedBy, RetainedRow, row};
use crate::aggregate::{AggregateId, AggregateTree};
use crate::classes::Kind;
use crate::graph::Virtual;
use crate::heap::{Amount, Heap};

/// Rows by root, module or definition, given the dominator tree and the children of its nodes.
pub(super) fn by_holder(
    heap: &Heap,
    tree: &AggregateTree,
    children: &[Vec<AggregateId>],
    by: RetainedBy,
) -> Vec<RetainedRow> {
    let mut rows = Holders {
        heap,
        tree,
        children,
        by,
        paths: heap.path_tree(),
        rows: Vec::new(),
        named: HashMap::new(),
    };
    for &group in &children[0] {
        match heap.graph().virtual_node(tree.example(group)) {
            Some(Virtual::Group(_)) if by != RetainedBy::Root && rows.is_of_modules(group) => {
                for &module in &children[group as usize] {
                    rows.module(module, "(several modules)");
                }
            }
            Some(Virtual::Group(found)) => {
                let mut row = rows.row(group);
                if by == RetainedBy::Root {
                    found.kind.name().clone_into(&mut row.name);
                    row.place = None;
                }
                rows.add(row);
            }
            // A module that a stack refers to, too, is not below its group.
            _ if by != RetainedBy::Root => rows.module(group, "(several roots)"),
            _ => rows.add_shared("(several roots)", tree.total(group)),
        }
    }
    rows.rows
}

/// Rows by name.
struct Holders<'a> {
    heap: &'a Heap,
    tree: &'a AggregateTree,
    children: &'a [Vec<AggregateId>],
    by: RetainedBy,
    /// The tree of shortest paths, in which groups, modules and definitions are what they are in the dominator tree.
    paths: &'a AggregateTree,
    rows: Vec<RetainedRow>,
    /// The rows with a name of their own.
    named: HashMap<String, usize>,
}

impl Holders<'_> {
    fn is_of_modules(&self, group: AggregateId) -> bool {
        self.heap.is_of_modules(self.tree.example(group))
    }

    fn kind(&self, id: AggregateId) -> Kind {
        self.heap.class_by_id(self.tree.class(id)).kind
    }

    /// The row of a group, module or definition.
    fn row(&self, id: AggregateId) -> RetainedRow {
        RetainedRow {
            reached: Some(self.reached(id)),
            ..row(self.heap, self.tree, id)
        }
    }

    fn reached(&self, id: AggregateId) -> Amount {
        let path = self.paths.of(self.tree.example(id));
        path.map_or_else(Amount::default, |id| self.paths.total(id))
    }

    /// Adds a module, or what is shared in place of one.
    fn module(&mut self, module: AggregateId, shared: &str) {
        if self.kind(module) != Kind::Module {
            self.add_shared(shared, self.tree.total(module));
        } else if self.by == RetainedBy::Module {
            self.add(self.row(module));
        } else {
            self.definitions(module);
        }
    }

    /// Adds the definitions of a module.
    fn definitions(&mut self, module: AggregateId) {
        let mut own = RetainedRow {
            retained: self.tree.own(module),
            ..self.row(module)
        };
        let name = own.name.clone();
        for &definition in &self.children[module as usize] {
            if self.kind(definition) == Kind::Definition {
                let row = self.row(definition);
                if let (Some(all), Some(reached)) = (&mut own.reached, row.reached) {
                    all.bytes = all.bytes.saturating_sub(reached.bytes);
                    all.blocks = all.blocks.saturating_sub(reached.blocks);
                }
                self.rows.push(row);
            } else {
                let name = format!("(several definitions of {name})");
                self.add_shared(&name, self.tree.total(definition));
            }
        }
        self.rows.push(own);
    }

    /// Adds to the row of a name.
    fn add(&mut self, row: RetainedRow) {
        let next = self.rows.len();
        let at = *self.named.entry(row.name.clone()).or_insert(next);
        let Some(known) = self.rows.get_mut(at) else {
            self.rows.push(row);
            return;
        };
        known.values += row.values;
        known.own += row.own;
        known.retained += row.retained;
        if let (Some(known), Some(reached)) = (&mut known.reached, row.reached) {
            *known += reached;
        }
        // Several places have none.
        known.place = known
            .place
            .take()
            .filter(|place| Some(place) == row.place.as_ref());
    }

    fn add_shared(&mut self, name: &str, amount: Amount) {
        self.add(RetainedRow {
            name: name.to_owned(),
            place: None,
            is_shared: true,
            values: 1,
            own: Amount::default(),
            retained: amount,
            // Paths lead to it through other rows.
            reached: Some(Amount::default()),
            is_mostly_shared: false,
        });
    }
}
