//! Exports of heap snapshots, read back.

use std::fs::File;
use std::io::Read;

use heapline_export::heap::{devtools, dot, dot_of_path, edges, nodes, pprof};
use heapline_export::pprof::proto;
use heapline_heap::Heap;
use heapline_testkit::heap::server;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use prost::Message;
use serde_json::Value;

fn heap() -> Heap {
    Heap::read(&server().finish()[..]).unwrap()
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(number).collect()
}

/// The format that DevTools expects: see `HeapSnapshotLoader` and `HeapSnapshot` of its front end.
#[test]
fn devtools_can_load_it() {
    let heap = heap();
    let mut file = Vec::new();
    devtools(&heap, &mut file).unwrap();
    let file: Value = serde_json::from_slice(&file).unwrap();
    let meta = &file["snapshot"]["meta"];
    assert_eq!(
        meta["node_fields"],
        serde_json::json!([
            "type",
            "name",
            "id",
            "self_size",
            "edge_count",
            "trace_node_id",
            "detachedness"
        ])
    );
    assert_eq!(
        meta["edge_fields"],
        serde_json::json!(["type", "name_or_index", "to_node"])
    );
    let node_types = meta["node_types"][0].as_array().unwrap().len();
    let edge_types = meta["edge_types"][0].as_array().unwrap();
    for table in ["trace_function_infos", "trace_tree", "samples", "locations"] {
        assert_eq!(file[table], serde_json::json!([]));
    }
    let strings = file["strings"].as_array().unwrap();
    let (nodes, edges) = (numbers(&file["nodes"]), numbers(&file["edges"]));
    assert_eq!(nodes.len(), number(&file["snapshot"]["node_count"]) * 7);
    assert_eq!(edges.len(), number(&file["snapshot"]["edge_count"]) * 3);
    let mut ids = std::collections::HashSet::new();
    let (mut edge_count, mut bytes) = (0, 0);
    for node in nodes.chunks(7) {
        assert!(node[0] < node_types && node[1] < strings.len());
        assert!(ids.insert(node[2]));
        bytes += node[3];
        edge_count += node[4];
    }
    assert_eq!(edge_count * 3, edges.len());
    assert_eq!(bytes, usize::try_from(heap.total().bytes).unwrap());
    // The first node is the root, from which all others can be reached.
    let mut targets: Vec<usize> = Vec::new();
    for edge in edges.chunks(3) {
        let has_name = edge_types[edge[0]] != "element" && edge_types[edge[0]] != "hidden";
        assert!(!has_name || edge[1] < strings.len());
        assert!(edge[2] < nodes.len() && edge[2].is_multiple_of(7));
        targets.push(edge[2]);
    }
    targets.sort_unstable();
    targets.dedup();
    assert_eq!(targets.len(), nodes.len() / 7 - 1);
    assert!(strings.iter().any(|name| name == "Cache.table"));
}

#[test]
fn pprof_has_all_memory_by_path() {
    let heap = heap();
    let mut file = Vec::new();
    pprof(&heap, &mut file).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&file[..])
        .read_to_end(&mut bytes)
        .unwrap();
    let profile = proto::Profile::decode(&bytes[..]).unwrap();
    let sum: i64 = profile.sample.iter().map(|sample| sample.value[1]).sum();
    assert_eq!(u64::try_from(sum).unwrap(), heap.total().bytes);
    let name = |location: u64| {
        let location = profile
            .location
            .iter()
            .find(|found| found.id == location)
            .unwrap();
        let function = location.line[0].function_id;
        let function = profile
            .function
            .iter()
            .find(|found| found.id == function)
            .unwrap();
        profile.string_table[usize::try_from(function.name).unwrap()].clone()
    };
    let stacks: Vec<Vec<String>> = profile
        .sample
        .iter()
        .map(|sample| sample.location_id.iter().map(|id| name(*id)).collect())
        .collect();
    let table = ["Hashtbl binding", "array", "Hashtbl.t", "Cache.table"];
    assert!(stacks.iter().any(|stack| *stack == table), "{stacks:?}");
}

#[test]
fn tables_have_all_nodes_and_references() {
    let heap = heap();
    let rows = |write: &dyn Fn(&File)| {
        let file = tempfile::tempfile().unwrap();
        write(&file);
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let names: Vec<String> = builder
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect();
        let batches = builder.build().unwrap();
        let rows: usize = batches.map(|batch| batch.unwrap().num_rows()).sum();
        (rows, names.join(" "))
    };
    let (count, columns) = rows(&|file| nodes(&heap, file).unwrap());
    assert_eq!(count, heap.dominators().len());
    assert_eq!(
        columns,
        "node dominator address kind name place bytes blocks retained_bytes retained_blocks"
    );
    let (count, columns) = rows(&|file| edges(&heap, file).unwrap());
    assert_eq!(count, heap.graph().csr().1.len());
    assert_eq!(columns, "source target field kind");
}

#[test]
fn graphviz_gets_paths() {
    let heap = heap();
    let table = heap.nodes_named("Hashtbl.t").next().unwrap();
    let mut file = Vec::new();
    dot_of_path(&heap, table, &mut file).unwrap();
    let text = String::from_utf8(file).unwrap();
    assert!(text.contains("Cache.table"), "{text}");
    assert!(text.contains("field 0"), "{text}");
    assert_eq!(text.matches(" -> ").count(), 4, "{text}");
    let mut file = Vec::new();
    dot(&heap, &mut file).unwrap();
    let text = String::from_utf8(file).unwrap();
    assert!(
        text.contains("Server.images") && !text.contains("Server.handle"),
        "{text}"
    );
}
