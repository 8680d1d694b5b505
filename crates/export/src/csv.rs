//! The table of sampled blocks as comma-separated values.

use std::io::{self, Write};

use heapline_profile::{ContextId, FileId, FrameId, FunctionId, IdVec, Scope, Symbols};

use crate::parquet::{BLOCK_COLUMNS, SNAPSHOT_COLUMNS, snapshot_columns};
use crate::text::{Out, put_if_formula, put_quoted_name};

/// Writes one row for each sampled block, with the columns of [`parquet::blocks`], or for each
/// snapshot and stack where the source does not know single blocks; and its stack:
/// frames `function@file:line:start-end` separated by semicolons, outermost caller first.
///
/// [`parquet::blocks`]: crate::parquet::blocks
pub fn csv(scope: &Scope<'_>, out: &mut impl Write) -> io::Result<()> {
    let profile = scope.profile();
    let texts = Texts::new(profile.symbols());
    let mut out = Out::new(out);
    if !profile.tells().sizes {
        return snapshots(scope, &texts, out);
    }
    out.put(BLOCK_COLUMNS.join(",").as_bytes());
    out.put(b",stack\n");
    scope.for_each_block(|block| {
        out.number(block.allocated);
        for time in [block.promoted, block.collected] {
            out.put(b",");
            if let Some(time) = time {
                out.number(time);
            }
        }
        for number in [block.size, block.samples] {
            out.put(b",");
            out.number(number);
        }
        out.put(b",");
        out.put(block.space.name().as_bytes());
        for number in [u64::from(block.lane), block.stack.index() as u64] {
            out.put(b",");
            out.number(number);
        }
        for amount in [block.amount.bytes.value, block.amount.blocks.value] {
            out.put(b",");
            out.put(amount.to_string().as_bytes());
        }
        out.put(b",");
        out.number(block.amount.sampled);
        texts.put_stack(scope, block.stack, &mut out);
    });
    out.finish()
}

/// Writes one row for each snapshot and stack, with the columns of [`crate::parquet::snapshots`].
fn snapshots(scope: &Scope<'_>, texts: &Texts<'_>, mut out: Out<'_>) -> io::Result<()> {
    out.put(SNAPSHOT_COLUMNS.join(",").as_bytes());
    out.put(b",stack\n");
    scope.for_each_at_snapshots(|row| {
        for (i, number) in snapshot_columns(row).into_iter().enumerate() {
            if i > 0 {
                out.put(b",");
            }
            out.put(number.to_string().as_bytes());
        }
        texts.put_stack(scope, row.stack, &mut out);
    });
    out.finish()
}

/// Names as text that can be in a quoted field. There are fewer of them than frames, whose text
/// is put together from them.
struct Texts<'a> {
    symbols: &'a Symbols,
    functions: IdVec<FunctionId, Vec<u8>>,
    files: IdVec<FileId, Vec<u8>>,
}

impl<'a> Texts<'a> {
    fn new(symbols: &'a Symbols) -> Self {
        let text = |name: &str| {
            let mut text = Vec::new();
            put_quoted_name(&mut text, name);
            text
        };
        let functions = symbols.functions().iter();
        Self {
            symbols,
            functions: functions.map(|function| text(&function.name)).collect(),
            files: symbols.files().iter().map(|file| text(file)).collect(),
        }
    }

    /// Ends a row with a stack.
    fn put_stack(&self, scope: &Scope<'_>, stack: ContextId, out: &mut Out<'_>) {
        out.put(b",\"");
        for (i, frame) in scope.stack(stack).into_iter().rev().enumerate() {
            if i > 0 {
                out.put(b";");
            } else {
                put_if_formula(out, self.beginning(frame));
            }
            self.put(frame, out);
        }
        out.put(b"\"\n");
    }

    /// The first bytes of a frame's text.
    fn beginning(&self, frame: FrameId) -> &[u8] {
        match &*self.functions[self.symbols.frames()[frame].function] {
            [] => b"@",
            function => function,
        }
    }

    fn put(&self, frame: FrameId, out: &mut Out<'_>) {
        let info = self.symbols.frames()[frame];
        out.put(&self.functions[info.function]);
        out.put(b"@");
        out.put(&self.files[info.file]);
        out.put(b":");
        out.number(u64::from(info.line));
        out.put(b":");
        out.number(u64::from(info.start_char));
        out.put(b"-");
        out.number(u64::from(info.end_char));
    }
}
