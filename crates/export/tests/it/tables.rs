//! Tables hold the blocks and stacks of the trace.

use crate::common;

use std::fs::File;

use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use common::{Full, load, odd, profiles, whole};
use heapline_export::{csv, parquet};
use heapline_profile::{ContextId, Profile, SampledBlock, Scope};

fn table(write: impl FnOnce(File)) -> (Vec<(String, String)>, Vec<RecordBatch>) {
    let file = tempfile::tempfile().unwrap();
    write(file.try_clone().unwrap());
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let facts = reader.metadata().file_metadata().key_value_metadata();
    let facts = facts.unwrap().iter().map(|fact| {
        let value = fact.value.clone().unwrap_or_default();
        (fact.key.clone(), value)
    });
    let facts = facts.collect();
    (facts, reader.build().unwrap().map(Result::unwrap).collect())
}

fn blocks(scope: &Scope<'_>) -> (Vec<(String, String)>, Vec<RecordBatch>) {
    table(|file| parquet::blocks(scope, file).unwrap())
}

fn stacks(scope: &Scope<'_>) -> Vec<RecordBatch> {
    table(|file| parquet::stacks(scope, file).unwrap()).1
}

/// A row of the table of blocks as text, as CSV has it.
fn row(block: &SampledBlock) -> String {
    let perhaps = |time: Option<u64>| time.map(|time| time.to_string()).unwrap_or_default();
    format!(
        "{},{},{},{},{},{},{},{},{},{},{}",
        block.allocated,
        perhaps(block.promoted),
        perhaps(block.collected),
        block.size,
        block.samples,
        block.space.name(),
        block.lane,
        block.stack.index(),
        block.amount.bytes.value,
        block.amount.blocks.value,
        block.amount.sampled
    )
}

fn expected_rows(scope: &Scope<'_>) -> Vec<String> {
    let mut rows = Vec::new();
    scope.for_each_block(|block| rows.push(row(block)));
    rows
}

fn parquet_rows(batch: &RecordBatch) -> Vec<String> {
    let cell = |column: usize, i: usize| {
        let column = batch.column(column);
        if column.is_null(i) {
            return String::new();
        }
        match column.data_type().to_string().as_str() {
            "Int64" => column.as_primitive::<Int64Type>().value(i).to_string(),
            "Int32" => column.as_primitive::<Int32Type>().value(i).to_string(),
            "Float64" => column.as_primitive::<Float64Type>().value(i).to_string(),
            "Utf8" => column.as_string::<i32>().value(i).to_owned(),
            other => panic!("a column of {other}"),
        }
    };
    let row = |i| {
        let cells: Vec<String> = (0..batch.num_columns())
            .map(|column| cell(column, i))
            .collect();
        cells.join(",")
    };
    (0..batch.num_rows()).map(row).collect()
}

/// The frames of a stack, outermost first, as CSV has them.
fn stack_text(profile: &Profile, stack: ContextId) -> String {
    let symbols = profile.symbols();
    let frames = profile.stack(stack).into_iter().rev().map(|frame| {
        let info = symbols.frames()[frame];
        let text = format!(
            "{}@{}:{}:{}-{}",
            symbols.function(frame).name,
            symbols.files()[info.file],
            info.line,
            info.start_char,
            info.end_char
        );
        text.replace([';', '\n'], "_").replace('"', "\"\"")
    });
    frames.collect::<Vec<_>>().join(";")
}

#[test]
fn every_block_is_a_row() {
    for (name, profile) in profiles() {
        let scope = whole(&profile);
        let (_, batches) = blocks(&scope);
        let rows: Vec<String> = batches.iter().flat_map(parquet_rows).collect();
        assert_eq!(rows, expected_rows(&scope), "{name}");
    }
}

