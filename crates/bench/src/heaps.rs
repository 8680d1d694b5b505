//! Heap snapshots: loading, dominators, reports.

use std::hint::black_box;
use std::time::Instant;

use heapline_heap::reports::{RetainedOptions, WhyOptions, retained, why};
use heapline_heap::{Dominators, Graph, Heap};
use heapline_heapfile::{Edge, Nodes, RootKind, Section, Writer, compress, put_delta, put_varint};
use heapline_testkit::peak_memory;

use crate::Outcome;

/// Loads a snapshot, or a generated one of so many million blocks, and prints how long each step takes.
pub(crate) fn table(which: &str) -> Outcome {
    let (file, blocks) = match which.parse::<u32>() {
        Ok(millions) => {
            let blocks = u64::from(millions) * 1_000_000;
            (snapshot(blocks)?, blocks)
        }
        Err(_) => {
            let file = std::fs::read(which)?;
            let blocks = Graph::read(&file[..])?.blocks();
            (file, blocks.into())
        }
    };
    println!(
        "{:.1} million blocks, {:.0} MB\n",
        blocks as f64 / 1e6,
        file.len() as f64 / 1e6
    );
    println!(
        "{:<16} {:>8} {:>14} {:>12}",
        "", "s", "M blocks/s", "peak MiB"
    );
    let mut small = Vec::new();
    step("compress", blocks, || compress(&file[..], &mut small))?;
    println!("{:<16} {:>8.0} MB", "", small.len() as f64 / 1e6);
    drop(small);
    let graph = step("load", blocks, || Graph::read(&file[..]))?;
    let (first, targets) = graph.csr();
    println!(
        "{:<16} {:>8.1} references per block",
        "",
        targets.len() as f64 / blocks as f64
    );
    let dominators = step("dominators", blocks, || -> Outcome<Dominators> {
        Ok(Dominators::new(graph.root(), first, targets))
    })?;
    black_box(dominators.len());
    drop(dominators);
    let heap = step("heap", blocks, || -> Outcome<Heap> { Ok(Heap::new(graph)) })?;
    step("retained", blocks, || {
        retained(&heap, &RetainedOptions::default())
    })?;
    step("why", blocks, || why(&heap, &WhyOptions::default(), None))?;
    Ok(())
}

fn step<T, E>(name: &str, blocks: u64, run: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let started = Instant::now();
    let result = black_box(run()?);
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{name:<16} {seconds:>8.2} {:>14.1} {:>12}",
        blocks as f64 / 1e6 / seconds,
        peak_memory().unwrap_or(0)
    );
    Ok(result)
}

/// Long lists of records with strings, floats, closures, and maps that share their nodes, as programs without mutation
/// make them: nearly all references are to blocks that were allocated shortly before.
fn snapshot(blocks: u64) -> Outcome<Vec<u8>> {
    /// Blocks of an item of a list: sizes and tags.
    const ITEM: [(u64, u8); 10] = [
        (2, 252),
        (3, 252),
        (6, 252),
        (1, 253),
        (4, 247),
        (5, 0),
        (2, 0),
        (3, 0),
        (2, 255),
        (2, 0),
    ];
    const LISTS: u64 = 4;
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, &[("program", "benchmark")])?;
    let mut nodes = Nodes::default();
    let words: u64 = ITEM.iter().map(|(words, _)| words + 1).sum();
    let address = |item: u64, block: usize| {
        let before: u64 = ITEM[..block].iter().map(|(words, _)| words + 1).sum();
        0x1000 + item * words + before
    };
    let mut random = 1_u64;
    let items = blocks / ITEM.len() as u64;
    for item in 0..items {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // One in eight refers to something old.
        let reach = if random >> 61 == 0 { item } else { 1000 };
        let other = item - ((random >> 20) % (reach + 1)).min(item);
        let here = |field, block| (field, item, block);
        let references: [Vec<(u64, u64, usize)>; 10] = [
            vec![],
            vec![],
            vec![],
            vec![],
            vec![here(3, 2)],
            vec![
                (0, other, 5),
                here(1, 0),
                here(2, 6),
                (3, item.saturating_sub(1), 5),
            ],
            vec![here(0, 3), here(1, 4)],
            vec![here(0, 1), here(1, 5), here(2, 8)],
            vec![],
            // The list.
            if item < LISTS {
                vec![here(0, 7)]
            } else {
                vec![here(0, 7), (1, item - LISTS, 9)]
            },
        ];
        for (block, ((words, tag), references)) in ITEM.iter().zip(references).enumerate() {
            let edge = |(field, item, block)| Edge {
                field,
                target: address(item, block),
            };
            let edges: Vec<Edge> = references.into_iter().map(edge).collect();
            let detail = if *tag == 252 {
                random ^ block as u64
            } else {
                0x40_1000
            };
            nodes.push(address(item, block), *words, *tag, detail, &edges);
            writer.nodes_if_full(&mut nodes)?;
        }
    }
    writer.nodes(&mut nodes)?;
    let mut columns: [Vec<u8>; 4] = Default::default();
    let mut last = 0;
    for list in 1..=LISTS {
        let target = address(items - list, 9);
        columns[0].push(RootKind::Registered as u8);
        put_delta(&mut columns[1], last, target);
        put_varint(&mut columns[2], 0);
        put_varint(&mut columns[3], 0);
        last = target;
    }
    let columns: Vec<&[u8]> = columns.iter().map(Vec::as_slice).collect();
    writer.section(Section::Roots, columns[0].len(), &columns)?;
    writer.finish(&[])?;
    Ok(file)
}
