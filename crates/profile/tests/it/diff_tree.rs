//! Comparisons as call trees, against the trees of both sides.

use std::collections::HashMap;

use heapline_formats::{Options, Reader};
use heapline_profile::query::Window;
use heapline_profile::reports::{
    Compared, Comparison, DiffSides, DiffTree, DiffTreeOptions, NodeKind, Normalise, TreeOptions,
    diff_tree, tree,
};
use heapline_profile::{Estimator, GroupBy, Profile, Query, Scope, Share, StoreOptions};
use heapline_testkit::fixtures;

fn load(name: &str) -> Profile {
    let mut reader = Reader::open(fixtures::folder().join(name), Options::default()).unwrap();
    Profile::load(&mut reader, StoreOptions::default()).unwrap()
}

fn scope(profile: &Profile) -> Scope<'_> {
    Scope::new(profile, &Query::default(), Estimator::default())
}

fn windows<'a>(scope: &Scope<'a>, texts: [&str; 2], sides: &DiffSides) -> Comparison<'a> {
    let [before, after] = texts.map(|text| Window::parse(text).unwrap());
    sides.of_windows(scope, &before, &after).unwrap()
}

/// Bytes and errors by the names on the way to a node.
type Paths = HashMap<Vec<String>, [f64; 2]>;

fn paths_of_tree(scope: &Scope<'_>, by: GroupBy) -> Paths {
    let options = TreeOptions {
        by,
        min: Share(0.0),
        ..TreeOptions::default()
    };
    let nodes = tree(scope, &options).nodes;
    let mut paths: Vec<Vec<String>> = Vec::new();
    for node in &nodes {
        assert_ne!(node.kind, NodeKind::Other);
        let mut path = node.parent.map_or_else(Vec::new, |i| paths[i].clone());
        path.push(format!("{:?}", node.label));
        paths.push(path);
    }
    let figures = nodes.iter().map(|node| node.total.bytes);
    paths
        .into_iter()
        .zip(figures.map(|bytes| [bytes.value, bytes.error]))
        .collect()
}

fn paths_of_changes(tree: &DiffTree) -> Vec<Vec<String>> {
    let mut paths: Vec<Vec<String>> = Vec::new();
    for (&parent, &label) in tree.nodes.parent.iter().zip(&tree.nodes.label) {
        let mut path = usize::try_from(parent).map_or_else(|_| Vec::new(), |i| paths[i].clone());
        let label = usize::try_from(label).expect("no merged nodes");
        path.push(format!("{:?}", tree.labels[label]));
        paths.push(path);
    }
    paths
}

fn close(what: &str, found: f64, expected: f64) {
    let most = 1e-9 * expected.abs().max(1.0);
    assert!(
        (found - expected).abs() <= most,
        "{what}: {found} {expected}"
    );
}

/// Every node has the amount of the tree before, and that of the tree after times the factor.
fn check(sides: &Comparison<'_>, by: GroupBy) -> DiffTree {
    let options = DiffTreeOptions {
        by,
        min: Share(0.0),
        ..DiffTreeOptions::default()
    };
    let found = diff_tree(sides, &options);
    let [mut before, mut after] = [&sides.before, &sides.after].map(|one| paths_of_tree(one, by));
    for (i, path) in paths_of_changes(&found).into_iter().enumerate() {
        let what = format!("{path:?}");
        let [value, error] = before.remove(&path).unwrap_or_default();
        close(&what, found.nodes.before[i], value);
        close(&what, found.nodes.before_error[i], error);
        let [value, error] = after.remove(&path).unwrap_or_default();
        close(&what, found.nodes.after[i], sides.scale * value);
        close(&what, found.nodes.after_error[i], sides.scale * error);
        let change = found.nodes.after[i] - found.nodes.before[i];
        close(&what, found.nodes.change[i], change);
    }
    assert!(before.is_empty() && after.is_empty(), "nodes are missing");
    let real = found.nodes.is_real.iter().filter(|&&is_real| is_real);
    assert_eq!(real.count(), found.real_changes);
    found
}

