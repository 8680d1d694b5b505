//! Trees, and functions left out of them.

use heapline_profile::query::Pattern;
use heapline_profile::reports::{
    Direction, Figures, HotspotOptions, NodeKind, SortBy, TreeNode, TreeOptions, hotspots, tree,
};
use heapline_profile::{Estimator, GroupBy, Look, Query, Recursion, Scope, Share, StoreOptions};
use heapline_testkit::generate;
use heapline_trace::{Block, Frame, FrameSink, Source, Writer};

use super::traces::{load, odd_traces};
use super::{close, for_each_scope, same, sum};

/// The figures of the nodes at the top.
fn tops(nodes: &[TreeNode]) -> Figures {
    let tops = nodes.iter().filter(|node| node.parent.is_none());
    sum(tops.map(|node| &node.total))
}

fn assert_tree(name: &str, nodes: &[TreeNode]) {
    for figures in nodes.iter().flat_map(|node| [node.total, node.own]) {
        let numbers = [figures.bytes, figures.blocks].map(|it| it.low + it.high + it.value);
        assert!(numbers.iter().all(|number| number.is_finite()), "{name}");
    }
    let mut below = vec![Figures::default(); nodes.len()];
    for (place, node) in nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            assert!(parent < place, "{name}");
            assert_eq!(node.depth, nodes[parent].depth + 1, "{name}");
            below[parent] = sum([&below[parent], &node.total]);
        } else {
            assert_eq!(node.depth, 0, "{name}");
        }
        assert_eq!(node.kind == NodeKind::Other, node.others > 0, "{name}");
    }
    for (node, below) in nodes.iter().zip(&below) {
        same(name, &sum([&node.own, below]), &node.total);
    }
}

#[test]
fn trees_add_up() {
    for_each_scope(|name, scope| {
        let (bytes, samples) = (scope.total().bytes.value, scope.total().samples);
        for by in [
            GroupBy::Site,
            GroupBy::Address,
            GroupBy::Function,
            GroupBy::Module,
        ] {
            for direction in [Direction::TopDown, Direction::BottomUp] {
                for (threshold, depth, sites) in [
                    (0.0, None, true),
                    (0.0, None, false),
                    (0.05, Some(4), false),
                    (0.3, None, true),
                ] {
                    let name = format!("{name}, {by:?}, {direction:?}, {threshold}");
                    let options = TreeOptions {
                        by,
                        bottom_up: direction == Direction::BottomUp,
                        min: Share(threshold),
                        depth,
                        sites,
                        ..TreeOptions::default()
                    };
                    let report = tree(scope, &options);
                    assert_tree(&name, &report.nodes);
                    let tops = tops(&report.nodes);
                    close(&name, tops.bytes.value, bytes);
                    assert_eq!(tops.samples, samples, "{name}");
                }
            }
        }
    });
}

#[test]
fn trees_around_a_focus_add_up() {
    for_each_scope(|name, scope| {
        for focus in ["*", "*Module1*", "/[aeiou]/", "nowhere"] {
            let pattern = match focus.strip_prefix('/') {
                Some(regex) => Pattern::regex(regex.trim_end_matches('/'), false).unwrap(),
                None => Pattern::glob(focus),
            };
            for focus in [
                vec![pattern.clone()],
                vec![pattern.clone(), pattern.clone()],
            ] {
                let options = TreeOptions {
                    focus,
                    min: Share(0.0),
                    ..TreeOptions::default()
                };
                let report = tree(scope, &options);
                assert_tree(name, &report.nodes);
                assert_tree(name, &report.callers);
                let inside = report.focus_total.unwrap();
                assert!(inside.bytes.value <= report.total.bytes.value * (1.0 + 1e-9));
                // What the focus allocates itself, or where the program enters it, has no node.
                for nodes in [&report.nodes, &report.callers] {
                    let tops = tops(nodes);
                    assert!(
                        tops.bytes.value <= inside.bytes.value * (1.0 + 1e-9),
                        "{name}"
                    );
                    assert!(tops.samples <= inside.samples, "{name}");
                }
            }
        }
    });
}

