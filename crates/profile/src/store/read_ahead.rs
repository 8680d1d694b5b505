//! Decodes batches and looks up their stacks on threads of their own, while earlier ones are stored.

use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use heapline_model::{Batch, Error, Source};

use super::ids::ContextId;
use super::stacks::StackReader;

/// Batches that wait for the next thread at most: no thread is always the slowest one.
const WAITING: usize = 8;

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
/// every input where none can be started.
pub(crate) fn for_each_batch(
    source: &mut dyn Source,
    stacks: &mut StackReader,
    mut store: impl FnMut(&Batch, &[ContextId]),
) -> Result<(), Error> {
    match here(source, stacks, &mut store, Batch::is_full)? {
        Ended::No => on_threads(source, stacks, store),
        Ended::Yes => Ok(()),
    }
}

fn on_threads(
    source: &mut dyn Source,
    stacks: &mut StackReader,
    mut store: impl FnMut(&Batch, &[ContextId]),
) -> Result<(), Error> {
    let (send_decoded, decoded) = sync_channel::<ReadBatch>(WAITING);
    let (send_read, read) = sync_channel::<ReadBatch>(WAITING);
    // Never longer than the batches that there are, and those are limited by the other two.
    let (send_empty, empty) = channel::<ReadBatch>();
    // What the threads work with is sent once both run: if one cannot be started, it is needed here.
    let (send_source, sources) = channel::<&mut dyn Source>();
    let (send_stacks, readers) = channel::<&mut StackReader>();
    let decode = move || -> Result<(), Error> {
        for source in sources {
            loop {
                let mut next = empty.try_recv().unwrap_or_default();
                // Sending fails if the other side has panicked, which it will tell itself.
                if !source.next_batch(&mut next.batch)? || send_decoded.send(next).is_err() {
                    break;
                }
            }
        }
        Ok(())
    };
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
        let builder = |name: &str| thread::Builder::new().name(name.to_owned());
        let decode = builder("decode").spawn_scoped(scope, decode);
        let look_up = builder("stacks").spawn_scoped(scope, look_up);
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
            // Fails when everything has been decoded.
            let _ = send_empty.send(next);
        }
        look_up
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        decode
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
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