#[test]
fn csv_has_the_same_rows_and_their_stacks() {
    for (name, profile) in profiles() {
        let scope = whole(&profile);
        let mut text = Vec::new();
        csv(&scope, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let mut lines = text.lines();
        assert_eq!(
            lines.next().unwrap(),
            "allocated_us,promoted_us,collected_us,size_bytes,samples,source,domain,stack_id,\
             estimated_bytes,estimated_blocks,sampled_blocks,stack"
        );
        let mut expected = Vec::new();
        scope.for_each_block(|block| {
            expected.push(format!(
                "{},\"{}\"",
                row(block),
                stack_text(&profile, block.stack)
            ));
        });
        assert_eq!(lines.collect::<Vec<_>>(), expected, "{name}");
    }
}

#[test]
fn every_stack_of_a_block_has_its_frames() {
    for (name, profile) in profiles() {
        let scope = whole(&profile);
        let symbols = profile.symbols();
        let mut ids = Vec::new();
        for batch in stacks(&scope) {
            let id = batch["stack_id"].as_primitive::<Int64Type>();
            let functions = batch["site_function"].as_string::<i32>();
            let files = batch["site_file"].as_string::<i32>();
            let lines = batch["site_line"].as_primitive::<Int32Type>();
            for i in 0..batch.num_rows() {
                let stack = usize::try_from(id.value(i)).unwrap();
                let stack = profile.stacks().nth(stack).unwrap();
                ids.push(stack);
                let frames = profile.stack(stack);
                let list = batch["frames"].as_list::<i32>().value(i);
                let list = list.as_struct();
                assert_eq!(list.len(), frames.len(), "{name}");
                assert_eq!(functions.is_null(i), frames.is_empty(), "{name}");
                for (j, &frame) in frames.iter().enumerate() {
                    let info = symbols.frames()[frame];
                    let function = symbols.function(frame);
                    let line = i32::try_from(info.line).unwrap();
                    let text = |column: usize| list.column(column).as_string::<i32>().value(j);
                    assert_eq!(text(0), function.name);
                    assert_eq!(text(1), symbols.modules()[function.module]);
                    assert_eq!(text(2), symbols.files()[info.file]);
                    let column = list.column(3).as_primitive::<Int32Type>();
                    let line = (line > 0).then_some(line);
                    assert_eq!(column.is_valid(j).then(|| column.value(j)), line);
                    if j == 0 {
                        assert_eq!(functions.value(i), text(0));
                        assert_eq!(files.value(i), text(2));
                        assert_eq!(lines.is_valid(i).then(|| lines.value(i)), line);
                    }
                }
            }
        }
        let mut expected = Vec::new();
        scope.for_each_block(|block| expected.push(block.stack));
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(ids, expected, "{name}");
    }
}

#[test]
fn only_stacks_of_the_scope_are_written() {
    let profile = load("generated/domains.ctf");
    let all = whole(&profile);
    let none = all.live_at(profile.before(0));
    let rows = |scope| {
        stacks(scope)
            .iter()
            .map(RecordBatch::num_rows)
            .sum::<usize>()
    };
    assert!(rows(&all) > 100);
    assert_eq!(rows(&none), 0);
}

#[test]
fn tables_say_where_they_come_from() {
    let profile = load("mix-ocaml413/trace.ctf");
    let (facts, _) = blocks(&whole(&profile));
    for fact in [
        ("heapline.sample_rate", "0.001"),
        ("heapline.word_size", "64"),
        ("heapline.estimator", "horvitz_thompson"),
        ("heapline.executable_name", &profile.header().program),
    ] {
        let fact = (fact.0.to_owned(), fact.1.to_owned());
        assert!(facts.contains(&fact), "{fact:?} is not in {facts:?}");
    }
}

#[test]
fn a_full_disk_is_reported_as_such() {
    let profile = odd();
    let scope = whole(&profile);
    let full = std::io::ErrorKind::StorageFull;
    assert_eq!(parquet::blocks(&scope, Full).unwrap_err().kind(), full);
    assert_eq!(parquet::stacks(&scope, Full).unwrap_err().kind(), full);
    assert_eq!(csv(&scope, &mut Full).unwrap_err().kind(), full);
}
