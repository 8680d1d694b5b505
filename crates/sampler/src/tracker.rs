//! Access to sampled blocks from inside the program: callbacks, and the live heap.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::local::Inside;
use crate::session::{self, Consumer, Sample, Session};
use crate::thread::Thread;
use crate::{Frame, StartError, stack};

const WORD: usize = 8;

/// Parts of what is alive, so that threads do not wait for each other.
const SHARDS: usize = 16;

/// Options for sampling.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub(crate) rate: f64,
    pub(crate) seed: Option<u64>,
}

impl Options {
    /// Sets the probability that a word of 8 bytes is sampled: 1e-4 is one sample per 78 KiB, and 1
    /// is every block. A block of S bytes is sampled with probability 1 - (1 - rate)^(S/8).
    #[must_use]
    pub const fn rate(rate: f64) -> Self {
        Self { rate, seed: None }
    }

    /// Sets the average number of bytes per sample: a rate of 8 / `bytes`. 8 or less is every block.
    #[must_use]
    pub const fn every(bytes: usize) -> Self {
        let bytes = if bytes < WORD { WORD } else { bytes };
        Self::rate(WORD as f64 / bytes as f64)
    }

    /// Sets the seed: in every run of a deterministic program, the same blocks are sampled.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }
}

/// A call stack.
#[derive(Clone)]
pub struct Stack(Arc<[u64]>);

impl Stack {
    pub(crate) fn new(addresses: &[u64]) -> Self {
        Self(addresses.into())
    }

    /// Return addresses, the innermost first; those of the sampler itself are among them.
    #[must_use]
    pub fn addresses(&self) -> &[u64] {
        &self.0
    }

    /// Functions, files and lines, the innermost first, inlined ones included. This reads the
    /// program's debug information, which takes long the first time.
    ///
    /// The first is where the program asked for memory: what the standard library did then, and the
    /// sampler, is left out, and so is what comes before `main` or a thread's function.
    #[must_use]
    pub fn frames(&self) -> Vec<Frame> {
        let frames = {
            let _inside = Inside::enter();
            let all = self.0.iter().map(|address| stack::resolve(*address));
            all.collect::<Vec<_>>()
        };
        let all = frames.iter().flat_map(|frames| frames.iter());
        let program = all.clone().skip_while(|frame| frame.is_library);
        let program = program.take_while(|frame| !stack::is_beginning(frame));
        let program: Vec<Frame> = program.cloned().collect();
        if program.is_empty() {
            return all.cloned().collect();
        }
        program
    }
}

impl PartialEq for Stack {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Stack {}

impl Hash for Stack {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.frames()).finish()
    }
}

/// A sampled block.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Block {
    /// Bytes that the program asked for.
    pub size: usize,
    /// The number of its bytes that were hit: 1 or more, and all of them at rate 1.
    pub hits: usize,
    /// The thread that allocated it: a small number, which is given again when a thread has ended.
    pub thread: usize,
    /// The stack that allocated it.
    pub stack: Stack,
    /// The sampling rate at that time, per word of 8 bytes.
    pub rate: f64,
}

impl Block {
    /// The average number of blocks of the program that this one represents.
    #[must_use]
    pub fn blocks(&self) -> f64 {
        let words = self.size as f64 / WORD as f64;
        let missed = words * (-self.rate).ln_1p();
        1.0 / -missed.exp_m1()
    }

    /// The average number of bytes of the program that this one represents.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.size as f64 * self.blocks()
    }
}

type OnAlloc<M> = Box<dyn Fn(&Block) -> Option<M> + Send + Sync>;
type OnRealloc<M> = Box<dyn Fn(&Block, M) -> Option<M> + Send + Sync>;
type OnFree<M> = Box<dyn Fn(&Block, M) + Send + Sync>;