#[test]
fn nodes_of_two_traces_are_merged_by_name() {
    let (old, new) = (
        load("mix-ocaml413/trace.ctf"),
        load("mix-ocaml53/trace.ctf"),
    );
    for by in [GroupBy::Function, GroupBy::Site, GroupBy::Module] {
        for (of, per) in [
            (Compared::Allocated, None),
            (Compared::End, Some(Normalise::Allocated)),
            (Compared::Peak, Some(Normalise::Time)),
        ] {
            let sides = DiffSides {
                of,
                per,
                ..DiffSides::default()
            };
            let sides = sides.of_traces(scope(&old), scope(&new));
            let found = check(&sides, by);
            assert_eq!(per.is_none(), (found.scale - 1.0).abs() < 1e-12);
        }
    }
    let sides = DiffSides {
        of: Compared::End,
        ..DiffSides::default()
    };
    let sides = sides.of_traces(scope(&old), scope(&new));
    assert!(check(&sides, GroupBy::Function).real_changes > 0);
}

#[test]
fn blocks_in_both_windows_cancel_out() {
    let profile = load("mix-ocaml53/trace.ctf");
    let sides = DiffSides {
        of: Compared::End,
        ..DiffSides::default()
    };
    let at_ends = windows(&scope(&profile), ["..50%", ".."], &sides);
    let found = check(&at_ends, GroupBy::Function);
    let changes = found.nodes.change_error.iter();
    for (i, &error) in changes.enumerate() {
        let apart = found.nodes.before_error[i].hypot(found.nodes.after_error[i]);
        assert!(error <= apart + 1e-6);
    }
    let same = Comparison::unscaled(scope(&profile), scope(&profile));
    let found = check(&same, GroupBy::Function);
    assert_eq!(found.real_changes, 0);
    assert!(found.nodes.change_error.iter().all(|&error| error < 1e-6));
}

#[test]
fn windows_of_different_lengths_are_compared_by_time() {
    let profile = load("mix-ocaml53/trace.ctf");
    let scope = scope(&profile);
    let sides = DiffSides::default();
    let uneven = windows(&scope, ["..25%", "25%.."], &sides);
    assert_eq!(uneven.per, Normalise::Time);
    assert!((uneven.scale - 1.0 / 3.0).abs() < 1e-3, "{}", uneven.scale);
    check(&uneven, GroupBy::Function);
    let even = windows(&scope, ["..50%", "50%.."], &sides);
    assert_eq!(even.per, Normalise::None);
    let as_is = DiffSides {
        per: Some(Normalise::None),
        ..DiffSides::default()
    };
    let uneven = windows(&scope, ["..25%", "25%.."], &as_is);
    close("scale", uneven.scale, 1.0);
    // What is live at a time does not depend on the length of a window.
    let live = DiffSides {
        of: Compared::End,
        ..DiffSides::default()
    };
    let uneven = windows(&scope, ["..25%", "25%.."], &live);
    assert_eq!(uneven.per, Normalise::None);
    let by_allocation = DiffSides {
        per: Some(Normalise::Allocated),
        ..DiffSides::default()
    };
    let uneven = windows(&scope, ["..25%", "25%.."], &by_allocation);
    let found = check(&uneven, GroupBy::Function);
    close(
        "total",
        found.total.after.bytes.value,
        found.total.before.bytes.value,
    );
}

#[test]
fn small_nodes_are_merged_and_nothing_is_lost() {
    let (old, new) = (
        load("mix-ocaml413/trace.ctf"),
        load("mix-ocaml53/trace.ctf"),
    );
    let sides = Comparison::unscaled(scope(&old), scope(&new));
    for max_nodes in [1, 5, 20, 100_000] {
        let options = DiffTreeOptions {
            min: Share(0.02),
            max_nodes,
            ..DiffTreeOptions::default()
        };
        let found = diff_tree(&sides, &options);
        assert!(found.nodes.parent.len() <= max_nodes.max(2));
        for (amounts, total) in [
            (&found.nodes.before, found.total.before),
            (&found.nodes.after, found.total.after),
        ] {
            let roots = amounts.iter().zip(&found.nodes.parent);
            let roots = roots.filter(|(_, parent)| **parent < 0);
            let sum: f64 = roots.map(|(amount, _)| amount).sum();
            close("roots", sum, total.bytes.value);
        }
    }
}
