//! Measures exactly how much memory a piece of a program uses, for tests.
//!
//! [`measure`] runs a closure and counts every block that its thread allocates meanwhile. It returns the
//! [usage](Usage), which has assertions: when one fails, the message lists the call sites that allocated
//! most.
//!
//! ```
//! use heapline::testing::measure;
//!
//! #[global_allocator]
//! static ALLOC: heapline::Alloc = heapline::Alloc::system();
//!
//! fn main() {
//!     let (sum, usage) = measure(|| {
//!         let numbers: Vec<u64> = (0..1000).collect();
//!         numbers.iter().sum::<u64>()
//!     });
//!     assert_eq!(sum, 499_500);
//!     usage.assert_total(8000).assert_peak(8000).assert_no_leaks();
//! }
//! ```
//!
//! The allocator must be in the program that is tested: in `src/main.rs`, in `src/lib.rs` under
//! `#[cfg(test)]`, or in the file below `tests`.
//!
//! Tests that run concurrently in other threads are not counted, nor are threads started by the closure.
//! [`measure_all_threads`] counts all threads, and so needs a process of its own
//! (a file below `tests` with one test).

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::local::{Inside, with_thread};
use crate::session::{self, Consumer, Sample};
use crate::thread::Thread;
use crate::tracker::Stack;

/// Sites that a message has.
const SHOWN: usize = 5;
/// Frames that a message has of a site.
const FRAMES: usize = 4;

/// Bytes and blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amount {
    /// Bytes that were asked for.
    pub bytes: usize,
    /// Blocks.
    pub blocks: usize,
}

impl Amount {
    fn add(&mut self, size: usize) {
        self.bytes += size;
        self.blocks += 1;
    }

    fn remove(&mut self, size: usize) {
        self.bytes -= size;
        self.blocks -= 1;
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes in {} blocks", self.bytes, self.blocks)
    }
}

/// Memory allocated at one call site.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SiteUsage {
    /// The place.
    pub stack: Stack,
    /// Memory allocated there.
    pub total: Amount,
    /// The part that was live at the peak of the total.
    pub at_peak: Amount,
    /// The part that was live at the end.
    pub alive: Amount,
}

/// Memory usage. A reallocated block counts as another block.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Usage {
    /// Memory allocated.
    pub total: Amount,
    /// The most that was alive at a time.
    pub peak: Amount,
    /// Memory live at the end: it leaks, or is part of the closure's result.
    pub alive: Amount,
    sites: Vec<SiteUsage>,
}

/// Runs something, and counts what its thread allocates meanwhile. One such run at a time: those of
/// other threads wait.
///
/// # Panics
///
/// If the program's allocator is not [`Alloc`](crate::Alloc), if the program is being sampled, or in
/// a closure that is being measured.
pub fn measure<R>(f: impl FnOnce() -> R) -> (R, Usage) {
    run(f, false)
}

/// Runs something, and counts what all threads allocate meanwhile; those that were there before are
/// counted after they have allocated another 64 KiB.
///
/// # Panics
///
/// As [`measure`].
pub fn measure_all_threads<R>(f: impl FnOnce() -> R) -> (R, Usage) {
    run(f, true)
}

fn run<R>(f: impl FnOnce() -> R, all_threads: bool) -> (R, Usage) {
    let turn = Turn::take();
    let mut made = None;
    let session = session::start(1.0, None, || {
        let counter = Arc::new(Counter {
            thread: (!all_threads)
                .then(|| with_thread(|thread| thread.number))
                .flatten(),
            ..Counter::default()
        });
        made = Some(counter.clone());
        Ok(counter)
    });
    let (session, counter) = match (session, made) {
        (Ok(session), Some(counter)) => (session, counter),
        (Err(error), _) => panic!("cannot measure memory: {error}"),
        (Ok(_), None) => unreachable!("it is made when the session is"),
    };
    // Also if it panics.
    let stop = Stop(session);
    let result = f();
    drop(stop);
    drop(turn);
    let _inside = Inside::enter();
    counter.ended.store(true, Ordering::Release);
    let usage = counter.lock().usage();
    (result, usage)
}

/// Held by the thread that measures; others wait.
struct Turn {
    _lock: MutexGuard<'static, ()>,
}

thread_local! {
    static MEASURING: Cell<bool> = const { Cell::new(false) };
}

impl Turn {
    fn take() -> Self {
        static ONE: Mutex<()> = Mutex::new(());
        assert!(
            !MEASURING.get(),
            "cannot measure memory inside of a closure that is being measured; \
             call measure for one part after the other"
        );
        let lock = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        MEASURING.set(true);
        Self { _lock: lock }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        MEASURING.set(false);
    }
}

struct Stop(session::Session);

impl Drop for Stop {
    fn drop(&mut self) {
        session::stop(self.0);
    }
}

/// Counts blocks.
#[derive(Default)]
struct Counter {
    /// The thread whose blocks count, if it is one.
    thread: Option<usize>,
    counts: Mutex<Counts>,
    ended: AtomicBool,
}

#[derive(Default)]
struct Counts {
    total: Amount,
    peak: Amount,
    alive: Amount,
    sites: Vec<SiteUsage>,
    by_stack: HashMap<Stack, usize>,
    /// Site and size of blocks that are alive.
    blocks: HashMap<u64, (usize, usize)>,
    next: u64,
    /// True while the live memory by site has not been saved since the peak grew.
    is_at_peak: bool,
}

