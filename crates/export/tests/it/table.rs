//! Tables of any columns are read as they were written.

use std::fs::File;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use heapline_export::parquet::{Column, Dictionary, Field, Kind, Table, properties};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;

/// A row: a text, a number or null, a truth, a list of numbers, and a list of names and lines.
type Row = (u8, Option<i64>, bool, Vec<f64>, Vec<(u8, Option<i32>)>);

const NAMES: [&str; 3] = ["List.map", "", "Ünïcode"];

fn fields() -> [Field; 6] {
    let frame = vec![
        Field::new("function", Kind::Text),
        Field::new("line", Kind::Int).nullable(),
    ];
    [
        Field::new("text", Kind::Text),
        Field::new("number", Kind::Long).nullable(),
        Field::new("is", Kind::Bool),
        Field::list("doubles", Kind::Double),
        Field::list_of_structs("frames", frame),
        Field::map("labels"),
    ]
}

fn columns(rows: &[Row], names: &Dictionary) -> Vec<Column> {
    let name = |n: u8| Some(i32::from(n % 3));
    let frames = || rows.iter().flat_map(|row| row.4.iter().copied());
    let lengths = || rows.iter().map(|row| row.4.len()).collect::<Vec<_>>();
    vec![
        names.column(rows.iter().map(|row| name(row.0))),
        Column::nullable(rows.iter().map(|row| row.1)),
        Column::new(rows.iter().map(|row| row.2)),
        Column::new(rows.iter().flat_map(|row| row.3.clone()))
            .in_lists(rows.iter().map(|row| row.3.len()).collect()),
        names
            .column(frames().map(|frame| name(frame.0)))
            .in_lists(lengths()),
        Column::nullable(frames().map(|frame| frame.1)).in_lists(lengths()),
        Column::new(frames().map(|_| "key")).in_lists(lengths()),
        Column::new(frames().map(|frame| NAMES[usize::from(frame.0 % 3)])).in_lists(lengths()),
    ]
}

fn write(batches: &[&[Row]]) -> File {
    let file = tempfile::tempfile().unwrap();
    let out = file.try_clone().unwrap();
    let mut table = Table::new(Vec::new(), &fields(), properties(), out).unwrap();
    let names = Dictionary::new(NAMES.into_iter());
    for rows in batches {
        table.write(columns(rows, &names)).unwrap();
    }
    table.finish().unwrap();
    file
}

fn read(file: File) -> Vec<Row> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let batches = reader.build().unwrap().map(Result::unwrap);
    batches.flat_map(|batch| rows_of(&batch)).collect()
}

fn number_of(name: &str) -> u8 {
    let place = NAMES.iter().position(|known| *known == name).unwrap();
    u8::try_from(place).unwrap()
}

fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let column = |name: &str| -> &ArrayRef { batch.column_by_name(name).unwrap() };
    let row = |i: usize| {
        let numbers = column("number").as_primitive::<Int64Type>();
        let doubles = column("doubles").as_list::<i32>().value(i);
        let frames = column("frames").as_list::<i32>().value(i);
        let frames = frames.as_struct();
        let functions = frames.column(0).as_string::<i32>();
        let lines = frames.column(1).as_primitive::<Int32Type>();
        let labels = column("labels").as_map().value(i);
        let labels = labels.column(1).as_string::<i32>();
        let frames = (0..frames.len()).map(|frame| {
            assert_eq!(labels.value(frame), functions.value(frame));
            let line = lines.is_valid(frame).then(|| lines.value(frame));
            (number_of(functions.value(frame)), line)
        });
        (
            number_of(column("text").as_string::<i32>().value(i)),
            numbers.is_valid(i).then(|| numbers.value(i)),
            column("is").as_boolean().value(i),
            doubles.as_primitive::<Float64Type>().values().to_vec(),
            frames.collect(),
        )
    };
    (0..batch.num_rows()).map(row).collect()
}

fn any_row() -> impl Strategy<Value = Row> {
    let frames = prop::collection::vec((0..3_u8, any::<Option<i32>>()), 0..4);
    let doubles = prop::collection::vec(-1e9..1e9_f64, 0..4);
    (
        0..3_u8,
        any::<Option<i64>>(),
        any::<bool>(),
        doubles,
        frames,
    )
}

proptest! {
    #[test]
    fn rows_come_back(
        batches in prop::collection::vec(prop::collection::vec(any_row(), 0..40), 0..4),
    ) {
        let slices: Vec<&[Row]> = batches.iter().map(Vec::as_slice).collect();
        prop_assert_eq!(read(write(&slices)), batches.concat());
    }
}

/// More rows, and more items of lists, than a group of rows has.
#[test]
fn large_tables_have_several_groups() {
    let row = |i: u32| -> Row {
        let frames = vec![((i % 3) as u8, i.is_multiple_of(2).then_some(7)); (i % 17) as usize];
        (0, Some(i64::from(i)), false, Vec::new(), frames)
    };
    let rows: Vec<Row> = (0..300_000).map(row).collect();
    let batches: Vec<&[Row]> = rows.chunks(10_000).collect();
    let file = write(&batches);
    let reader = ParquetRecordBatchReaderBuilder::try_new(file.try_clone().unwrap()).unwrap();
    let groups = reader.metadata().row_groups();
    assert!(groups.len() > 1);
    assert!(groups.iter().all(|group| group.num_rows() <= 1 << 18));
    assert_eq!(read(file), rows);
}

#[test]
fn wrong_columns_are_errors() {
    let error = |columns: Vec<Column>| {
        let fields = [Field::new("a", Kind::Long), Field::new("b", Kind::Text)];
        let mut table = Table::new(Vec::new(), &fields, properties(), Vec::new()).unwrap();
        let outcome = table.write(columns).and_then(|()| table.finish());
        outcome.unwrap_err().to_string()
    };
    let (a, b) = (Column::new([1_i64]), Column::new(["x"]));
    assert!(error(vec![a.clone()]).contains("lack"));
    assert!(error(vec![a.clone(), Column::new(["x", "y"])]).contains("lack"));
    assert!(error(vec![Column::nullable([None::<i64>]), b.clone()]).contains("nulls"));
    assert!(error(vec![b, a]).contains("another type"));
}
