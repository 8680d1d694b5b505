//! Stacks become contexts on a thread of their own, while the trace is being decoded.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use heapline_trace::{LocationId, Locations, Stack};

use super::stacks::{CallTree, Class, Context, Name, ShortStack, StackTable};
use super::symbols::{SymbolTable, Symbols};

/// Marks a stack that was cut, above its domain.
const CUT: u32 = 1 << 16;

/// Words in a batch before it is sent.
const BATCH: usize = 1 << 16;

/// Sends stacks to the thread that looks after them.
#[derive(Debug)]
pub(crate) struct StackWorker {
    symbols: SymbolTable,
    batch: Batch,
    /// `None` once the thread is to end.
    full: Option<SyncSender<Batch>>,
    empty: Receiver<Batch>,
    thread: JoinHandle<Built>,
}

/// What has become of the stacks.
#[derive(Debug)]
pub(crate) struct Built {
    /// The class of each block.
    pub(crate) column: Vec<u32>,
    pub(crate) classes: Vec<Class>,
    pub(crate) contexts: Vec<Context>,
    pub(crate) tree: CallTree,
    pub(crate) shortened: u64,
}

#[derive(Debug, Default)]
struct Batch {
    /// Locations that are new in this batch.
    names: Vec<(u32, Vec<Name>)>,
    /// For each stack the block's kind, the domain with [`CUT`] if it was cut, how many locations
    /// it shares with the last one, how many are new, and those.
    stacks: Vec<u32>,
}

impl StackWorker {
    /// Starts the thread.
    pub(crate) fn start(collapse: bool) -> io::Result<Self> {
        let (full, batches) = sync_channel::<Batch>(4);
        let (give_back, empty) = sync_channel(8);
        let thread = thread::Builder::new()
            .name("stacks".to_owned())
            .spawn(move || {
                let mut table = StackTable::new(collapse);
                let mut column = Vec::new();
                for mut batch in batches {
                    batch.unpack(&mut table, &mut column);
                    // If nobody wants it back, the trace has ended.
                    let _ = give_back.try_send(batch);
                }
                table.finish(column)
            })?;
        Ok(Self {
            symbols: SymbolTable::default(),
            batch: Batch::default(),
            full: Some(full),
            empty,
            thread,
        })
    }

    /// Takes the stack of the next block.
    #[inline]
    pub(crate) fn push(&mut self, stack: Stack<'_>, domain: u16, kind: u32, locations: &Locations) {
        let new = stack.new_frames();
        let word = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.batch.stacks.extend([
            kind,
            u32::from(domain) | if stack.is_cut() { CUT } else { 0 },
            word(stack.shared()),
            word(new.len()),
        ]);
        for &location in new {
            if !self.symbols.has_met(location) {
                self.meet(location, locations);
            }
        }
        let indices = new.iter().map(|location| word(location.index()));
        self.batch.stacks.extend(indices);
        if self.batch.stacks.len() >= BATCH {
            self.send();
        }
    }

    #[cold]
    fn meet(&mut self, location: LocationId, locations: &Locations) {
        let frames = self.symbols.meet(location, locations).to_vec();
        let names = frames.iter().map(|&frame| Name {
            frame,
            function: self.symbols.function_of(frame),
        });
        let index = u32::try_from(location.index()).unwrap_or(u32::MAX);
        self.batch.names.push((index, names.collect()));
    }

    fn send(&mut self) {
        let next = self.empty.try_recv().unwrap_or_default();
        let batch = std::mem::replace(&mut self.batch, next);
        if let Some(full) = &self.full {
            // Fails only if the thread has panicked, which `finish` will tell.
            let _ = full.send(batch);
        }
    }

    /// Waits for the thread.
    pub(crate) fn finish(mut self, locations: &Locations) -> (Built, Symbols) {
        self.send();
        self.full = None;
        match self.thread.join() {
            Ok(built) => (built, self.symbols.finish(locations)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Batch {
    /// Appends the classes of the batch's stacks to `column`, and empties the batch.
    fn unpack(&mut self, table: &mut StackTable, column: &mut Vec<u32>) {
        for (location, names) in self.names.drain(..) {
            table.name(location, &names);
        }
        let mut rest = &self.stacks[..];
        while let &[kind, domain, shared, len, ref tail @ ..] = rest {
            let (new, tail) = tail.split_at(len as usize);
            column.push(table.class(ShortStack {
                domain: u16::try_from(domain & !CUT).unwrap_or(u16::MAX),
                shared: shared as usize,
                new,
                cut: domain & CUT != 0,
                kind,
            }));
            rest = tail;
        }
        self.stacks.clear();
    }
}
