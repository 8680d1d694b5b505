//! The recorder, which receives all events of the program.

mod limits;

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use heapline_trace::tail::layout::{LaneWord, MAX_LANES, PAGE, SLOT, Word};
use heapline_trace::{
    Block, CollectionEncoder, DEEPER_CALLS, EarlyEnd, Encoder, FrameSink, Frames,
    MAX_WRITTEN_PACKET, PacketMemory, TaggedCode,
};

use crate::beginning;
use crate::clock::{Clock, Reading};
use crate::file::{TraceFile, identity};
use crate::gaps::Unit;
use crate::lane::{Counters, Domain, Ids, Kind, Lane, LaneSink, PendingBlock, TakenLane, Work};
use crate::map::{map, reserve};
use crate::tail::{self, Ending, Note, Page, State};

/// Number of ids that a domain reserves at a time.
const IDS: u64 = 10_000;

/// Gap between the id ranges of consecutive recorders in a process. The fast path
/// [`Encoder::try_collect`] encodes only ids within 2^16, so ids of the previous recorder never look
/// recent.
const GAP: u64 = 1 << 16;

/// The time that a recording that ends waits for a domain in the middle of an event.
const PATIENCE: Duration = Duration::from_secs(1);

/// Options of a recording.
#[derive(Clone, Debug)]
pub struct Options {
    /// The trace. It is overwritten.
    pub trace: PathBuf,
    /// True if a supervisor [finishes](tail::finish) the trace when the program has ended.
    /// Otherwise the recorder tries to leave no tail behind.
    pub supervised: bool,
    /// The probability that a word of 8 bytes is sampled.
    pub sample_rate: f64,
    /// The unit of sampling and of block lengths.
    pub unit: Unit,
    /// A description by the user.
    pub context: Option<String>,
    /// The parameters of the runtime.
    pub runtime_params: String,
    /// The seed of the samples, if it is known.
    pub seed: Option<u64>,
    /// The trace shall not be larger.
    pub max_size: Option<u64>,
    /// The trace shall not take more bytes on disk. Another process reads it, and frees what it has read. If
    /// that is too slow, new blocks are not recorded for a while.
    pub max_allocated: Option<u64>,
    /// Frames that are kept of a stack: the innermost. One more stands for the others
    /// ([`DEEPER_CALLS`]).
    pub stack_depth: Option<usize>,
    /// The first id to give out. Ids below are not ours: see [`Recorder::next_id`].
    pub first_id: u64,
}

/// Records one process.
///
/// Domains are told apart by small numbers; the threads of one domain must not call at the same
/// time, those of different ones may. What cannot be recorded any more is ignored.
#[derive(Debug)]
pub struct Recorder {
    /// True while events are recorded.
    recording: AtomicBool,
    /// True while new blocks are recorded; implies `recording`.
    open: AtomicBool,
    pub(crate) file: &'static TraceFile,
    max_size: Option<u64>,
    max_allocated: Option<u64>,
    /// True if new blocks are not recorded until there is room again.
    is_paused: AtomicBool,
    /// Blocks that were not recorded in the pause.
    refused: AtomicU64,
    stack_depth: usize,
    first_id: u64,
    next_id: AtomicU64,
    /// Blocks whose end is still to come, without those of packets that are not written yet.
    outstanding: AtomicI64,
    clock: Clock,
    start_time: u64,
    pid: u64,
    pub(crate) lanes: Box<[AtomicPtr<Lane>]>,
    trace: PathBuf,
    tail_path: PathBuf,
    /// Device and inode of the tail: another recording may have replaced it.
    tail_identity: (u64, u64),
    /// The tail's first page.
    status: Mutex<Page>,
    supervised: bool,
    runtime_params: String,
    seed: Option<u64>,
    sample_rate: f64,
}

