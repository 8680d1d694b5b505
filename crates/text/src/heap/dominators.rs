//! `dominators`: retained memory as a tree.

use heapline_heap::reports::{DominatorNode, DominatorTree};

use super::{amount, limits, named, program};
use crate::chart::bar;
use crate::page::Page;
use crate::screen::{Context, Screen};
use crate::styled::{Style, Text};
use crate::table::{Align, Table};
use crate::tree::{branch_and_name, tree_branches, tree_room};
use crate::units::{bytes, percent_number};

/// Renders a dominator tree.
#[must_use]
pub fn dominators(report: &DominatorTree, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    let subject = &report.subject;
    page.title(&format!(
        "{}: {}, retained",
        program(subject),
        amount(subject.total)
    ));
    page.gap();
    let columns = [
        ("retained", Align::Right),
        ("%", Align::Right),
        ("own", Align::Right),
        ("", Align::Left),
        ("", Align::Left),
    ];
    let mut table = Table::new(context.screen, &columns, 4);
    let rows: Vec<[String; 4]> = report
        .nodes
        .iter()
        .map(|node| figures(node, subject.total.bytes as f64, context.screen))
        .collect();
    let room = tree_room(&rows, context.screen, 2);
    let branches = tree_branches(report.nodes.iter().map(|node| node.parent));
    for ((node, cells), branch) in report.nodes.iter().zip(rows).zip(branches) {
        let style = match node.kind {
            Some(_) => Style::Plain,
            None => Style::Faint,
        };
        let name = named(&node.name, node.place.as_deref());
        let name = branch_and_name(&branch, &name, room);
        let cells = cells.into_iter().chain([name]);
        table.row(cells.map(|text| (text, style)).collect());
    }
    page.table(&table);
    page.note("Small nodes are merged into \"other\" (see --min).");
    limits(&mut page, subject);
    page.finish()
}

/// The cells before a node's name.
fn figures(node: &DominatorNode, total: f64, screen: Screen) -> [String; 4] {
    let retained = node.retained.bytes as f64;
    let own = if node.own.bytes > 0 {
        bytes(node.own.bytes as f64)
    } else {
        String::new()
    };
    [
        bytes(retained),
        percent_number(retained, total),
        own,
        bar(retained / total.max(1.0), screen.bar_width()),
    ]
}