/// The callbacks for sampled blocks.
///
/// While a closure runs, its thread is not sampled, what it allocates is not part of the profiled
/// heap, and a panic ends in the closure: the block is then not followed any more. Closures are
/// called by all threads, at the same time, wherever those allocate or free memory: so a closure must
/// not take a lock that the program allocates or frees under.
pub struct Tracker<M> {
    alloc: OnAlloc<M>,
    realloc: OnRealloc<M>,
    free: OnFree<M>,
}

impl<M: Send + 'static> Tracker<M> {
    /// `alloc` is called before a sampled block is allocated. What it returns is kept until the
    /// block dies; if that is nothing, the block is not followed.
    pub fn new(alloc: impl Fn(&Block) -> Option<M> + Send + Sync + 'static) -> Self {
        Self {
            alloc: Box::new(alloc),
            realloc: Box::new(|_, known| Some(known)),
            free: Box::new(|_, _| {}),
        }
    }

    /// `realloc` is called when a sampled block gets another size and is sampled again. Without it,
    /// what was kept is kept on. (If it is not sampled again, it is freed, as far as samples go.)
    #[must_use]
    pub fn on_realloc(
        mut self,
        realloc: impl Fn(&Block, M) -> Option<M> + Send + Sync + 'static,
    ) -> Self {
        self.realloc = Box::new(realloc);
        self
    }

    /// `free` is called when a sampled block was freed.
    #[must_use]
    pub fn on_free(mut self, free: impl Fn(&Block, M) + Send + Sync + 'static) -> Self {
        self.free = Box::new(free);
        self
    }
}

impl<M> fmt::Debug for Tracker<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracker").finish_non_exhaustive()
    }
}

type Shard<M> = Mutex<HashMap<u64, (Block, M)>>;

/// The live blocks, and the callbacks.
struct Live<M> {
    tracker: Tracker<M>,
    rate: AtomicU64,
    next: AtomicU64,
    shards: [Shard<M>; SHARDS],
    /// True if callbacks must not be called any more.
    ended: AtomicBool,
}

impl<M> Live<M> {
    fn shard(&self, token: u64) -> MutexGuard<'_, HashMap<u64, (Block, M)>> {
        let shard = &self.shards[usize::try_from(token).unwrap_or(0) % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove(&self, token: u64) -> Option<(Block, M)> {
        if self.ended.load(Ordering::Acquire) {
            return None;
        }
        self.shard(token).remove(&token)
    }

    fn insert(&self, block: Block, kept: M) -> u64 {
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        self.shard(token).insert(token, (block, kept));
        token
    }

    fn block(&self, thread: &Thread, sample: &Sample<'_>) -> Block {
        Block {
            size: sample.size,
            hits: sample.hits,
            thread: thread.number,
            stack: Stack::new(sample.stack),
            rate: f64::from_bits(self.rate.load(Ordering::Relaxed)),
        }
    }
}

impl<M: Send + 'static> Consumer for Live<M> {
    fn alloc(&self, thread: &mut Thread, sample: &Sample<'_>) -> Option<u64> {
        let block = self.block(thread, sample);
        let kept = (self.tracker.alloc)(&block)?;
        Some(self.insert(block, kept))
    }

    fn realloc(&self, thread: &mut Thread, token: u64, sample: &Sample<'_>) -> Option<u64> {
        let Some((_, kept)) = self.remove(token) else {
            return self.alloc(thread, sample);
        };
        let block = self.block(thread, sample);
        let kept = (self.tracker.realloc)(&block, kept)?;
        Some(self.insert(block, kept))
    }

    fn free(&self, _thread: &mut Thread, token: u64) {
        if let Some((block, kept)) = self.remove(token) {
            (self.tracker.free)(&block, kept);
        }
    }

    fn abandon(&self) {
        self.ended.store(true, Ordering::Release);
    }
}