impl Recorder {
    /// Starts a trace. The recorder is not freed, unless somebody knows that the last thread has
    /// [left](Self::free) it.
    ///
    /// # Errors
    ///
    /// Nothing is left behind if there is no room for the first packets, or if another process
    /// records to the same trace.
    pub fn start(options: &Options) -> io::Result<&'static Self> {
        let tail = tail::prepare(&options.trace)?;
        Self::start_with(options, &tail).inspect_err(|_| {
            let _ = std::fs::remove_file(tail::path(&options.trace));
            if std::fs::metadata(&options.trace).is_ok_and(|data| data.is_file() && data.len() == 0)
            {
                let _ = std::fs::remove_file(&options.trace);
            }
        })
    }

    fn start_with(options: &Options, tail: &File) -> io::Result<&'static Self> {
        let trace = std::path::absolute(&options.trace)?;
        let tail_path = tail::path(&trace);
        let tail_identity = identity(&tail.metadata()?);
        let status = Page::new(map(tail, 0, PAGE)?);
        let clock = Clock::start();
        let start_time = clock.time(Reading::now());
        let pid = u64::from(std::process::id());
        let file = &*Box::leak(Box::new(TraceFile::create(&options.trace)?));
        beginning::write(file, options, pid, start_time)?;
        status.set(Word::Pid as usize, pid);
        status.set(Word::StartTime as usize, start_time);
        status.set(Word::Domains as usize, 1);
        status.set(Word::State as usize, State::Recording as u64);
        Ok(Box::leak(Box::new(Self {
            recording: AtomicBool::new(true),
            open: AtomicBool::new(true),
            file,
            max_size: options.max_size,
            max_allocated: options.max_allocated,
            is_paused: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            stack_depth: options.stack_depth.unwrap_or(usize::MAX),
            first_id: options.first_id,
            next_id: AtomicU64::new(options.first_id),
            outstanding: AtomicI64::new(0),
            clock,
            start_time,
            pid,
            lanes: (0..MAX_LANES).map(|_| AtomicPtr::default()).collect(),
            trace,
            tail_path,
            tail_identity,
            status: Mutex::new(status),
            supervised: options.supervised,
            runtime_params: options.runtime_params.clone(),
            seed: options.seed,
            sample_rate: options.sample_rate,
        })))
    }

    /// Takes note of a new block; returns the id under which to say what becomes of it.
    ///
    /// `stack` is as a sampler gives it: the innermost function first. `resolve` is asked for the
    /// frames of codes that are new to the domain. `None` if the block is not recorded.
    ///
    /// # Panics
    ///
    /// Like the others that take events, only by a mistake in the recorder, or by `resolve`. That
    /// ends the recording. Whoever is called by foreign code has to [catch](contained) it.
    pub fn alloc<'s>(
        &self,
        domain: usize,
        block: Block,
        stack: impl Into<Frames<'s>>,
        resolve: impl FnMut(u64, &mut FrameSink<'_>),
    ) -> Option<u64> {
        if !self.is_open() {
            return None;
        }
        let mut stack = stack.into();
        let cut;
        if let Some((inner, _)) = stack.codes.split_at_checked(self.stack_depth)
            && inner.len() < stack.codes.len()
        {
            cut = [inner, &[TaggedCode::new(DEEPER_CALLS)]].concat();
            // A stack that was cut before is complete.
            if stack.codes != cut {
                stack = Frames::from(&cut);
            }
        }
        let kind: Kind = |counters| &mut counters.blocks;
        self.with_lane(domain, kind, |work, time, sink| {
            let id = self.take_id(work);
            work.encoder.alloc(time, id, block, stack, resolve, sink)?;
            work.ids.advance();
            Ok(id + self.first_id)
        })
    }

    /// Takes note of a block that the [fast path](Lane::try_alloc) of one of this recorder's lanes
    /// did not complete. Otherwise like [`alloc`](Self::alloc).
    pub fn finish<'s>(
        &self,
        pending: PendingBlock<'_>,
        block: Block,
        stack: impl Into<Frames<'s>>,
        resolve: impl FnMut(u64, &mut FrameSink<'_>),
    ) -> Option<u64> {
        let PendingBlock {
            mut domain,
            pending,
        } = pending;
        // If part of it is in the trace, it must be completed though no more blocks are taken.
        if !domain.work.encoder.is_half_done() && !self.is_open() {
            domain.give_back();
            return None;
        }
        let kind: Kind = |counters| &mut counters.blocks;
        let time = domain.begin(Reading::now());
        self.with_taken(domain, kind, |work, sink| {
            let id = self.take_id(work);
            let pending = work.encoder.attach(pending);
            pending.finish(time, id, block, stack, resolve, sink)?;
            work.ids.advance();
            Ok(id + self.first_id)
        })
    }

    /// The id of a domain's next block.
    fn take_id(&self, work: &mut Work) -> u64 {
        work.ids.next(|| {
            let first = self.next_id.fetch_add(IDS, Ordering::Relaxed) - self.first_id;
            first..first + IDS
        })
    }

    /// Takes note that a block was promoted to the major heap.
    pub fn promote(&self, domain: usize, id: u64) {
        let kind: Kind = |counters| &mut counters.promotions;
        self.mark(domain, id, kind, |work, time, id, sink| {
            work.encoder.promote(time, id, sink)
        });
    }

    /// Takes note that a block is dead.
    pub fn collect(&self, domain: usize, id: u64) {
        let kind: Kind = |counters| &mut counters.collections;
        self.mark(domain, id, kind, |work, time, id, sink| {
            work.encoder.collect(time, id, sink)
        });
    }

    /// The lane of a domain, if it has had an event.
    #[must_use]
    pub fn lane(&self, domain: usize) -> Option<&'static Lane> {
        load(self.lanes.get(domain)?)
    }

    /// The trace: an absolute path, as the program sees it.
    #[must_use]
    pub fn trace(&self) -> &Path {
        &self.trace
    }

    /// The parameters of the runtime.
    #[must_use]
    pub fn runtime_params(&self) -> &str {
        &self.runtime_params
    }

    /// The seed of the samples, if it is known.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// The probability that a word of 8 bytes is sampled.
    #[must_use]
    pub fn sample_rate(&self) -> f64 {
        self.sample_rate
    }

    /// An id that is greater than all that were given out: where a recorder that follows this one
    /// in the same process starts, so that it knows its own blocks.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.next_id.load(Ordering::Relaxed) + GAP
    }

    /// Ends the recording. Waits for those domains that are in the middle of an event.
    pub fn stop(&self) {
        if !self.recording.swap(false, Ordering::SeqCst) {
            return;
        }
        self.open.store(false, Ordering::Relaxed);
        let mut all = true;
        for lane in self.lanes.iter().filter_map(load) {
            // It is never given back.
            let Some(mut domain) = take_patiently(lane) else {
                all = false;
                continue;
            };
            let flush = || {
                self.work(&mut domain, |work, sink| {
                    work.encoder.flush(sink)?;
                    work.collections.flush(sink)
                })
            };
            let written = contained(None, flush);
            domain.publish();
            all &= written.is_some();
        }
        if !all {
            // The tail has what is not in the trace.
            return;
        }
        self.status().set(Word::State as usize, State::Ended as u64);
        if !self.supervised && self.open_tail().is_ok() {
            // It is an empty file by now.
            let _ = std::fs::remove_file(&self.tail_path);
        }
    }

    /// Ends the recording without touching what a forked process has in common with its parent,
    /// which goes on.
    pub fn abandon(&self) {
        self.recording.store(false, Ordering::Relaxed);
        self.open.store(false, Ordering::Relaxed);
        for lane in self.lanes.iter().filter_map(load) {
            // It is never given back.
            let _ = lane.take();
        }
    }

    /// Ends the recording because of a mistake in it.
    pub fn fail(&self) {
        self.end_early(Ending::Bug, None);
    }

    /// Returns true while events are recorded.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.recording.load(Ordering::Relaxed)
    }

    /// Takes note that the recording gives way to the program's own sampler, and stops.
    pub fn give_way(&self) {
        self.say_ending(Ending::TakenOver, None);
        self.stop();
    }

    /// Takes note of something to tell the user.
    pub fn note(&self, note: Note) {
        let status = self.status();
        let notes = status.get(Word::Notes as usize) | note as u64;
        status.set(Word::Notes as usize, notes);
    }

    /// The number of signals that asked for a heap snapshot, for whoever reads the tail. It is there as long
    /// as the recorder is not [freed](Self::free).
    pub fn snapshot_signals(&self) -> Option<&'static AtomicU64> {
        self.status().place(Word::SnapshotSignals as usize)
    }

    /// Takes note of time that the sampler has taken, in nanoseconds.
    pub fn add_sampler_time(&self, nanos: u64) {
        let status = self.status();
        let before = status.get(Word::SamplerNanos as usize);
        status.set(Word::SamplerNanos as usize, before.saturating_add(nanos));
    }

    /// Takes note that the program started a domain.
    pub fn domain_started(&self) {
        let status = self.status();
        let domains = status.get(Word::Domains as usize);
        status.set(Word::Domains as usize, domains + 1);
    }

    fn mark(
        &self,
        domain: usize,
        id: u64,
        kind: Kind,
        encode: impl FnOnce(&mut Work, u64, u64, &mut LaneSink) -> io::Result<()>,
    ) {
        // Blocks of a process that this one was forked from are in its trace.
        let Some(id) = id.checked_sub(self.first_id) else {
            return;
        };
        if self.recording.load(Ordering::Relaxed) {
            self.with_lane(domain, kind, |work, time, sink| {
                encode(work, time, id, sink)
            });
        }
    }

    /// Takes an event of a domain.
    fn with_lane<R>(
        &self,
        domain: usize,
        kind: Kind,
        encode: impl FnOnce(&mut Work, u64, &mut LaneSink) -> io::Result<R>,
    ) -> Option<R> {
        let mut domain = self.take_lane(domain)?;
        let time = domain.begin(Reading::now());
        self.with_taken(domain, kind, |work, sink| encode(work, time, sink))
    }

    /// Takes the lane of a domain, unless the recording has ended.
    pub(crate) fn taken_lane(&self, domain: usize) -> Option<TakenLane<'_>> {
        if !self.is_recording() {
            return None;
        }
        self.take_lane(domain)
    }

    fn take_lane(&self, domain: usize) -> Option<TakenLane<'_>> {
        let lane = match load(self.lanes.get(domain)?) {
            Some(lane) => lane,
            None => self.new_lane(domain)?,
        };
        lane.take()
    }

    /// Nanoseconds from the start of the trace to a reading of a lane's clock.
    pub(crate) fn nanos_since_start(&self, clock: Clock, time: Reading) -> u64 {
        clock.nanos_since(self.start_time, time)
    }

    /// Takes an event that has begun, and gives the lane back.
    fn with_taken<R>(
        &self,
        mut domain: TakenLane<'_>,
        kind: Kind,
        encode: impl FnOnce(&mut Work, &mut LaneSink) -> io::Result<R>,
    ) -> Option<R> {
        let result = self.work(&mut domain, encode);
        if result.is_some() {
            domain.count(kind);
        } else {
            domain.give_back();
        }
        result
    }

    /// Does something for a domain. What goes wrong ends the recording.
    pub(crate) fn work<R>(
        &self,
        domain: &mut Domain,
        f: impl FnOnce(&mut Work, &mut LaneSink) -> io::Result<R>,
    ) -> Option<R> {
        let bug = Bug(self);
        domain.work.ids.catch_up(&domain.work.encoder);
        let result = f(&mut domain.work, &mut domain.sink);
        std::mem::forget(bug);
        match result {
            Ok(result) => {
                if domain.sink.wrote {
                    domain.sink.wrote = false;
                    self.check_size(&mut domain.work);
                }
                domain.work.ids.set_fast(&domain.work.encoder);
                Some(result)
            }
            Err(error) => {
                self.end_early(Ending::Unwritable, error.raw_os_error());
                None
            }
        }
    }

    #[cold]
    fn end_early(&self, ending: Ending, errno: Option<i32>) {
        self.recording.store(false, Ordering::Relaxed);
        self.open.store(false, Ordering::Relaxed);
        self.say_ending(ending, errno);
    }

    /// Says why the recording has less than it could. The gravest reason stays.
    fn say_ending(&self, ending: Ending, errno: Option<i32>) {
        let time = self.now();
        let status = self.status();
        if status.get(Word::Ending as usize) >= ending as u64 {
            return;
        }
        status.set(Word::Ending as usize, ending as u64);
        let errno = errno.and_then(|errno| u64::try_from(errno).ok());
        status.set(Word::Errno as usize, errno.unwrap_or(0));
        status.set(Word::EndingTime as usize, time);
        drop(status);
        self.file.mark(EarlyEnd {
            reason: ending,
            errno: errno.and_then(|errno| errno.try_into().ok()).unwrap_or(0),
            after_ms: (time / 1000).try_into().unwrap_or(u32::MAX),
        });
    }

    /// Makes the lane of a domain that has none.
    #[cold]
    fn new_lane(&self, domain: usize) -> Option<&'static Lane> {
        let lane = match contained(None, || Some(self.try_new_lane(domain))) {
            Some(Ok(lane)) => lane,
            // Without the blocks of this domain, all sums would be wrong.
            Some(Err(error)) => {
                self.end_early(Ending::Unwritable, error.raw_os_error());
                return None;
            }
            None => {
                self.fail();
                return None;
            }
        };
        self.lanes.get(domain)?.store(lane, Ordering::Release);
        // SAFETY: it was made just now, and is never freed.
        Some(unsafe { &*lane })
    }

    fn try_new_lane(&self, domain: usize) -> io::Result<*mut Lane> {
        let status = self.status();
        let lanes = status.get(Word::Lanes as usize);
        let number = u16::try_from(domain).map_err(io::Error::other)?;
        let tail = self.open_tail()?;
        let offset = PAGE as u64 + lanes * SLOT as u64;
        reserve(&tail, offset, SLOT)?;
        let (page, packets) = map(&tail, offset, SLOT)?.split_at_mut(PAGE);
        let (events, packets) = packets.split_at_mut(MAX_WRITTEN_PACKET);
        let (names, collections) = packets.split_at_mut(MAX_WRITTEN_PACKET);
        let packets_at = [&*events, &*names, &*collections].map(|memory| memory.as_ptr().addr());
        let packet = |memory| <&mut PacketMemory>::try_from(memory).map_err(io::Error::other);
        let (events, names) = (packet(events)?, packet(names)?);
        let collections = packet(collections)?;
        let encoder = Encoder::within(self.pid, number, self.start_time, events, names);
        let collections = CollectionEncoder::within(number, self.start_time, collections);
        let sink = LaneSink {
            page: Page::new(page),
            file: self.file,
            packets_at,
            wrote: false,
        };
        sink.set(LaneWord::Domain, u64::from(number));
        status.set(Word::Lanes as usize, lanes + 1);
        Ok(Box::into_raw(Box::new(Lane::new(Domain {
            work: Work {
                encoder,
                collections,
                ids: Ids::default(),
                counters: Counters::default(),
            },
            sink,
            clock: self.clock,
            began: 0,
            id_offset: self.first_id.wrapping_sub(1),
        }))))
    }

    /// Opens the tail, unless another file is in its place.
    fn open_tail(&self) -> io::Result<File> {
        let tail = File::options()
            .read(true)
            .write(true)
            .open(&self.tail_path)?;
        if identity(&tail.metadata()?) != self.tail_identity {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "another recording has replaced the tail",
            ));
        }
        Ok(tail)
    }

    pub(crate) fn status(&self) -> MutexGuard<'_, Page> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does something for foreign code, which no panic may reach. A recorder has ended its recording by
/// then.
#[inline]
pub fn contained<R>(otherwise: R, f: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or(otherwise)
}

/// Ends the recording if it is dropped, that is if there is a panic.
struct Bug<'a>(&'a Recorder);

impl Drop for Bug<'_> {
    fn drop(&mut self) {
        self.0.fail();
    }
}

/// A lane that exists.
#[inline]
fn load(lane: &AtomicPtr<Lane>) -> Option<&'static Lane> {
    // SAFETY: lanes are made before they are stored, and are never freed.
    unsafe { lane.load(Ordering::Acquire).as_ref() }
}

/// Takes a lane from a thread that is about to give it back.
fn take_patiently(lane: &Lane) -> Option<TakenLane<'_>> {
    let mut taken = None;
    wait_until(PATIENCE, || {
        taken = lane.take();
        taken.is_some()
    });
    taken
}

/// Waits for something. Returns false if it takes too long.
fn wait_until(patience: Duration, mut is_done: impl FnMut() -> bool) -> bool {
    let tries = patience.as_micros() / 100;
    for _ in 0..tries {
        if is_done() {
            return true;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    false
}
