//! Stacks become contexts on a thread of their own, while the trace is being decoded; the decoding
//! thread, which has less to do, makes classes of them.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use heapline_trace::{LocationId, Locations, Stack};

use super::classes::{Class, ClassTable};
use super::stacks::{ShortStack, StackTable, Stacks};
use super::symbols::{SymbolTable, Symbols};
use super::tree_builder::Name;

/// Stacks and locations in a batch before it is sent: so few that both threads have it in their
/// caches.
const BATCH: usize = 1 << 14;

/// Batches that wait for the thread at most: neither of the two is always the slower one.
const WAITING: usize = 64;

/// Sends stacks to the thread that looks after them.
#[derive(Debug)]
pub(crate) struct StackWorker {
    symbols: SymbolTable,
    batch: Batch,
    /// `None` once the thread is to end.
    full: Option<SyncSender<Batch>>,
    done: Receiver<Batch>,
    /// Empty ones, to be filled again.
    spare: Vec<Batch>,
    thread: JoinHandle<Stacks>,
    classes: ClassTable,
    /// The class of each block whose stack has been looked at; the kind of the others.
    column: Vec<u32>,
    /// How many have been looked at: the first ones.
    classified: usize,
}

/// What has become of the blocks' stacks.
#[derive(Debug)]
pub(crate) struct Built {
    /// The class of each block.
    pub(crate) column: Vec<u32>,
    pub(crate) classes: Vec<Class>,
    pub(crate) stacks: Stacks,
    pub(crate) symbols: Symbols,
}

#[derive(Debug, Default)]
struct Batch {
    /// Locations that are new in this batch.
    names: Vec<(u32, Vec<Name>)>,
    stacks: Vec<Head>,
    /// The locations that are new in each stack, one after the other.
    locations: Vec<LocationId>,
    /// What came of it: the context of each stack.
    contexts: Vec<u32>,
}

/// A stack without its locations.
#[derive(Clone, Copy, Debug)]
struct Head {
    domain: u16,
    cut: bool,
    /// How many locations it shares with the last one.
    shared: u32,
    /// How many are new.
    new: u32,
}

impl StackWorker {
    /// Starts the thread.
    pub(crate) fn start(collapse: bool) -> io::Result<Self> {
        let (full, batches) = sync_channel::<Batch>(WAITING);
        // Never longer than the batches that there are, and those are limited by `full`.
        let (give_back, done) = channel();
        let thread = thread::Builder::new()
            .name("stacks".to_owned())
            .spawn(move || {
                let mut table = StackTable::new(collapse);
                for mut batch in batches {
                    batch.look_up(&mut table);
                    // If nobody wants it back, loading has been given up.
                    let _ = give_back.send(batch);
                }
                table.finish()
            })?;
        Ok(Self {
            symbols: SymbolTable::default(),
            batch: Batch::default(),
            full: Some(full),
            done,
            spare: Vec::new(),
            thread,
            classes: ClassTable::default(),
            column: Vec::new(),
            classified: 0,
        })
    }

    /// Takes the stack of the next block.
    #[inline]
    pub(crate) fn push(&mut self, stack: Stack<'_>, domain: u16, kind: u32, locations: &Locations) {
        self.column.push(kind);
        let new = stack.new_frames();
        let word = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.batch.stacks.push(Head {
            domain,
            cut: stack.is_cut(),
            shared: word(stack.shared()),
            new: word(new.len()),
        });
        self.batch.locations.extend_from_slice(new);
        for &location in new {
            if !self.symbols.has_met(location) {
                self.meet(location, locations);
            }
        }
        if self.batch.stacks.len() + self.batch.locations.len() >= BATCH {
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

    #[cold]
    fn send(&mut self) {
        while let Ok(batch) = self.done.try_recv() {
            self.take(batch);
        }
        let next = self.spare.pop().unwrap_or_default();
        let batch = std::mem::replace(&mut self.batch, next);
        if let Some(full) = &self.full {
            // Fails only if the thread has panicked, which `finish` will tell.
            let _ = full.send(batch);
        }
    }

    /// Notes what came of a batch.
    fn take(&mut self, mut batch: Batch) {
        let rest = &mut self.column[self.classified..];
        self.classes.classify(rest, &batch.contexts);
        self.classified += batch.contexts.len();
        batch.contexts.clear();
        batch.stacks.clear();
        batch.locations.clear();
        self.spare.push(batch);
    }

    /// Says that no stack will follow. The thread still has some work to do.
    pub(crate) fn end(&mut self) {
        self.send();
        self.full = None;
    }

    /// The kind of a block.
    #[inline]
    pub(crate) fn kind(&self, block: usize) -> u32 {
        let number = self.column[block];
        if block < self.classified {
            self.classes.kind(number)
        } else {
            number
        }
    }

    /// Waits for the thread, after the [`end`](Self::end).
    pub(crate) fn finish(mut self, locations: &Locations) -> Built {
        while let Ok(batch) = self.done.recv() {
            self.take(batch);
        }
        match self.thread.join() {
            Ok(stacks) => Built {
                column: self.column,
                classes: self.classes.finish(),
                stacks,
                symbols: self.symbols.finish(locations),
            },
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Batch {
    /// Finds the contexts of the batch's stacks.
    fn look_up(&mut self, table: &mut StackTable) {
        for (location, names) in self.names.drain(..) {
            table.name(location, &names);
        }
        let mut rest = &self.locations[..];
        for head in &self.stacks {
            let (new, tail) = rest.split_at(head.new as usize);
            self.contexts.push(table.context(ShortStack {
                domain: head.domain,
                shared: head.shared as usize,
                new,
                cut: head.cut,
            }));
            rest = tail;
        }
    }
}
