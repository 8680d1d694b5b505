//! Dominators, against their definition.

use heapline_heap::Dominators;
use heapline_testkit::property_config;
use proptest::collection::vec;
use proptest::prelude::*;

/// Edges by source, with the ends of each source's.
fn rows(nodes: u32, edges: &[(u32, u32)]) -> (Vec<u32>, Vec<u32>) {
    let (mut first, mut targets) = (vec![0], Vec::new());
    for node in 0..nodes {
        targets.extend(
            edges
                .iter()
                .filter(|edge| edge.0 == node)
                .map(|edge| edge.1),
        );
        first.push(u32::try_from(targets.len()).unwrap());
    }
    (first, targets)
}

/// The nodes that can be reached from node 0 without passing another one.
fn reached(nodes: u32, edges: &[(u32, u32)], without: Option<u32>) -> Vec<bool> {
    let mut reached = vec![false; nodes as usize];
    if without != Some(0) {
        reached[0] = true;
    }
    loop {
        let mut grew = false;
        for &(from, to) in edges {
            if reached[from as usize] && !reached[to as usize] && without != Some(to) {
                reached[to as usize] = true;
                grew = true;
            }
        }
        if !grew {
            return reached;
        }
    }
}

/// By definition: a node dominates all that cannot be reached without it.
fn plain_dominators(nodes: u32, edges: &[(u32, u32)]) -> Vec<Option<u32>> {
    let all = reached(nodes, edges, None);
    let dominated: Vec<Vec<bool>> = (0..nodes)
        .map(|node| {
            let left = reached(nodes, edges, Some(node));
            all.iter()
                .zip(left)
                .map(|(all, left)| *all && !left)
                .collect()
        })
        .collect();
    let is_strict = |d: u32, n: u32| d != n && dominated[d as usize][n as usize];
    (0..nodes)
        .map(|node| {
            // The one that is dominated by all others.
            (0..nodes).find(|&d| {
                all[node as usize]
                    && is_strict(d, node)
                    && (0..nodes)
                        .all(|other| other == d || !is_strict(other, node) || is_strict(other, d))
            })
        })
        .collect()
}

proptest! {
    #![proptest_config(property_config(1500))]

    #[test]
    fn dominators_are_those_of_the_definition(
        (nodes, edges) in (1..25_u32).prop_flat_map(|n| (Just(n), vec((0..n, 0..n), 0..60)))
    ) {
        let (first, targets) = rows(nodes, &edges);
        let dominators = Dominators::new(0, &first, &targets);
        let found: Vec<Option<u32>> = (0..nodes).map(|node| dominators.dominator(node)).collect();
        prop_assert_eq!(found, plain_dominators(nodes, &edges));
        for (number, &dominator) in dominators.numbers_of_dominators().iter().enumerate().skip(1) {
            prop_assert!((dominator as usize) < number);
        }
    }
}

#[test]
fn a_list_of_a_million_cells_needs_no_stack() {
    let n = 1_000_000;
    // Each cell also refers to the first one, and the first one to the last.
    let mut first = vec![0];
    let mut targets = Vec::new();
    for node in 0..n {
        targets.push((node + 1) % n);
        targets.push(if node == 0 { n - 1 } else { 0 });
        first.push(u32::try_from(targets.len()).unwrap());
    }
    let dominators = Dominators::new(0, &first, &targets);
    assert_eq!(dominators.len(), n as usize);
    assert_eq!(dominators.dominator(n / 2), Some(n / 2 - 1));
    assert_eq!(dominators.dominator(n - 1), Some(0));
}
