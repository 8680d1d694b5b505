//! Decodes batches and looks up their stacks on threads of their own, while earlier ones are stored.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{self, Scope, ScopedJoinHandle};

use heapline_model::{Batch, Error, Source};

use super::ids::ContextId;
use super::stacks::StackReader;

/// Batches that wait for the next thread at most: no thread is always the slowest one. Each takes a megabyte.
const WAITING: usize = 4;

/// A batch and the contexts of its births.
#[derive(Debug, Default)]
struct ReadBatch {
    batch: Batch,
    contexts: Vec<ContextId>,
}

impl ReadBatch {
    fn clear(&mut self) {
        self.batch.clear();
        self.contexts.clear();
    }
}

/// Hands over all batches of a source in order, with the contexts of their births.
///
/// A first batch that is not full is all there is, so that small inputs do without threads; so does
/// every input where none can be started. Where the first batch has no stacks, none are expected
/// later, and they get no thread of their own.
pub(crate) fn for_each_batch(
    source: &mut dyn Source,
    stacks: &mut StackReader,
    mut store: impl FnMut(&Batch, &[ContextId]),
) -> Result<(), Error> {
    match here(source, stacks, &mut store, Batch::is_full)? {
        Ended::Yes => Ok(()),
        Ended::No if stacks.is_empty() => on_two_threads(source, stacks, store),
        Ended::No => on_three_threads(source, stacks, store),
    }
}

/// Decodes on a thread of its own.
fn on_two_threads(
    source: &mut dyn Source,
    stacks: &mut StackReader,
    mut store: impl FnMut(&Batch, &[ContextId]),
) -> Result<(), Error> {
    let (send_decoded, decoded) = sync_channel::<ReadBatch>(WAITING);
    // Never longer than the batches that there are, and those are limited by the other one.
    let (send_empty, empty) = channel::<ReadBatch>();
    // The source is sent once the thread runs: if it cannot be started, it is needed here.
    let (send_source, sources) = channel::<&mut dyn Source>();
    let decode = move || decode(&sources, &empty, &send_decoded);
    thread::scope(|scope| {
        let Ok(decode) = spawn("decode", scope, decode) else {
            drop(send_source);
            return here(source, stacks, store, |_| false).map(|_| ());
        };
        // The thread waits for it.
        let _ = send_source.send(source);
        drop(send_source);
        for mut next in decoded {
            stacks.read(&next.batch, &mut next.contexts);
            store(&next.batch, &next.contexts);
            next.clear();
            // Fails when everything has been decoded.
            let _ = send_empty.send(next);
        }
        join(decode)
    })
}

/// Decodes on a thread of its own, and looks up stacks on another one.
fn on_three_threads(
    source: &mut dyn Source,
    stacks: &mut StackReader,
    mut store: impl FnMut(&Batch, &[ContextId]),
) -> Result<(), Error> {
    let (send_decoded, decoded) = sync_channel::<ReadBatch>(WAITING);
    let (send_read, read) = sync_channel::<ReadBatch>(WAITING);
    let (send_empty, empty) = channel::<ReadBatch>();
    // What the threads work with is sent once both run: if one cannot be started, it is needed here.
    let (send_source, sources) = channel::<&mut dyn Source>();
    let (send_stacks, readers) = channel::<&mut StackReader>();
    let decode = move || decode(&sources, &empty, &send_decoded);
    let look_up = move || {
        for stacks in readers {
            for mut next in &decoded {
                stacks.read(&next.batch, &mut next.contexts);
                if send_read.send(next).is_err() {
                    break;
                }
            }
        }
    };
    thread::scope(|scope| {
        let decode = spawn("decode", scope, decode);
        let look_up = spawn("stacks", scope, look_up);
        let (Ok(decode), Ok(look_up)) = (decode, look_up) else {
            drop((send_source, send_stacks));
            return here(source, stacks, store, |_| false).map(|_| ());
        };
        // The threads wait for them.
        let _ = send_source.send(source);
        let _ = send_stacks.send(stacks);
        drop((send_source, send_stacks));
        for mut next in read {
            store(&next.batch, &next.contexts);
            next.clear();
            let _ = send_empty.send(next);
        }
        join(look_up);
        join(decode)
    })
}

/// Decodes all batches of the source that is sent.
fn decode(
    sources: &Receiver<&mut dyn Source>,
    empty: &Receiver<ReadBatch>,
    decoded: &SyncSender<ReadBatch>,
) -> Result<(), Error> {
    for source in sources {
        loop {
            let mut next = empty.try_recv().unwrap_or_default();
            // Sending fails if the other side has panicked, which it will tell itself.
            if !source.next_batch(&mut next.batch)? || decoded.send(next).is_err() {
                break;
            }
        }
    }
    Ok(())
}

fn spawn<'scope, T: Send + 'scope>(
    name: &str,
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn_scoped(scope, work)
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The state of a source after reading from it.
enum Ended {
    Yes,
    No,
}

/// Reads batches without threads, up to one after which to `stop`.
fn here(
    source: &mut dyn Source,
    stacks: &mut StackReader,
    mut store: impl FnMut(&Batch, &[ContextId]),
    stop: impl Fn(&Batch) -> bool,
) -> Result<Ended, Error> {
    let mut read = ReadBatch::default();
    while source.next_batch(&mut read.batch)? {
        stacks.read(&read.batch, &mut read.contexts);
        store(&read.batch, &read.contexts);
        if stop(&read.batch) {
            return Ok(Ended::No);
        }
        read.clear();
    }
    Ok(Ended::Yes)
}
