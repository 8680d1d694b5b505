//! Checks and compresses a snapshot that a program has written, and names its definitions.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use heapline_heapfile::{Content, Definition, ReadError, Reader, SymbolKind, compress_with};

use super::names::{Names, Program, Unit, names};
use crate::output::Force;
use crate::output::write_file;

/// A snapshot that is complete.
pub(in crate::commands) struct Finished {
    /// The size of its file.
    pub(in crate::commands) size: u64,
    /// The time for which the program was stopped.
    pub(in crate::commands) stopped: Duration,
}

/// Compresses a snapshot in its place, and names its definitions by files below the root directory of the program.
pub(in crate::commands) fn finish(path: &Path, root: &Path) -> anyhow::Result<Finished> {
    let name = path.display();
    let open = || {
        let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
        anyhow::Ok(BufReader::with_capacity(1 << 20, file))
    };
    let summary = match Summary::read(open()?) {
        Ok(summary) => summary,
        Err(ReadError::Incomplete { .. }) => bail!(
            "the copy of the program ended before the snapshot was complete; its heap may be damaged, \
             or memory was short"
        ),
        Err(error) => return Err(error).with_context(|| name.to_string()),
    };
    let stopped = summary.stopped;
    let names = summary.names(root);
    let input = open()?;
    let force = Force { force: true };
    write_file(path, &force, |output| {
        let edit = |definition: &mut Definition| {
            let found = names.get(&(definition.module, definition.field));
            if let Some(found) = found {
                definition.name.clone_from(&found.name);
                definition.line = found.line;
            }
            found.is_some()
        };
        compress_with(input, output, edit)
            .map(drop)
            .map_err(std::io::Error::other)
    })?;
    Ok(Finished {
        size: fs::metadata(path)?.len(),
        stopped,
    })
}

/// Some contents of a snapshot that is complete.
#[derive(Default)]
struct Summary {
    /// The time for which the program was stopped.
    stopped: Duration,
    program: String,
    /// The directory in which the program worked.
    directory: String,
    definitions: Vec<Definition>,
    units: Vec<Unit>,
}

impl Summary {
    fn read(input: BufReader<File>) -> Result<Self, ReadError> {
        let mut reader = Reader::new(input)?;
        let mut summary = Self::default();
        while let Some(content) = reader.next_section()? {
            match content {
                Content::Meta(lines) => {
                    for line in lines {
                        summary.property(&line);
                    }
                }
                Content::Definitions(definitions) => summary.definitions.extend(definitions),
                Content::Symbols(symbols) => {
                    let modules = symbols.into_iter().filter_map(|symbol| {
                        let name = symbol.name.strip_prefix("caml")?.to_owned();
                        let module = symbol.address / 8;
                        (symbol.kind == SymbolKind::Module).then_some(Unit { module, name })
                    });
                    summary.units.extend(modules);
                }
                _ => {}
            }
        }
        Ok(summary)
    }

    fn property(&mut self, line: &str) {
        match line.split_once('=') {
            Some(("stopped_ns", nanos)) => {
                self.stopped = Duration::from_nanos(nanos.parse().unwrap_or(0));
            }
            Some(("program", program)) => program.clone_into(&mut self.program),
            Some(("directory", directory)) => directory.clone_into(&mut self.directory),
            _ => {}
        }
    }

    fn names(&self, root: &Path) -> Names {
        let program = Program {
            root,
            executable: Path::new(&self.program),
            directory: Path::new(&self.directory),
        };
        names(&program, &self.definitions, &self.units)
    }
}
