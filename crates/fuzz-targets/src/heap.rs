//! A heap snapshot: reading, compressing, dominators and all reports.

use heapline_heap::Heap;
use heapline_heap::reports::{
    FindingsOptions, RetainedBy, RetainedOptions, WhyOptions, diff, findings, retained, why,
};
use heapline_heapfile::compress;

/// Runs the target on an input; returns true if it is a snapshot.
#[must_use]
pub fn run(file: &[u8]) -> bool {
    let mut compressed = Vec::new();
    let result = compress(file, &mut compressed);
    let Ok(heap) = Heap::read(file) else {
        return false;
    };
    assert!(result.is_ok(), "what can be read can be compressed");
    let Ok(again) = Heap::read(&compressed[..]) else {
        unreachable!("compression changes nothing");
    };
    assert_eq!(heap.total(), again.total());
    assert!(diff(&heap, &again, 20).rows.is_empty());
    for by in [RetainedBy::Root, RetainedBy::Module, RetainedBy::Definition] {
        let options = RetainedOptions {
            by,
            ..RetainedOptions::default()
        };
        let report = retained(&heap, &options).unwrap();
        let rows = report.rows.iter().map(|row| row.retained.blocks);
        let sum = rows.fold(report.hidden.blocks, u64::saturating_add);
        assert_eq!(sum, heap.total().blocks);
        let reached = report.rows.iter().filter_map(|row| row.reached);
        let hidden = report.hidden_reached.map_or(0, |hidden| hidden.blocks);
        let sum = reached.fold(hidden, |sum, row| sum.saturating_add(row.blocks));
        assert_eq!(sum, heap.total().blocks);
    }
    let _ = why(&heap, &WhyOptions::default(), None);
    let _ = findings(&heap, &FindingsOptions::default());
    true
}
