//! Damaged snapshots: an error, or a report that adds up.

use heapline_heap::reports::{
    FindingsOptions, RetainedBy, RetainedOptions, WhyOptions, diff, findings, retained, why,
};
use heapline_heap::{Heap, read_properties};
use heapline_heapfile::{Writer, compress};
use heapline_testkit::heap::{server_after, without_checksums};
use heapline_testkit::property_config;
use proptest::collection::vec;
use proptest::prelude::*;

/// Files beside a trace are looked at although nobody asked for them.
#[test]
fn a_property_is_not_looked_for_in_a_large_section() {
    let file = |trace: &str| {
        let mut file = Vec::new();
        let writer = Writer::new(&mut file, &[("trace", trace)]).unwrap();
        writer.finish(&[]).unwrap();
        file
    };
    let found = read_properties(&file("a.ctf")[..], ["trace", "pid"]).unwrap();
    assert_eq!(found, [Some("a.ctf".to_owned()), None]);
    let mut packed = Vec::new();
    compress(&file(&"a".repeat(1 << 20))[..], &mut packed).unwrap();
    assert!(packed.len() < 1000);
    read_properties(&packed[..], ["trace"]).unwrap_err();
}

proptest! {
    #![proptest_config(property_config(500))]

    #[test]
    fn damage_is_an_error_or_adds_up(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)
    ) {
        let mut file = without_checksums(&server_after(20).finish());
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        let Ok(heap) = Heap::read(&file[..]) else {
            return Ok(());
        };
        for by in [RetainedBy::Root, RetainedBy::Module, RetainedBy::Definition] {
            let options = RetainedOptions { by, ..RetainedOptions::default() };
            let report = retained(&heap, &options).unwrap();
            let rows = report.rows.iter().map(|row| row.retained.blocks);
            prop_assert_eq!(rows.fold(report.hidden.blocks, u64::saturating_add), heap.total().blocks);
        }
        let report = why(&heap, &WhyOptions::default(), None).unwrap();
        prop_assert_eq!(report.selected.blocks, heap.total().blocks);
        let _ = findings(&heap, &FindingsOptions::default());
        prop_assert!(diff(&heap, &heap, 20).rows.is_empty());
    }
}
