//! Reports on a snapshot whose every block is known.

use heapline_heap::reports::{
    DominatorsOptions, FindingsOptions, HeapError, RetainedBy, RetainedOptions, WhyOptions, diff,
    dominators, findings, info, retained, why,
};
use heapline_heap::{Field, Graph, Heap, Kind};
use heapline_heapfile::{FactKind, Folded, RootKind};
use heapline_profile::Share;
use heapline_profile::query::Pattern;
use heapline_testkit::heap::{Snapshot, server, server_after};

fn load(snapshot: &Snapshot) -> Heap {
    Heap::read(&snapshot.finish()[..]).unwrap()
}

fn by(by: RetainedBy) -> RetainedOptions {
    RetainedOptions {
        by,
        ..RetainedOptions::default()
    }
}

#[test]
fn rows_by_root_module_and_definition_add_up() {
    let heap = load(&server());
    for group in [RetainedBy::Root, RetainedBy::Module, RetainedBy::Definition] {
        let report = retained(&heap, &by(group)).unwrap();
        let sum: u64 = report.rows.iter().map(|row| row.retained.bytes).sum();
        assert_eq!(sum, heap.total().bytes, "{group:?}");
        let blocks: u64 = report.rows.iter().map(|row| row.retained.blocks).sum();
        assert_eq!(blocks, heap.total().blocks, "{group:?}");
        let reached = report.rows.iter().filter_map(|row| row.reached);
        let sum: u64 = reached.map(|reached| reached.bytes).sum();
        assert_eq!(sum, heap.total().bytes, "{group:?}");
    }
}

/// Two definitions and a stack that share a large block, which is nearer to the second one.
fn shared() -> Snapshot {
    let mut snapshot = Snapshot::default();
    let large = snapshot.block(252, 1000);
    let holder = snapshot.filled(0, 1, &[large]);
    let module = snapshot.module("camlCache", &[holder, large]);
    snapshot.definition(module, 0, "far", "cache.ml", 1);
    snapshot.definition(module, 1, "near", "cache.ml", 2);
    let frame = snapshot.frame("camlServer__loop_1", "server.ml", 9);
    snapshot.stack("main");
    // The stack refers to the module, so that it is not below the group of modules.
    snapshot.root(RootKind::Stack, module, frame, 0);
    snapshot
}

