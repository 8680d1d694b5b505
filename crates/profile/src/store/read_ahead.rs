//! Decodes batches on a thread of their own while the last ones are stored.

use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use heapline_model::{Batch, Error, Source};

/// Batches that wait to be stored at most: neither of the two threads is always the slower one.
const WAITING: usize = 8;

/// Hands over all batches of a source, in order.
///
/// A first batch that is not full is all there is, so that small inputs do without a thread; so does
/// every input where none can be started.
pub(crate) fn for_each_batch(
    source: &mut dyn Source,
    mut store: impl FnMut(&Batch),
) -> Result<(), Error> {
    let mut batch = Batch::default();
    while source.next_batch(&mut batch)? {
        let is_full = batch.is_full();
        store(&batch);
        batch.clear();
        if is_full {
            return on_a_thread(source, store);
        }
    }
    Ok(())
}

fn on_a_thread(source: &mut dyn Source, mut store: impl FnMut(&Batch)) -> Result<(), Error> {
    let (send_full, full) = sync_channel::<Batch>(WAITING);
    // Never longer than the batches that there are, and those are limited by `full`.
    let (send_empty, empty) = channel::<Batch>();
    // The source is sent to the thread once that runs: if it cannot be started, it is needed here.
    let (send_source, sources) = channel::<&mut dyn Source>();
    let decode = move || -> Result<(), Error> {
        for source in sources {
            loop {
                let mut batch = empty.try_recv().unwrap_or_default();
                if !source.next_batch(&mut batch)? || send_full.send(batch).is_err() {
                    break;
                }
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("decode".to_owned());
        let Ok(thread) = builder.spawn_scoped(scope, decode) else {
            let mut batch = Batch::default();
            while source.next_batch(&mut batch)? {
                store(&batch);
                batch.clear();
            }
            return Ok(());
        };
        // The thread waits for it.
        let _ = send_source.send(source);
        drop(send_source);
        for mut batch in full {
            store(&batch);
            batch.clear();
            // Fails when the thread has decoded everything.
            let _ = send_empty.send(batch);
        }
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
