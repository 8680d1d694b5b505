//! Reads stacks: here, or on a thread of its own while the next batch is decoded.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use heapline_model::Batch;

use super::stacks::StackReader;

/// Batches that wait for the thread at most: neither of the two is always the slower one.
const WAITING: usize = 16;

/// Gives batches to the reader of stacks, and gets the contexts of their births back, in order.
#[derive(Debug)]
pub(crate) enum Worker {
    /// Batches are read when they come.
    Here(Box<StackReader>),
    /// Batches are read by a thread.
    Thread(StackThread),
}

/// A batch that was read: the context of each birth.
#[derive(Debug, Default)]
pub(crate) struct ReadBatch {
    batch: Batch,
    pub(crate) contexts: Vec<u32>,
}

#[derive(Debug)]
pub(crate) struct StackThread {
    full: SyncSender<ReadBatch>,
    done: Receiver<ReadBatch>,
    thread: JoinHandle<Box<StackReader>>,
    /// Empty ones, to be filled again.
    spare: Vec<ReadBatch>,
}

impl Default for Worker {
    fn default() -> Self {
        Self::Here(Box::default())
    }
}

impl Worker {
    /// Takes a batch, leaving an empty one; hands those over that have been read.
    ///
    /// A batch that is full is a sign of many to come: from then on a thread does the work, if there
    /// can be one. A program that is watched while it runs has small ones.
    pub(crate) fn push(&mut self, batch: &mut Batch, mut read: impl FnMut(&ReadBatch)) {
        if batch.is_full() {
            self.start_thread();
        }
        match self {
            Self::Here(reader) => {
                let mut done = ReadBatch::default();
                reader.read(batch, &mut done.contexts);
                batch.clear();
                read(&done);
            }
            Self::Thread(thread) => {
                while let Ok(done) = thread.done.try_recv() {
                    read(&done);
                    thread.recycle(done);
                }
                let mut next = thread.spare.pop().unwrap_or_default();
                std::mem::swap(batch, &mut next.batch);
                // Fails only if the thread has panicked, which `stop` will tell.
                let _ = thread.full.send(next);
            }
        }
    }

    fn start_thread(&mut self) {
        let Self::Here(reader) = self else {
            return;
        };
        if let Some(thread) = StackThread::start(reader) {
            *self = Self::Thread(thread);
        }
    }

    /// Waits until everything has been read, and returns the reader.
    pub(crate) fn stop(&mut self, mut read: impl FnMut(&ReadBatch)) -> &mut StackReader {
        if let Self::Thread(_) = self
            && let Self::Thread(thread) = std::mem::take(self)
        {
            drop(thread.full);
            for done in thread.done {
                read(&done);
            }
            match thread.thread.join() {
                Ok(reader) => *self = Self::Here(reader),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        match self {
            Self::Here(reader) => reader,
            Self::Thread(_) => unreachable!("the thread was stopped"),
        }
    }
}

impl StackThread {
    /// Starts the thread and gives it the reader; `None` where threads cannot be had.
    fn start(reader: &mut Box<StackReader>) -> Option<Self> {
        let (full, batches) = sync_channel::<ReadBatch>(WAITING);
        // Never longer than the batches that there are, and those are limited by `full`.
        let (give_back, done) = channel();
        let (hand_over, handed_over) = channel::<Box<StackReader>>();
        let work = move || {
            let mut reader = handed_over.recv().unwrap_or_default();
            for mut read in batches {
                let ReadBatch { batch, contexts } = &mut read;
                reader.read(batch, contexts);
                // If nobody wants it back, loading has been given up.
                let _ = give_back.send(read);
            }
            reader
        };
        let builder = thread::Builder::new().name("stacks".to_owned());
        let thread = builder.spawn(work).ok()?;
        // The thread is there and waits for it.
        let _ = hand_over.send(std::mem::take(reader));
        Some(Self {
            full,
            done,
            thread,
            spare: Vec::new(),
        })
    }

    fn recycle(&mut self, mut read: ReadBatch) {
        read.batch.clear();
        read.contexts.clear();
        self.spare.push(read);
    }
}
