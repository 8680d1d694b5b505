//! The table of stacks.

use std::io::{self, Write};

use heapline_profile::{ContextId, FrameId, Scope, Symbols};

use super::{Column, Dictionary, Field, Kind, ROWS_IN_BATCH, Table, properties};
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
    let mut table = Table::new(provenance::facts(scope), &fields(), properties(), out)?;
    let names = Names::new(profile.symbols());
    let mut rows = Rows::default();
    for (stack, amount) in scope.by_stack().enumerate() {
        if amount.is_empty() {
            continue;
        }
        rows.push(stack, &scope.stack(stack));
        if rows.ids.len() >= ROWS_IN_BATCH || rows.frames.len() >= FRAMES_IN_BATCH {
            table.write(std::mem::take(&mut rows).columns(&names))?;
        }
    }
    table.write(rows.columns(&names))?;
    table.finish()
}

fn fields() -> [Field; 5] {
    let text = |name: &str| Field::new(name, Kind::Text);
    let line = |name: &str| Field::new(name, Kind::Int).nullable();
    let frame = vec![text("function"), text("module"), text("file"), line("line")];
    [
        Field::new("stack_id", Kind::Long),
        text("site_function").nullable(),
        text("site_file").nullable(),
        line("site_line"),
        Field::list_of_structs("frames", frame),
    ]
}

struct Names<'a> {
    symbols: &'a Symbols,
    functions: Dictionary,
    modules: Dictionary,
    files: Dictionary,
}

impl<'a> Names<'a> {
    fn new(symbols: &'a Symbols) -> Self {
        let functions = symbols.functions().iter();
        Self {
            symbols,
            functions: Dictionary::new(functions.map(|function| &*function.name)),
            modules: Dictionary::new(symbols.modules().iter().map(String::as_str)),
            files: Dictionary::new(symbols.files().iter().map(String::as_str)),
        }
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

    fn columns(self, names: &Names<'_>) -> Vec<Column> {
        let sites = Places::new(self.sites.into_iter(), names.symbols);
        let frames = Places::new(self.frames.into_iter().map(Some), names.symbols);
        let in_lists = |column: Column| column.in_lists(self.lengths.clone());
        vec![
            Column::new(self.ids),
            names.functions.column(sites.functions),
            names.files.column(sites.files),
            Column::nullable(sites.lines),
            in_lists(names.functions.column(frames.functions)),
            in_lists(names.modules.column(frames.modules)),
            in_lists(names.files.column(frames.files)),
            in_lists(Column::nullable(frames.lines)),
        ]
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
