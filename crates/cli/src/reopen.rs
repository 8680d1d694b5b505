//! Traces that are read more than once: by the viewer, for what only some questions need.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use heapline_server::{Subjects, Trace};

use crate::input::Input;

/// A trace, and perhaps an earlier one, checked to be there.
pub(crate) fn subjects(input: &Input, against: Option<PathBuf>) -> anyhow::Result<Subjects> {
    let against = against.map(|trace| Input {
        trace,
        strict: input.strict,
    });
    Ok(Subjects {
        trace: trace(input)?,
        against: against.as_ref().map(trace).transpose()?,
    })
}

fn trace(input: &Input) -> anyhow::Result<Trace> {
    let size = input.file_size();
    let file = match size {
        Some(_) => {
            File::open(&input.trace).with_context(|| format!("cannot open {}", input.name()))?
        }
        None => copy(input)?,
    };
    let file = Arc::new(file);
    Ok(Trace {
        path: input.trace.display().to_string(),
        size,
        strict: input.strict,
        open: Box::new(move || {
            Ok(Box::new(FromStart {
                file: Arc::clone(&file),
                offset: 0,
            }))
        }),
    })
}

/// What comes from a pipe, in a file without a name, which is gone with the process.
fn copy(input: &Input) -> anyhow::Result<File> {
    let mut source = input.bytes()?;
    let mut file = tempfile::tempfile().context("cannot make a temporary file")?;
    io::copy(&mut source, &mut file)
        .with_context(|| format!("cannot copy {} to a temporary file", input.name()))?;
    Ok(file)
}

/// Reads a file from its start, whatever others do with it.
struct FromStart {
    file: Arc<File>,
    offset: u64,
}

impl Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(buffer, self.offset)?;
        self.offset += n as u64;
        Ok(n)
    }
}
