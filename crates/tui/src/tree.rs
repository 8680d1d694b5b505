//! The call tree, with nodes that are folded or open.

use std::hash::{DefaultHasher, Hash, Hasher};

use heapline_profile::reports::{Direction, NodeKind, Tree, TreeNode};
use heapline_text::units::{label, percent_number};
use heapline_text::{
    Align, Line, Screen, Style, Table, bar, branch_and_name, tree_branches, tree_room,
};
use ratatui::crossterm::event::KeyCode;

use crate::app::App;
use crate::choices::{Column, Slot, Unit};
use crate::table::amount;

/// A node that can be seen.
#[derive(Clone, Copy)]
struct Visible {
    /// Its place in the tree.
    index: usize,
    key: u64,
    has_children: bool,
    is_open: bool,
}

/// The identity of each node: that of its names from the top.
fn paths(tree: &Tree) -> Vec<u64> {
    let mut paths: Vec<u64> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let mut hasher = DefaultHasher::new();
        node.parent.map(|parent| paths[parent]).hash(&mut hasher);
        (node.kind == NodeKind::Other).hash(&mut hasher);
        // The number of merged nodes may change.
        if node.kind != NodeKind::Other {
            node.label.hash(&mut hasher);
        }
        paths.push(hasher.finish());
    }
    paths
}

/// The nodes that can be seen: those whose ancestors are all open.
fn visible(app: &App) -> Vec<Visible> {
    let Some(tree) = app.tree() else {
        return Vec::new();
    };
    let paths = paths(tree);
    let mut has_children = vec![false; tree.nodes.len()];
    for parent in tree.nodes.iter().filter_map(|node| node.parent) {
        has_children[parent] = true;
    }
    let by_default = is_open_by_default(app, tree);
    let mut shows_children = vec![false; tree.nodes.len()];
    let mut nodes = Vec::new();
    for (index, node) in tree.nodes.iter().enumerate() {
        if !node.parent.is_none_or(|parent| shows_children[parent]) {
            continue;
        }
        let key = paths[index];
        let is_open = by_default != app.flipped.contains(&key);
        shows_children[index] = is_open;
        nodes.push(Visible {
            index,
            key,
            has_children: has_children[index],
            is_open,
        });
    }
    nodes
}

/// Bottom-up, a tree begins as the table of its sites; one row that was opened shows all its callers.
fn is_open_by_default(app: &App, tree: &Tree) -> bool {
    tree.direction == Direction::TopDown || !app.choices.opened.is_empty()
}

/// The identities of the nodes that can be seen.
pub(crate) fn keys(app: &App) -> Vec<u64> {
    visible(app).iter().map(|node| node.key).collect()
}

/// Folds or opens the selected node, or opens all.
pub(crate) fn fold(app: &mut App, code: KeyCode) {
    let nodes = visible(app);
    let Some(tree) = app.tree() else {
        return;
    };
    let by_default = is_open_by_default(app, tree);
    if code == KeyCode::Char('*') {
        let paths = paths(tree);
        app.flipped = if by_default { Vec::new() } else { paths }
            .into_iter()
            .collect();
        return;
    }
    let Some(node) = nodes.get(app.selected()).copied() else {
        return;
    };
    let parent = tree.nodes[node.index].parent;
    let open = match code {
        KeyCode::Char('+') => true,
        KeyCode::Char('-') => false,
        _ => !node.is_open,
    };
    if !(open || node.is_open && node.has_children) {
        // Nothing to fold here: go to the node above.
        let above = nodes.iter().position(|above| Some(above.index) == parent);
        if let Some(above) = above {
            app.select(above);
        }
    } else if open == by_default {
        app.flipped.remove(&node.key);
    } else {
        app.flipped.insert(node.key);
    }
}

/// The title line and the nodes.
pub(crate) fn lines(app: &App, screen: Screen) -> Vec<Line> {
    let Some(tree) = app.tree() else {
        return Vec::new();
    };
    let unit = app.choices.unit;
    let top_down = tree.direction == Direction::TopDown;
    let direction = if top_down {
        "callers first"
    } else {
        "allocations first"
    };
    // Not the change of the table, which what was freed since the mark takes from.
    let title = match app.choices.column {
        Column::Growth => "new, live ▼".to_owned(),
        column => format!("{} ▼", column.title()),
    };
    let mut table = Table::new(
        screen,
        &[
            (&title, Align::Right),
            ("%", Align::Right),
            ("own", Align::Right),
            ("", Align::Left),
            (&format!("{} ({direction})", tree.by.name()), Align::Left),
        ],
        4,
    )
    .indent(1);
    let seconds = app.held(Slot::Tree).map_or(0.0, |held| held.want.seconds);
    let per = if seconds > 0.0 { "/s" } else { "" };
    let branches = tree_branches(tree.nodes.iter().map(|node| node.parent));
    let nodes = visible(app);
    let figures = |node: &TreeNode| {
        let value = |figures: &heapline_profile::reports::Figures| match unit {
            Unit::Bytes => figures.bytes.value,
            Unit::Blocks => figures.blocks.value,
        };
        let share = value(&node.total) / value(&tree.total);
        let has_own = top_down && node.kind == NodeKind::Call && value(&node.own) > 0.0;
        let own = if has_own && screen.width() >= 60 {
            format!("{}{per}", amount(node.own, unit, seconds, false))
        } else {
            String::new()
        };
        [
            format!("{}{per}", amount(node.total, unit, seconds, true)),
            if screen.width() < 50 {
                String::new()
            } else {
                percent_number(share, 1.0)
            },
            own,
            if screen.width() < 60 {
                String::new()
            } else {
                bar(share, screen.bar_width())
            },
        ]
    };
    let rows: Vec<[String; 4]> = nodes
        .iter()
        .map(|node| figures(&tree.nodes[node.index]))
        .collect();
    let room = tree_room(&rows, screen, 1);
    for (node, cells) in nodes.iter().zip(rows) {
        let fold = match (node.has_children, node.is_open) {
            (false, _) => "  ",
            (true, false) => "▸ ",
            (true, true) => "▾ ",
        };
        let of = &tree.nodes[node.index];
        let style = match of.kind {
            NodeKind::Other => Style::Faint,
            NodeKind::Call | NodeKind::Site => Style::Plain,
        };
        let branch = format!("{}{fold}", branches[node.index]);
        let name = branch_and_name(&branch, &label(&of.label), room);
        let cells = cells.into_iter().chain([name]);
        table.row(cells.map(|text| (text, style)).collect());
    }
    table.lines()
}
