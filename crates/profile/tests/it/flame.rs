//! Trees in columns, of as many nodes as a page can draw.

use heapline_formats::{Options, Reader};
use heapline_profile::query::Pattern;
use heapline_profile::reports::{Direction, FlameOptions, TreeOptions, flame, tree};
use heapline_profile::{Estimator, Profile, Query, Scope, Share, StoreOptions};
use heapline_testkit::fixtures;

/// The threshold is doubled until the tree is small enough; the tree is then the one of that
/// threshold, to the last digit.
#[test]
fn the_threshold_is_the_first_at_which_the_tree_is_small_enough() {
    for name in ["mix-ocaml53/trace.ctf", "generated/domains.ctf"] {
        let mut reader = Reader::open(fixtures::folder().join(name), Options::default()).unwrap();
        let profile = Profile::load(&mut reader, StoreOptions::default()).unwrap();
        let scope = Scope::new(&profile, &Query::default(), Estimator::default());
        let directions = [Direction::TopDown, Direction::BottomUp];
        let focus = [vec![], vec![Pattern::glob("*.*")]];
        for (direction, focus) in directions
            .into_iter()
            .flat_map(|direction| focus.clone().map(|focus| (direction, focus)))
        {
            for threshold in [0.0, 0.001] {
                for max_nodes in [0, 1, 10, 50, 200, 1000, usize::MAX] {
                    let mut options = TreeOptions {
                        bottom_up: direction == Direction::BottomUp,
                        focus: focus.clone(),
                        min: Share(threshold),
                        details: true,
                        ..TreeOptions::default()
                    };
                    let found = flame(
                        &scope,
                        &FlameOptions {
                            tree: options.clone(),
                            max_nodes,
                        },
                    );
                    let mut expected = tree(&scope, &options);
                    while expected.nodes.len() + expected.callers.len() > max_nodes
                        && options.min.0 < 1.0
                    {
                        options.min = Share((options.min.0 * 2.0).max(1e-6));
                        expected = tree(&scope, &options);
                    }
                    let what = format!("{name} {direction:?} {threshold} {max_nodes}");
                    assert!(found.min.total_cmp(&options.min.0).is_eq(), "{what}");
                    let bytes = |nodes: &[heapline_profile::reports::TreeNode]| -> Vec<f64> {
                        nodes.iter().map(|node| node.total.bytes.value).collect()
                    };
                    assert_eq!(found.nodes.bytes, bytes(&expected.nodes), "{what}");
                    assert_eq!(found.callers.bytes, bytes(&expected.callers), "{what}");
                }
            }
        }
    }
}
