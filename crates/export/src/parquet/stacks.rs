//! The table of stacks.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, ListArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields, Schema};
use heapline_profile::{ContextId, FrameId, Scope, Symbols};

use super::{Dictionary, ROWS_IN_BATCH, Table, properties};
use crate::names::saturated;
use crate::provenance;

/// Frames that are handed over together: stacks can be deep.
const FRAMES_IN_BATCH: usize = 1 << 17;

/// Writes one row for each stack that blocks were allocated with.
///
/// | column | type | |
/// | --- | --- | --- |
/// | `stack_id` | `INT64` | as in [`blocks`](super::blocks()) |
/// | `site_function`, `site_file` | `STRING` | where the allocation is; null if nothing is known |
/// | `site_line` | `INT32` | its line; null if unknown |
/// | `frames` | `LIST` of `STRUCT` | `function`, `module`, `file`, `line`; innermost first |
pub fn stacks(scope: &Scope<'_>, out: impl Write + Send) -> io::Result<()> {
    let profile = scope.profile();
    let mut table = Table::new(provenance::facts(scope), schema(), properties(), out)?;
    let names = Names::new(profile.symbols())?;
    let mut rows = Rows::default();
    for (stack, amount) in scope.by_stack().enumerate() {
        if amount.is_empty() {
            continue;
        }
        rows.push(stack, &scope.stack(stack));
        if rows.ids.len() >= ROWS_IN_BATCH || rows.frames.len() >= FRAMES_IN_BATCH {
            table.write(std::mem::take(&mut rows).columns(&names)?)?;
        }
    }
    table.write(rows.columns(&names)?)?;
    table.finish()
}

fn schema() -> Schema {
    Schema::new(vec![
        Field::new("stack_id", DataType::Int64, false),
        Field::new("site_function", Dictionary::data_type(), true),
        Field::new("site_file", Dictionary::data_type(), true),
        Field::new("site_line", DataType::Int32, true),
        Field::new("frames", DataType::List(frame_field()), false),
    ])
}

fn frame_field() -> Arc<Field> {
    Arc::new(Field::new(
        "element",
        DataType::Struct(frame_fields()),
        false,
    ))
}

fn frame_fields() -> Fields {
    Fields::from(vec![
        Field::new("function", Dictionary::data_type(), false),
        Field::new("module", Dictionary::data_type(), false),
        Field::new("file", Dictionary::data_type(), false),
        Field::new("line", DataType::Int32, true),
    ])
}

struct Names<'a> {
    symbols: &'a Symbols,
    functions: Dictionary,
    modules: Dictionary,
    files: Dictionary,
}

impl<'a> Names<'a> {
    fn new(symbols: &'a Symbols) -> io::Result<Self> {
        let functions = symbols.functions().iter();
        Ok(Self {
            symbols,
            functions: Dictionary::new(functions.map(|function| &*function.name))?,
            modules: Dictionary::new(symbols.modules().iter().map(String::as_str))?,
            files: Dictionary::new(symbols.files().iter().map(String::as_str))?,
        })
    }
}

#[derive(Default)]
struct Rows {
    ids: Vec<i64>,
    sites: Vec<Option<FrameId>>,
    lengths: Vec<usize>,
    frames: Vec<FrameId>,
}

impl Rows {
    fn push(&mut self, stack: ContextId, frames: &[FrameId]) {
        self.ids.push(saturated(stack.index() as u64));
        self.sites.push(frames.first().copied());
        self.lengths.push(frames.len());
        self.frames.extend_from_slice(frames);
    }

    fn columns(self, names: &Names<'_>) -> io::Result<Vec<ArrayRef>> {
        let sites = Places::new(self.sites.into_iter(), names.symbols);
        let frames = Places::new(self.frames.into_iter().map(Some), names.symbols);
        let frames = StructArray::try_new(
            frame_fields(),
            vec![
                names.functions.column(frames.functions)?,
                names.modules.column(frames.modules)?,
                names.files.column(frames.files)?,
                Arc::new(Int32Array::from(frames.lines)),
            ],
            None,
        )
        .map_err(io::Error::other)?;
        let offsets = OffsetBuffer::from_lengths(self.lengths);
        let frames = ListArray::try_new(frame_field(), offsets, Arc::new(frames), None);
        Ok(vec![
            Arc::new(Int64Array::from(self.ids)),
            names.functions.column(sites.functions)?,
            names.files.column(sites.files)?,
            Arc::new(Int32Array::from(sites.lines)),
            Arc::new(frames.map_err(io::Error::other)?),
        ])
    }
}

/// The properties of frames, as columns.
#[derive(Default)]
struct Places {
    functions: Vec<Option<i32>>,
    modules: Vec<Option<i32>>,
    files: Vec<Option<i32>>,
    lines: Vec<Option<i32>>,
}

impl Places {
    fn new(frames: impl Iterator<Item = Option<FrameId>>, symbols: &Symbols) -> Self {
        let mut places = Self::default();
        for frame in frames {
            let info = frame.map(|frame| symbols.frames()[frame]);
            let module = frame.map(|frame| symbols.function(frame).module);
            let line = info.map(|info| info.line).filter(|line| *line > 0);
            places
                .functions
                .push(info.and_then(|info| number(info.function.index())));
            places
                .modules
                .push(module.and_then(|module| number(module.index())));
            places
                .files
                .push(info.and_then(|info| number(info.file.index())));
            places.lines.push(line.and_then(number));
        }
        places
    }
}

/// A number as such columns have it. There are fewer names than bytes of them.
fn number(n: impl TryInto<i32>) -> Option<i32> {
    n.try_into().ok()
}