impl Counter {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Consumer for Counter {
    fn wants(&self, thread: &Thread) -> bool {
        self.thread.is_none_or(|wanted| wanted == thread.number)
    }

    fn alloc(&self, _thread: &mut Thread, sample: &Sample<'_>) -> Option<u64> {
        Some(self.lock().add(sample))
    }

    fn free(&self, _thread: &mut Thread, token: u64) {
        // After the end, what was alive is alive.
        if !self.ended.load(Ordering::Acquire) {
            self.lock().remove(token);
        }
    }

    fn abandon(&self) {
        self.ended.store(true, Ordering::Release);
    }
}

impl Counts {
    fn add(&mut self, sample: &Sample<'_>) -> u64 {
        let stack = Stack::new(sample.stack);
        let sites = &mut self.sites;
        let site = *self.by_stack.entry(stack).or_insert_with_key(|stack| {
            sites.push(SiteUsage {
                stack: stack.clone(),
                total: Amount::default(),
                at_peak: Amount::default(),
                alive: Amount::default(),
            });
            sites.len() - 1
        });
        for amount in [&mut self.total, &mut self.alive] {
            amount.add(sample.size);
        }
        self.sites[site].total.add(sample.size);
        self.sites[site].alive.add(sample.size);
        if self.alive.bytes > self.peak.bytes {
            self.peak = self.alive;
            self.is_at_peak = true;
        }
        let token = self.next;
        self.next += 1;
        self.blocks.insert(token, (site, sample.size));
        token
    }

    fn remove(&mut self, token: u64) {
        self.leave_peak();
        if let Some((site, size)) = self.blocks.remove(&token) {
            self.alive.remove(size);
            self.sites[site].alive.remove(size);
        }
    }

    /// Writes down what is alive by site, before that is less than the most.
    fn leave_peak(&mut self) {
        if std::mem::take(&mut self.is_at_peak) {
            for site in &mut self.sites {
                site.at_peak = site.alive;
            }
        }
    }

    fn usage(&mut self) -> Usage {
        self.leave_peak();
        Usage {
            total: self.total,
            peak: self.peak,
            alive: self.alive,
            sites: std::mem::take(&mut self.sites),
        }
    }
}

impl Usage {
    /// The usage by call site.
    #[must_use]
    pub fn sites(&self) -> &[SiteUsage] {
        &self.sites
    }

    /// The usage inside functions whose name, or file and line, contains this text: `parser::`,
    /// `main.rs:12`. The peak is their live memory at the peak of the total.
    #[must_use]
    pub fn inside(&self, name: &str) -> Self {
        let is_inside = |site: &&SiteUsage| {
            site.stack.frames().iter().any(|frame| {
                let place = format!("{}:{}", frame.file, frame.line);
                frame.function.contains(name) || place.contains(name)
            })
        };
        let sites: Vec<SiteUsage> = self.sites.iter().filter(is_inside).cloned().collect();
        let sum = |amount: fn(&SiteUsage) -> Amount| Amount {
            bytes: sites.iter().map(|site| amount(site).bytes).sum(),
            blocks: sites.iter().map(|site| amount(site).blocks).sum(),
        };
        Self {
            total: sum(|site| site.total),
            peak: sum(|site| site.at_peak),
            alive: sum(|site| site.alive),
            sites,
        }
    }

    /// Asserts that at most this number of bytes was allocated.
    ///
    /// # Panics
    ///
    /// If it were more; the message says where.
    #[track_caller]
    #[expect(clippy::must_use_candidate, reason = "it is there for its panic")]
    pub fn assert_total(&self, most: usize) -> &Self {
        if self.total.bytes > most {
            self.fail("allocated", self.total, most, |site| site.total);
        }
        self
    }

    /// Asserts that at most this number of bytes was live at any time.
    ///
    /// # Panics
    ///
    /// If it were more; the message says where they were allocated.
    #[track_caller]
    #[expect(clippy::must_use_candidate, reason = "it is there for its panic")]
    pub fn assert_peak(&self, most: usize) -> &Self {
        if self.peak.bytes > most {
            self.fail("alive at the peak", self.peak, most, |site| site.at_peak);
        }
        self
    }

    /// Asserts that nothing was live at the end.
    ///
    /// # Panics
    ///
    /// If something was; the message says where it was allocated.
    #[track_caller]
    #[expect(clippy::must_use_candidate, reason = "it is there for its panic")]
    pub fn assert_no_leaks(&self) -> &Self {
        if self.alive.blocks > 0 {
            self.fail("alive at the end", self.alive, 0, |site| site.alive);
        }
        self
    }

    /// Fails, with the evidence.
    #[track_caller]
    fn fail(&self, what: &str, found: Amount, most: usize, of: fn(&SiteUsage) -> Amount) -> ! {
        let mut message = format!("{found} were {what}; at most {most} bytes should be\n");
        let mut sites: Vec<&SiteUsage> = self.sites.iter().collect();
        sites.retain(|site| of(site).blocks > 0);
        sites.sort_by_key(|site| std::cmp::Reverse(of(site).bytes));
        for site in sites.iter().take(SHOWN) {
            let _ = writeln!(message, "  {}", of(site));
            for frame in site.stack.frames().iter().take(FRAMES) {
                let (function, file, line) = (&frame.function, &frame.file, frame.line);
                let _ = writeln!(message, "    {function} ({file}:{line})");
            }
        }
        let others = sites.len().saturating_sub(SHOWN);
        if others > 0 {
            let _ = writeln!(message, "  and at {others} other places");
        }
        panic!("{message}");
    }
}