#[test]
fn hidden_functions_keep_their_memory() {
    for_each_scope(|name, scope| {
        for pattern in ["*", "*Module1*", "*f1*", "0x*"] {
            let look = Look {
                hide: vec![Pattern::glob(pattern)],
                ..Look::default()
            };
            let bytes = scope.total().bytes.value;
            let options = HotspotOptions {
                look: look.clone(),
                rows: usize::MAX,
                ..HotspotOptions::default()
            };
            let table = hotspots(scope, &options);
            let rows = sum(table.rows.iter().map(|row| &row.own.allocated));
            close(name, rows.bytes.value, bytes);
            for row in &table.rows {
                assert!(
                    !Pattern::glob(pattern).matches(&row.label.name)
                        || ["(unknown)", "(no own code)"].contains(&&*row.label.name)
                );
            }
            for direction in [Direction::TopDown, Direction::BottomUp] {
                for by in [GroupBy::Function, GroupBy::File] {
                    let options = TreeOptions {
                        by,
                        look: look.clone(),
                        bottom_up: direction == Direction::BottomUp,
                        min: Share(0.0),
                        ..TreeOptions::default()
                    };
                    let report = tree(scope, &options);
                    assert_tree(name, &report.nodes);
                    close(name, tops(&report.nodes).bytes.value, bytes);
                }
            }
        }
    });
}

#[test]
fn recursion_does_not_change_totals() {
    for (name, bytes) in odd_traces() {
        let profile = load(
            &bytes,
            StoreOptions {
                recursion: Recursion::OnDemand,
            },
        );
        let from_the_start = load(
            &bytes,
            StoreOptions {
                recursion: Recursion::Keep,
            },
        );
        let [collapsed, kept] = [false, true].map(|keep| {
            Scope::new(&profile, &Query::default(), Estimator::default()).keep_recursion(keep)
        });
        close(
            &name,
            collapsed.total().bytes.value,
            kept.total().bytes.value,
        );
        let table = |scope: &Scope<'_>| {
            let options = HotspotOptions {
                rows: usize::MAX,
                sort: SortBy::Inclusive,
                ..HotspotOptions::default()
            };
            let mut rows: Vec<_> = hotspots(scope, &options)
                .rows
                .into_iter()
                .map(|row| (row.label, row.own.allocated, row.inclusive))
                .collect();
            rows.sort_by(|a, b| a.0.cmp(&b.0));
            rows
        };
        let (collapsed_rows, kept_rows) = (table(&collapsed), table(&kept));
        assert_eq!(collapsed_rows.len(), kept_rows.len(), "{name}");
        for (a, b) in collapsed_rows.iter().zip(&kept_rows) {
            assert_eq!(a.0, b.0, "{name}");
            same(&name, &a.1, &b.1);
            same(&name, &a.2.unwrap(), &b.2.unwrap());
        }
        for direction in [Direction::TopDown, Direction::BottomUp] {
            let options = TreeOptions {
                bottom_up: direction == Direction::BottomUp,
                min: Share(0.0),
                ..TreeOptions::default()
            };
            let report = tree(&kept, &options);
            assert_tree(&name, &report.nodes);
            let from_the_start =
                Scope::new(&from_the_start, &Query::default(), Estimator::default());
            assert_eq!(tree(&from_the_start, &options), report, "{name}");
            close(
                &name,
                tops(&report.nodes).bytes.value,
                kept.total().bytes.value,
            );
        }
    }
}

/// A hundred thousand calls are a kilobyte of a trace, and were as many rows.
#[test]
fn the_depth_of_recursion_that_is_kept_is_limited() {
    const CALLS: usize = 100_000;
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    let block = Block {
        length: 3,
        samples: 1,
        source: Source::Minor,
    };
    let named = |_: u64, frames: &mut FrameSink<'_>| {
        frames.push(Frame {
            file: b"x.ml",
            name: b"f",
            line: 1,
            start_char: 2,
            end_char: 3,
        });
    };
    let stack = vec![7; CALLS];
    writer.alloc(0, 1, 0, block, &stack, named).unwrap();
    let bytes = writer.finish().unwrap();
    assert!(bytes.len() < 5000);
    let recursion = Recursion::Keep;
    let profile = load(&bytes, StoreOptions { recursion });
    let scope = Scope::new(&profile, &Query::default(), Estimator::default()).keep_recursion(true);
    for bottom_up in [false, true] {
        let nodes = |depth| {
            let options = TreeOptions {
                bottom_up,
                depth,
                ..TreeOptions::default()
            };
            let tree = tree(&scope, &options);
            assert_tree("recursion", &tree.nodes);
            close(
                "recursion",
                tops(&tree.nodes).bytes.value,
                tree.total.bytes.value,
            );
            tree.nodes.len()
        };
        assert_eq!(nodes(None), 1001, "the last one stands for all below");
        assert_eq!(nodes(Some(2000)), 2001);
    }
}