#[test]
fn shared_memory_is_reached_by_the_nearest_definition() {
    let heap = load(&shared());
    let report = retained(&heap, &by(RetainedBy::Definition)).unwrap();
    let rows: Vec<_> = report
        .rows
        .iter()
        .map(|row| {
            (
                row.name.as_str(),
                row.retained.bytes,
                row.reached.unwrap().bytes,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("(several definitions of module Cache)", 8008, 0),
            ("Cache.near", 0, 8008),
            ("module Cache", 24, 24),
            ("Cache.far", 16, 16),
            ("Server.loop (stack of main)", 0, 0),
        ]
    );
    let options = RetainedOptions {
        rows: 1,
        ..RetainedOptions::default()
    };
    let report = retained(&heap, &options).unwrap();
    assert_eq!(report.hidden.bytes, 40);
    assert_eq!(report.hidden_reached.unwrap().bytes, 8048);
    // Values have no row of their own in that tree.
    let report = retained(&heap, &by(RetainedBy::Kind)).unwrap();
    assert!(report.rows.iter().all(|row| row.reached.is_none()));
    assert_eq!(report.hidden_reached, None);
}

#[test]
fn definitions_retain_what_only_they_reach() {
    let heap = load(&server());
    let report = retained(&heap, &RetainedOptions::default()).unwrap();
    let bytes = |name: &str| {
        let row = report.rows.iter().find(|row| row.name == name);
        row.unwrap_or_else(|| panic!("{name}")).retained.bytes
    };
    // Two views with 6 words, a tuple with 2, and a megabyte that they share.
    assert_eq!(bytes("Server.images"), (1 << 20) + (2 * 7 + 3) * 8);
    // Both closures refer to the string.
    assert_eq!(bytes("Server.handle"), 5 * 8);
    assert_eq!(bytes("(several definitions of module Server)"), 2001 * 8);
    // The data of the ephemeron lives as long as its key.
    assert_eq!(bytes("Server.options"), (5 * 3 + 5 * 4 + 901) * 8);
    assert_eq!(bytes("Server.loop (stack of main)"), (501 + 6) * 8);
    assert_eq!(bytes("values with finalisers"), 701 * 8);
    assert_eq!(bytes("Server field 2"), 5 * 8);
    assert_eq!(report.rows[0].name, "Server.images");
    assert_eq!(report.rows[1].place.as_deref(), Some("cache.ml:12"));
}

#[test]
fn the_dominator_tree_has_what_retained_says() {
    let heap = load(&server());
    let options = DominatorsOptions {
        min: Share(0.0),
        ..DominatorsOptions::default()
    };
    let tree = dominators(&heap, &options);
    let below = |at: Option<usize>| {
        let children = tree.nodes.iter().filter(move |node| node.parent == at);
        children.map(|node| node.retained.bytes).sum::<u64>()
    };
    assert_eq!(below(None), heap.total().bytes);
    for (at, node) in tree.nodes.iter().enumerate() {
        assert_eq!(
            node.own.bytes + below(Some(at)),
            node.retained.bytes,
            "{node:?}"
        );
        assert!(
            node.parent
                .is_none_or(|parent| parent < at && tree.nodes[parent].depth + 1 == node.depth)
        );
        let before = tree.nodes[..at]
            .iter()
            .rev()
            .find(|other| other.parent == node.parent);
        assert!(before.is_none_or(|other| other.retained.bytes >= node.retained.bytes));
    }
    let report = retained(&heap, &RetainedOptions::default()).unwrap();
    for row in report.rows.iter().filter(|row| row.place.is_some()) {
        let node = tree
            .nodes
            .iter()
            .find(|node| node.name == row.name)
            .unwrap();
        assert_eq!((node.retained, &node.place), (row.retained, &row.place));
    }

    // What is merged is not lost.
    let options = DominatorsOptions {
        min: Share(0.1),
        depth: Some(3),
    };
    let small = dominators(&heap, &options);
    assert!(small.nodes.len() < 10 && small.nodes.iter().all(|node| node.depth <= 3));
    let roots = small.nodes.iter().filter(|node| node.parent.is_none());
    assert_eq!(
        roots.map(|node| node.retained.bytes).sum::<u64>(),
        heap.total().bytes
    );
    assert!(
        small
            .nodes
            .iter()
            .any(|node| node.kind.is_none() && node.values > 0)
    );
}

#[test]
fn paths_lead_from_definitions_to_values() {
    let heap = load(&server());
    let options = WhyOptions {
        kind: Some(Pattern::glob("string")),
        depth: 8,
        ..WhyOptions::default()
    };
    let report = why(&heap, &options, None).unwrap();
    let paths: Vec<String> = report
        .rows
        .iter()
        .map(|row| {
            let names: Vec<&str> = row.path.iter().map(|step| step.name.as_str()).collect();
            names.join(" > ")
        })
        .collect();
    assert_eq!(
        paths[0],
        "Cache.table > Hashtbl.t > array of 512 > Hashtbl binding > record or tuple of 3 > string"
    );
    assert!(
        paths.contains(&"Server.out > Buffer.t > string 65,536 B".to_owned()),
        "{paths:?}"
    );
    assert!(
        paths.contains(&"Server.options > list of 5 > string".to_owned()),
        "{paths:?}"
    );
    let sum: u64 = report.rows.iter().map(|row| row.selected.bytes).sum();
    assert_eq!(sum + report.hidden.bytes, report.selected.bytes);
}

#[test]
fn what_a_name_holds_is_what_it_retains() {
    let heap = load(&server());
    let options = WhyOptions {
        held_by: Some(Pattern::glob("Server.images")),
        ..WhyOptions::default()
    };
    let report = why(&heap, &options, None).unwrap();
    let retained = heap.retained(heap.nodes_named("Server.images").next().unwrap());
    assert_eq!(report.selected, retained);
    let options = WhyOptions {
        held_by: Some(Pattern::glob("Serve.images")),
        ..WhyOptions::default()
    };
    let error = why(&heap, &options, None).unwrap_err();
    assert_eq!(error.to_string(), "the snapshot has no `Serve.images`");
}

#[test]
fn paths_through_a_row_lead_to_what_it_reaches() {
    for heap in [load(&server()), load(&shared())] {
        let report = retained(&heap, &by(RetainedBy::Definition)).unwrap();
        // The rows of modules are what their definitions do not reach.
        let definitions = report.rows.iter().filter(|row| row.name.contains('.'));
        let reached: Vec<_> = definitions
            .filter_map(|row| Some((row, row.reached?)))
            .collect();
        assert!(reached.len() > 1);
        for (row, reached) in reached {
            let options = WhyOptions {
                through: Some(Pattern::glob(&row.name)),
                ..WhyOptions::default()
            };
            let report = why(&heap, &options, None).unwrap();
            assert_eq!(report.selected, reached, "{}", row.name);
        }
    }
}

#[test]
fn drilling_down_follows_names() {
    let heap = load(&server());
    let at = |path: &str| {
        let options = RetainedOptions {
            at: Some(path.to_owned()),
            ..RetainedOptions::default()
        };
        retained(&heap, &options)
    };
    let report = at("Cache.table > Hashtbl.t > array").unwrap();
    assert_eq!(report.at.len(), 3);
    let sum: u64 = report.rows.iter().map(|row| row.retained.bytes).sum();
    assert_eq!(sum, report.retained.bytes);
    assert_eq!(report.rows[0].name, "Hashtbl binding");
    assert_eq!(
        at("Cache.table > list").unwrap_err(),
        HeapError::NotFound {
            name: "list".to_owned(),
            place: " below `Cache.table`".to_owned()
        }
    );
}

#[test]
fn growth_is_found_by_name() {
    let (before, after) = (load(&server()), load(&server_after(3000)));
    let report = diff(&before, &after, 20);
    let change = i64::try_from(after.total().bytes - before.total().bytes).unwrap();
    assert_eq!(report.rows[0].path[0].name, "Cache.table");
    assert_eq!(report.rows.iter().map(|row| row.bytes).sum::<i64>(), change);
    let same = diff(&before, &load(&server()), 20);
    assert!(same.rows.is_empty());
}

#[test]
fn another_reference_to_a_block_is_no_growth() {
    let build = |is_shared: bool| {
        let mut snapshot = Snapshot::default();
        let large = snapshot.block(252, 1000);
        let held = if is_shared { vec![large] } else { Vec::new() };
        let holder = snapshot.filled(0, 2, &held);
        let module = snapshot.module("camlCache", &[large, holder]);
        snapshot.definition(module, 0, "table", "cache.ml", 1);
        load(&snapshot)
    };
    let report = diff(&build(false), &build(true), 20);
    assert_eq!(report.rows, []);
}

#[test]
fn waste_is_found() {
    let heap = load(&server());
    let report = findings(&heap, &FindingsOptions::default());
    // The type of each of the 1,000 answers, 2 words and a header.
    assert_eq!(report.duplicate_strings.bytes, 999 * 24);
    assert_eq!(
        report.duplicate_strings.rows[0].held_by.as_deref(),
        Some("Cache.table")
    );
    assert_eq!(report.sparse_buffers.bytes, 65528 - 1000);
    assert_eq!(report.sparse_tables.values, 0);
    assert_eq!(report.finalisers.bytes, 701 * 8);
    assert_eq!(report.continuations.rows[0].name, "waiting in Server.loop");
    assert_eq!(
        report.continuations.rows[0].held_by.as_deref(),
        Some("C roots")
    );
    assert_eq!(report.ephemerons.bytes, 901 * 8);
}

/// Three ephemerons: the data of the first holds that of the second, and the third has the data of the first.
#[test]
fn memory_of_nested_ephemerons_counts_once() {
    let mut snapshot = Snapshot::default();
    let inner = snapshot.block(252, 1000);
    let outer = snapshot.filled(0, 1, &[inner]);
    let keys = [snapshot.block(252, 1), snapshot.block(252, 2)];
    let ephemerons = [(); 3].map(|()| snapshot.block(251, 3));
    snapshot.module("camlM", &[&keys[..], &ephemerons].concat());
    snapshot.ephemeron(ephemerons[0], Some(outer), &keys[..1]);
    snapshot.ephemeron(ephemerons[1], Some(inner), &keys[..1]);
    snapshot.ephemeron(ephemerons[2], Some(outer), &keys[..1]);
    let heap = load(&snapshot);
    let report = findings(&heap, &FindingsOptions::default()).ephemerons;
    assert_eq!((report.values, report.bytes), (3, (1001 + 2) * 8));
    assert!(report.bytes <= heap.total().bytes);
}

#[test]
fn static_data_is_not_taken_for_lost_blocks() {
    let mut snapshot = Snapshot::default();
    let fixed = snapshot.block(252, 10);
    let value = snapshot.block(252, 20);
    snapshot.module("camlCache", &[fixed, value]);
    snapshot.fact(FactKind::Static, fixed, 10, 0);
    let heap = load(&snapshot);
    assert_eq!(heap.total().bytes, (21 + 3) * 8);
    let (stated, found) = heap.graph().totals();
    assert_eq!(stated, found);
}

#[test]
fn folded_blocks_count() {
    let mut snapshot = Snapshot::default();
    let list = snapshot.block(0, 2);
    let folded = Folded {
        cells: 99,
        others: 100,
        words: 99 * 2 + 100 * 3,
    };
    snapshot.fold(list, folded);
    snapshot.module("camlM", &[list]);
    let heap = load(&snapshot);
    let node = heap.nodes_named("list").next().unwrap();
    assert_eq!(heap.own(node).blocks, 200);
    let report = why(&heap, &WhyOptions::default(), None).unwrap();
    assert_eq!(report.rows[0].path[1].name, "list of 100");
    assert_eq!(report.subject.folded, 199);
    assert_eq!(heap.own(node).bytes, (100 * 3 + 100 * 4) * 8);
    let (stated, found) = heap.graph().totals();
    assert_eq!(stated, found);
    assert_eq!(stated.blocks, 201);
}

#[test]
fn info_counts_what_the_dominators_hold() {
    let heap = load(&server());
    let info = info(heap.graph());
    assert_eq!(info.subject.total, heap.total());
    let (stated, _) = heap.graph().totals();
    let bytes: u64 = info.tags.iter().map(|row| row.amount.bytes).sum();
    assert_eq!(bytes, stated.bytes);
    assert_eq!(
        bytes - info.fixed.bytes,
        info.subject.total.bytes - info.outside
    );
    assert!(
        info.tags
            .is_sorted_by_key(|row| std::cmp::Reverse(row.amount.bytes))
    );
}

#[test]
fn references_to_nothing_are_damage() {
    let mut snapshot = Snapshot::default();
    let value = snapshot.block(0, 2);
    let text = snapshot.block(252, 1);
    snapshot.refer(value, 1, text);
    snapshot.module("camlM", &[value]);
    snapshot.root(RootKind::Stack, value, 99, 99);
    let file = snapshot.finish();
    let graph = Graph::read(&file[..]).unwrap();
    assert_eq!(graph.damage().total(), 0);
    // The reference is the only field with a distance of 3 words.
    let node = graph.find(snapshot.address(value)).unwrap();
    assert_eq!(graph.edges(node).next().unwrap().0, Field::Number(1));

    let mut snapshot = Snapshot::default();
    let value = snapshot.block(0, 2);
    snapshot.module("camlM", &[value]);
    snapshot.ephemeron(value, None, &[value]);
    snapshot.fact(FactKind::External, value, 100, 0);
    let heap = load(&snapshot);
    assert_eq!(heap.graph().damage().total(), 0);
    assert_eq!(heap.class(0).kind, Kind::Record);
    assert_eq!(heap.own(0).bytes, 124);
}

#[test]
fn a_list_of_a_million_cells_is_one_name() {
    let mut snapshot = Snapshot::default();
    let item = snapshot.block(252, 1);
    let list = snapshot.list(&vec![item; 1_000_000]);
    snapshot.module("camlM", &[list]);
    let heap = load(&snapshot);
    let report = why(&heap, &WhyOptions::default(), None).unwrap();
    let names: Vec<&str> = report.rows[0]
        .path
        .iter()
        .map(|step| step.name.as_str())
        .collect();
    assert_eq!(names, ["M field 0", "list of 1,000,000"]);
    assert_eq!(report.rows[0].selected.blocks, 1_000_000);
}
