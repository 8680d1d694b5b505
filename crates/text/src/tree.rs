//! `tree`: allocations as a call tree.

use heapline_profile::reports::{Direction, NodeKind, Tree, TreeNode};

use crate::NO_SAMPLES;
use crate::chart::bar;
use crate::own_code::own_code;
use crate::page::Page;
use crate::screen::{Context, Screen};
use crate::styled::{Style, Text};
use crate::table::{Align, Table};
use crate::units::{bytes, count, estimated_bytes, label, percent, percent_number};
use crate::width::{columns, fit};

/// Renders a call tree.
#[must_use]
pub fn tree(report: &Tree, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    let total = report.total.bytes.value;
    match report.focus_total {
        None => {
            let direction = match report.direction {
                Direction::TopDown => "top-down: callers first",
                Direction::BottomUp => "bottom-up: allocations first, then their callers",
            };
            page.title(&format!(
                "{}, {direction}",
                estimated_bytes(report.total.bytes)
            ));
            if report.nodes.is_empty() {
                page.note(NO_SAMPLES);
                return page.finish();
            }
            let with_own = report.direction == Direction::TopDown;
            nodes(&mut page, context, &report.nodes, total, with_own);
        }
        Some(inside) => {
            page.title(&format!(
                "{} inside {}, {} of the total",
                estimated_bytes(inside.bytes),
                report.focus.join(" calling "),
                percent(inside.bytes.value, total)
            ));
            if inside.samples == 0 {
                page.note("No stack matches --focus; `heapline hotspots` lists functions.");
                return page.finish();
            }
            page.title("Callers");
            nodes(
                &mut page,
                context,
                &report.callers,
                inside.bytes.value,
                false,
            );
            page.title("Callees");
            if let Some(own) = report.focus_own.filter(|own| own.samples > 0) {
                page.note(&format!(
                    "{} ({}) is allocated by the function itself.",
                    bytes(own.bytes.value),
                    percent(own.bytes.value, inside.bytes.value)
                ));
            }
            nodes(&mut page, context, &report.nodes, inside.bytes.value, true);
        }
    }
    page.note(&format!(
        "Nodes below {} are merged into \"other\" (see --min).",
        percent(report.threshold, 1.0)
    ));
    if let Some(most) = report.most_nodes {
        page.note(&format!(
            "A tree has at most {} nodes; what is beyond is merged too. A larger --min or --depth shows less.",
            count(most as u64)
        ));
    }
    own_code(&mut page, &report.subject);
    page.finish()
}

/// Draws the nodes. The "own" column makes sense top-down only: bottom-up it would be what has no
/// further callers.
fn nodes(page: &mut Page, context: &Context<'_>, nodes: &[TreeNode], total: f64, with_own: bool) {
    if nodes.is_empty() {
        return page.note("None.");
    }
    let mut table = Table::new(
        context.screen,
        &[
            ("total", Align::Right),
            ("%", Align::Right),
            ("own", Align::Right),
            ("", Align::Left),
            ("", Align::Left),
        ],
        4,
    );
    let rows: Vec<[String; 4]> = nodes
        .iter()
        .map(|node| figures(node, total, with_own, context.screen))
        .collect();
    let room = tree_room(&rows, context.screen, 2);
    let branches = tree_branches(nodes.iter().map(|node| node.parent));
    for ((node, cells), branch) in nodes.iter().zip(rows).zip(branches) {
        let style = match node.kind {
            NodeKind::Other => Style::Faint,
            NodeKind::Call | NodeKind::Site => Style::Plain,
        };
        let name = branch_and_name(&branch, &label(&node.label), room);
        let cells = cells.into_iter().chain([name]);
        table.row(cells.map(|text| (text, style)).collect());
    }
    page.table(&table);
}

/// The cells before a node's name.
fn figures(node: &TreeNode, total: f64, with_own: bool, screen: Screen) -> [String; 4] {
    let own = node.own.bytes.value;
    let own = if with_own && own > 0.0 && node.kind == NodeKind::Call {
        bytes(own)
    } else {
        String::new()
    };
    let share = node.total.bytes.value / total;
    [
        bytes(node.total.bytes.value),
        percent_number(share, 1.0),
        own,
        bar(share, screen.bar_width()),
    ]
}

/// The columns that are left for branches and names after four columns of figures, on a screen that is
/// indented by `indent`.
#[must_use]
pub fn tree_room(rows: &[[String; 4]], screen: Screen, indent: usize) -> usize {
    const GAP: usize = 2;
    let used: usize = (0..4)
        .map(|i| match rows.iter().map(|row| columns(&row[i])).max() {
            None | Some(0) => 0,
            Some(width) => width + GAP,
        })
        .sum();
    screen.room_beside(indent + used).max(12)
}

/// Puts a branch before a name. On narrow screens, deep branches lose their outer levels before names
/// become unreadable.
#[must_use]
pub fn branch_and_name(branch: &str, name: &str, room: usize) -> String {
    /// Columns that names get if they need them.
    const NAME: usize = 28;
    let longest = room.saturating_sub(columns(name).min(NAME)).max(room / 3);
    let levels: Vec<char> = branch.chars().collect();
    let branch: String = if levels.len() > longest {
        let shown = levels.len() - longest.saturating_sub(1);
        std::iter::once('…')
            .chain(levels[shown..].iter().copied())
            .collect()
    } else {
        branch.to_owned()
    };
    let name = fit(name, room.saturating_sub(columns(&branch)));
    format!("{branch}{name}")
}

/// The lines that join nodes to their parents, which come before them. Chains, where a node is its parent's only child, are
/// not indented: stacks are deeper than terminals are wide.
#[must_use]
pub fn tree_branches(parents: impl Iterator<Item = Option<usize>>) -> Vec<String> {
    let parents: Vec<Option<usize>> = parents.collect();
    let mut siblings = vec![0_usize; parents.len()];
    let mut roots = 0;
    for parent in &parents {
        match *parent {
            Some(parent) => siblings[parent] += 1,
            None => roots += 1,
        }
    }
    let mut seen = vec![0_usize; parents.len()];
    let mut seen_roots = 0;
    let mut below: Vec<String> = Vec::with_capacity(parents.len());
    let mut lines = Vec::with_capacity(parents.len());
    for parent in parents {
        let (prefix, count, number) = match parent {
            Some(parent) => {
                seen[parent] += 1;
                (below[parent].clone(), siblings[parent], seen[parent])
            }
            None => {
                seen_roots += 1;
                (String::new(), roots, seen_roots)
            }
        };
        let is_root = parent.is_none();
        let (line, next) = if count == 1 {
            (prefix.clone(), prefix)
        } else if is_root {
            (prefix.clone(), format!("{prefix} "))
        } else if number == count {
            (format!("{prefix}└ "), format!("{prefix}  "))
        } else {
            (format!("{prefix}├ "), format!("{prefix}│ "))
        };
        lines.push(line);
        below.push(next);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_branches_give_way_to_names() {
        let branch = "│ ".repeat(20) + "├ ";
        let name = "Typecore.type_expect";
        assert_eq!(branch_and_name("├ ", name, 30), "├ Typecore.type_expect");
        assert_eq!(
            branch_and_name(&branch, name, 30),
            "… │ │ │ ├ Typecore.type_expect"
        );
        let narrow = branch_and_name(&branch, name, 15);
        assert_eq!(narrow, "…│ ├ Type…xpect");
        for room in 12..80 {
            assert!(columns(&branch_and_name(&branch, name, room)) <= room);
        }
    }
}