/// Samples the program until it is dropped.
///
/// ```
/// use heapline::{Options, Profiler, Tracker};
///
/// #[global_allocator]
/// static ALLOC: heapline::Alloc = heapline::Alloc::system();
///
/// fn main() -> Result<(), heapline::StartError> {
///     let tracker = Tracker::new(|block| Some(format!("block of {} bytes", block.size)))
///         .on_free(|block, _name| assert!(block.hits > 0));
///     let profiler = Profiler::start(Options::rate(1.0), tracker)?;
///     let numbers = vec![1_u8; 1000];
///     let mut names = Vec::new();
///     profiler.for_each_live(|_block, name| names.push(name.clone()));
///     assert!(names.iter().any(|name| name == "block of 1000 bytes"));
///     drop(numbers);
///     Ok(())
/// }
/// ```
pub struct Profiler<M: Send + 'static = ()> {
    live: Arc<Live<M>>,
    session: Session,
}

impl Profiler {
    /// Samples the program to see what is alive, without closures.
    pub fn watch(options: Options) -> Result<Self, StartError> {
        Self::start(options, Tracker::new(|_| Some(())))
    }
}

impl<M: Send + 'static> Profiler<M> {
    /// Samples the program. Threads that are there already are sampled after they have allocated
    /// another 64 KiB, the calling one and new ones at once. One thing at a time can sample
    /// a program.
    pub fn start(options: Options, tracker: Tracker<M>) -> Result<Self, StartError> {
        let mut made = None;
        let session = session::start(options.rate, options.seed, || {
            let live = Arc::new(Live {
                tracker,
                rate: AtomicU64::new(options.rate.to_bits()),
                next: AtomicU64::new(0),
                shards: std::array::from_fn(|_| Mutex::default()),
                ended: AtomicBool::new(false),
            });
            made = Some(live.clone());
            Ok(live)
        })?;
        let live = made.ok_or(StartError::Running)?;
        Ok(Self { live, session })
    }

    /// Changes how often blocks are sampled. Other threads notice within 64 KiB.
    pub fn set_rate(&self, rate: f64) -> Result<(), StartError> {
        session::check_rate(rate)?;
        self.live.rate.store(rate.to_bits(), Ordering::Relaxed);
        session::set_rate(self.session, rate);
        Ok(())
    }

    /// Calls `f` for all sampled blocks that are alive. Meanwhile other threads may have to wait, so `f`
    /// must not wait for them.
    pub fn for_each_live(&self, mut f: impl FnMut(&Block, &M)) {
        let _inside = Inside::enter();
        for shard in &self.live.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for (block, kept) in shard.values() {
                f(block, kept);
            }
        }
    }

    /// The live blocks by allocating stack, largest first.
    #[must_use]
    pub fn live(&self) -> Vec<Site> {
        let mut sites: HashMap<Stack, Site> = HashMap::new();
        self.for_each_live(|block, _| {
            let new = || Site {
                stack: block.stack.clone(),
                sampled: 0,
                blocks: 0.0,
                bytes: 0.0,
            };
            let site = sites.entry(block.stack.clone()).or_insert_with(new);
            site.sampled += 1;
            site.blocks += block.blocks();
            site.bytes += block.bytes();
        });
        let mut sites: Vec<Site> = sites.into_values().collect();
        sites.sort_by(|a, b| b.bytes.total_cmp(&a.bytes));
        sites
    }
}

impl<M: Send + 'static> Drop for Profiler<M> {
    fn drop(&mut self) {
        session::stop(self.session);
        let _inside = Inside::enter();
        self.live.ended.store(true, Ordering::Release);
        for shard in &self.live.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let dead = std::mem::take(&mut *shard);
            // What the program kept may do anything when it is dropped.
            drop(shard);
            drop(dead);
        }
    }
}

impl<M: Send + 'static> fmt::Debug for Profiler<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profiler").finish_non_exhaustive()
    }
}

/// The live memory that was allocated by one stack.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Site {
    /// The stack that allocated it.
    pub stack: Stack,
    /// Blocks that were sampled.
    pub sampled: usize,
    /// Blocks, as estimated.
    pub blocks: f64,
    /// Bytes, as estimated.
    pub bytes: f64,
}
