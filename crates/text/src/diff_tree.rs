//! `diff --tree`: changes as a call tree.

use heapline_profile::reports::{ChangeColumns, DiffTree, NamedDiffTree};

use crate::NO_SAMPLES;
use crate::diff::{scaled, significant, totals};
use crate::own_code::own_code;
use crate::page::Page;
use crate::screen::Context;
use crate::styled::{Style, Text};
use crate::table::{Align, Table};
use crate::tree::{branch_and_name, tree_branches, tree_room};
use crate::units::{bytes, label, percent};

/// Renders a comparison as a call tree.
#[must_use]
pub fn diff_tree(report: &NamedDiffTree, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    let tree = &report.tree;
    let names = [&*report.before_name, &*report.after_name];
    totals(&mut page, report.of, names, &tree.total);
    scaled(&mut page, tree.per, tree.scale);
    page.title("Changes as a call tree, after minus before");
    if tree.nodes.parent.is_empty() {
        page.note(NO_SAMPLES);
        return page.finish();
    }
    nodes(&mut page, context, tree);
    page.note(&format!(
        "Nodes below {} of before and after together are merged into \"other\" (see --min).",
        percent(tree.min, 1.0)
    ));
    own_code(&mut page, &tree.after);
    significant(&mut page, tree.real_changes);
    page.finish()
}

fn nodes(page: &mut Page, context: &Context<'_>, tree: &DiffTree) {
    let nodes = &tree.nodes;
    let rows: Vec<[String; 4]> = (0..nodes.parent.len()).map(|i| figures(nodes, i)).collect();
    let room = tree_room(&rows, context.screen, 2);
    let branches = tree_branches(nodes.parent.iter().map(|&parent| place(parent)));
    let mut table = Table::new(
        context.screen,
        &[
            ("change", Align::Right),
            ("before", Align::Right),
            ("after", Align::Right),
            ("", Align::Left),
            ("", Align::Left),
        ],
        4,
    );
    for (i, (cells, branch)) in rows.into_iter().zip(branches).enumerate() {
        let change = match (nodes.is_real[i], nodes.change[i] > 0.0) {
            (false, _) => Style::Faint,
            (true, true) => Style::Bad,
            (true, false) => Style::Good,
        };
        let plain = if nodes.is_real[i] {
            Style::Plain
        } else {
            Style::Faint
        };
        let name = match place(nodes.label[i]) {
            Some(number) => label(&tree.labels[number]),
            None => format!("other ({})", nodes.others[i]),
        };
        let [first, before, after, mark] = cells;
        table.row(vec![
            (first, change),
            (before, plain),
            (after, plain),
            (mark, change),
            (branch_and_name(&branch, &name, room), plain),
        ]);
    }
    page.table(&table);
}

/// A place in a list; negative numbers stand for none.
fn place(number: i64) -> Option<usize> {
    usize::try_from(number).ok()
}

/// The cells before a node's name.
fn figures(nodes: &ChangeColumns, i: usize) -> [String; 4] {
    let sign = if nodes.change[i] > 0.0 { "+" } else { "" };
    [
        format!("{sign}{}", bytes(nodes.change[i])),
        bytes(nodes.before[i]),
        bytes(nodes.after[i]),
        if nodes.is_real[i] { "●" } else { "○" }.to_owned(),
    ]
}
