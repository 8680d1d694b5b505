//! Helpers for tests of the sampler: one of them samples at a time.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heapline::{Options, Profiler, Tracker};

/// Holds the sampler for a test.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An event of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Alloc,
    Realloc { before: usize },
    Free,
}

/// All that happened.
#[derive(Clone)]
pub(crate) struct Log(Arc<Mutex<Vec<(Event, usize)>>>);

impl Log {
    fn push(&self, event: Event, size: usize) {
        self.0.lock().unwrap().push((event, size));
    }

    /// One after the other, since whoever looks at them allocates too, and that is written down.
    fn events(&self) -> impl Iterator<Item = (Event, usize)> {
        let end = self.0.lock().unwrap().len();
        (0..end).map(|n| self.0.lock().unwrap()[n])
    }

    /// Events of blocks of these sizes.
    pub(crate) fn of(&self, sizes: &[usize]) -> Vec<(Event, usize)> {
        let events = self.events();
        events.filter(|(_, size)| sizes.contains(size)).collect()
    }

    /// Blocks that were allocated and not freed, by size.
    pub(crate) fn alive(&self) -> HashMap<usize, i64> {
        let mut alive = HashMap::new();
        for (event, size) in self.events() {
            match event {
                Event::Alloc => *alive.entry(size).or_default() += 1,
                Event::Realloc { before } => {
                    *alive.entry(size).or_default() += 1;
                    *alive.entry(before).or_default() -= 1;
                }
                Event::Free => *alive.entry(size).or_default() -= 1,
            }
        }
        alive.retain(|_, count| *count != 0);
        alive
    }
}

/// Samples, and writes down all that happens.
pub(crate) fn logged(options: Options) -> (Profiler<usize>, Log) {
    let log = Log(Arc::new(Mutex::new(Vec::new())));
    let [a, b, c] = [log.clone(), log.clone(), log.clone()];
    let tracker = Tracker::new(move |block| {
        a.push(Event::Alloc, block.size);
        Some(block.size)
    })
    .on_realloc(move |block, before| {
        b.push(Event::Realloc { before }, block.size);
        Some(block.size)
    })
    .on_free(move |block, size| {
        assert_eq!(block.size, size);
        c.push(Event::Free, block.size);
    });
    (Profiler::start(options, tracker).unwrap(), log)
}
