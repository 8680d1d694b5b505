//! `--keep`: follows a recording, keeps its history within a size, and frees what it has read.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use heapline_formats::is_unlocked;
use heapline_profile::query::Size;
use heapline_trace::keep::Keeper;
use heapline_trace::tail::{self, Tail};
use heapline_trace::{Decoder, EarlyEnd, Ending, FlawKind, GrowingTrace, Options, Step};
use rustix::fs::{FallocateFlags, fallocate};

use crate::error::warn;

/// The minimum of `--keep`.
const MIN_SIZE: u64 = 1024 * 1024;

/// Parts of the size: the trace, while it is replaced also its successor, and two for what the program writes
/// and the packets that it fills.
const PARTS: u64 = 4;

/// The time after which the trace is written though there is no need to free anything.
const INTERVAL: Duration = Duration::from_secs(60);

/// The share of the time that is spent on writing the trace.
const MAX_SHARE: u32 = 20;

/// The time between two looks at what the program has written.
const SHORTEST_WAIT: Duration = Duration::from_millis(5);
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// Bytes that a program may write in a second before there are gaps: with little room, the time between two
/// looks is shorter.
const EXPECTED_SPEED: u64 = 20 << 20;

/// The block size of file systems: less cannot be freed.
const BLOCK: u64 = 4096;

/// Code locations that are kept in memory.
const MAX_LOCATIONS: usize = 1 << 21;

/// The result of a recording that was kept within a size.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// How it ended before the program, if it did.
    pub(super) early_end: Option<EarlyEnd>,
    /// The times in which new blocks were not recorded, from and to, in microseconds since the start.
    pub(super) gaps: Vec<(u64, u64)>,
}

/// A recording whose history is kept within a size.
#[derive(Debug)]
pub(super) struct Keeping {
    /// The file that the program writes to.
    pub(super) raw: PathBuf,
    /// Bytes of each part.
    part: u64,
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<anyhow::Result<Kept>>>,
}

impl Keeping {
    /// Checks that it is possible, before the program is started. `prefix` is that of traces.
    pub(super) fn prepare(size: Size, prefix: &Path) -> anyhow::Result<Self> {
        let bytes = size.whole_bytes();
        if bytes < MIN_SIZE {
            bail!("--keep must be at least 1MiB");
        }
        let part = bytes / PARTS;
        let name = prefix.file_name().unwrap_or_default().to_string_lossy();
        let raw = prefix.with_file_name(format!(".{name}.{}.raw", std::process::id()));
        check_holes(&raw).with_context(|| {
            format!(
                "--keep needs a file system that can free the beginning of a file, such as ext4, XFS, \
                 Btrfs or tmpfs; record to a file elsewhere than {}",
                prefix.with_file_name("").display()
            )
        })?;
        Ok(Self {
            raw,
            part,
            has_ended: Arc::default(),
            thread: None,
        })
    }

    /// Bytes that the program's own file may take.
    pub(super) fn max_allocated(&self) -> u64 {
        self.part / 2 * 3
    }

    /// Follows the recording, and keeps it in a trace.
    pub(super) fn start(&mut self, trace: PathBuf) {
        let (raw, part) = (self.raw.clone(), self.part);
        let has_ended = Arc::clone(&self.has_ended);
        self.thread = Some(thread::spawn(move || {
            let shown = trace.display().to_string();
            let result = KeptTrace::new(trace, part).follow(&raw, &has_ended);
            if let (Err(error), false) = (&result, has_ended.load(Ordering::Acquire)) {
                warn(&format!(
                    "{shown} is not written any more: {error:#}; the program goes on"
                ));
            }
            result
        }));
    }

    /// Waits until everything is in the trace, now that the program has ended.
    pub(super) fn finish(&mut self) -> anyhow::Result<Kept> {
        self.has_ended.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else {
            return Ok(Kept::default());
        };
        thread.thread().unpark();
        match thread.join() {
            Ok(result) => result,
            Err(_) => bail!("a bug in heapline; please report it"),
        }
    }
}

/// Tests whether blocks of a file can be freed.
fn check_holes(path: &Path) -> io::Result<()> {
    let file = File::create_new(path)?;
    let tried = file
        .write_all_at(&[1; 8192], 0)
        .and_then(|()| free(&file, 0, BLOCK));
    let removed = fs::remove_file(path);
    tried.and(removed)
}

/// Frees a part of a file. It reads as zeros then.
fn free(file: &File, start: u64, end: u64) -> io::Result<()> {
    let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(fallocate(file, how, start, end - start)?)
}

/// Waits for a recording to begin. `None` if it has ended by then.
fn wait_for(raw: &Path, has_ended: &AtomicBool) -> io::Result<Option<GrowingTrace>> {
    loop {
        let is_last = has_ended.load(Ordering::Acquire);
        match GrowingTrace::open(raw, is_unlocked) {
            Ok(Some(trace)) => return Ok(Some(trace)),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        if is_last {
            return Ok(None);
        }
        thread::park_timeout(SHORTEST_WAIT);
    }
}

/// The trace that is kept.
struct KeptTrace {
    path: PathBuf,
    part: u64,
    decoder: Decoder,
    keeper: Keeper,
    /// True if there are events that are not in the trace.
    is_behind: bool,
    written: Instant,
    /// The time that it took to write the trace.
    cost: Duration,
}

impl KeptTrace {
    fn new(path: PathBuf, part: u64) -> Self {
        Self {
            path,
            part,
            decoder: Decoder::new(Options::new().eager(true)),
            keeper: Keeper::new(part),
            is_behind: true,
            written: Instant::now(),
            cost: Duration::ZERO,
        }
    }

    /// Follows the program to its end.
    fn follow(&mut self, raw: &Path, has_ended: &AtomicBool) -> anyhow::Result<Kept> {
        let Some(mut trace) = wait_for(raw, has_ended)? else {
            return self.read(raw);
        };
        self.decoder.push(trace.first_packet());
        self.decoder.visit_packet(&mut self.keeper)?;
        let first_packet = trace.first_packet().len() as u64;
        let mut freed = first_packet.next_multiple_of(BLOCK);
        let file = File::options().write(true).open(raw)?;
        let longest_wait = Duration::from_micros(self.part * 1_000_000 / EXPECTED_SPEED);
        let longest_wait = longest_wait.clamp(SHORTEST_WAIT, LONGEST_WAIT);
        let mut wait = SHORTEST_WAIT;
        loop {
            let is_last = has_ended.load(Ordering::Acquire);
            let before = trace.consumed();
            trace.refresh()?;
            trace
                .pause()
                .into_iter()
                .for_each(|pause| self.keeper.add_pause(pause));
            while let Some(part) = trace.next_packet()? {
                let events = self.decoder.resume_packet(part, &mut self.keeper)?;
                self.is_behind |= events > 0;
                self.keeper.fit();
            }
            if trace.has_ended() || is_last {
                let end = trace.early_end();
                return self.end(end);
            }
            if self.keeper.is_full() || self.decoder.locations().len() > MAX_LOCATIONS {
                // The program goes on, and records until its file is full.
                let end = Some(EarlyEnd {
                    reason: Ending::Full,
                    errno: 0,
                    after_ms: u32::try_from(self.keeper.now() / 1000).unwrap_or(u32::MAX),
                });
                return self.end(end);
            }
            let read = trace.consumed() / BLOCK * BLOCK;
            let must_free = read.saturating_sub(freed) > self.part / 4;
            let is_due =
                self.is_behind && self.written.elapsed() > INTERVAL.max(self.cost * MAX_SHARE);
            // Writing takes a while. A program that is fast does not wait for it: there would be gaps.
            let has_time = self.written.elapsed() > self.cost * MAX_SHARE;
            if is_due || must_free && has_time {
                self.write(None)?;
            }
            if must_free {
                free(&file, freed, read)?;
                freed = read;
            }
            wait = if trace.consumed() - before > self.part / 16 {
                SHORTEST_WAIT
            } else {
                longest_wait.min(2 * wait)
            };
            thread::park_timeout(wait);
        }
    }

    /// Reads a recording that has ended before it could be followed.
    fn read(&mut self, raw: &Path) -> anyhow::Result<Kept> {
        if let Ok(mut tail) = File::open(tail::path(raw))
            && let Some(pause) = Tail::read(&mut tail).ok().and_then(|tail| tail.pause())
        {
            self.keeper.add_pause(pause);
        }
        let mut bytes = match heapline_trace::open(raw) {
            Ok(bytes) => bytes,
            // Nothing was recorded.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Kept::default()),
            Err(error) => return Err(error.into()),
        };
        loop {
            match self.decoder.visit_packet(&mut self.keeper)? {
                Step::Packet(_) => self.keeper.fit(),
                Step::End => break,
                Step::NeedInput => match bytes.read(self.decoder.space())? {
                    0 => self.decoder.finish(),
                    n => self.decoder.filled(n),
                },
            }
        }
        let mut flaws = self.decoder.damage().flaws().iter();
        let end = flaws.find_map(|flaw| match flaw.kind {
            FlawKind::EndedEarly(end) => Some(end),
            _ => None,
        });
        self.end(end)
    }

    /// Writes the trace for the last time.
    fn end(&mut self, early_end: Option<EarlyEnd>) -> anyhow::Result<Kept> {
        self.write(early_end)?;
        Ok(Kept {
            early_end,
            gaps: self.keeper.gaps(),
        })
    }

    /// Writes the trace, and replaces the one before at once.
    fn write(&mut self, end: Option<EarlyEnd>) -> anyhow::Result<()> {
        let shown = self.path.display();
        let cannot_write = || format!("cannot write {shown}");
        let Some(info) = self.decoder.info() else {
            return Ok(());
        };
        let start = Instant::now();
        loop {
            let file = self.create().with_context(cannot_write)?;
            let mut output = BufWriter::with_capacity(1 << 18, file.as_file());
            let locations = self.decoder.locations();
            let size = self.keeper.write(info, locations, end, &mut output);
            let size = size.and_then(|size| output.flush().map(|()| size));
            let size = size.with_context(cannot_write)?;
            drop(output);
            if size <= self.part || self.keeper.is_full() {
                file.persist(&self.path).with_context(cannot_write)?;
                break;
            }
            self.keeper.fit();
        }
        self.is_behind = false;
        self.written = Instant::now();
        self.cost = start.elapsed();
        Ok(())
    }

    fn create(&self) -> io::Result<tempfile::NamedTempFile> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        tempfile::Builder::new()
            .prefix(&format!(".{name}.heapline-"))
            .tempfile_in(self.path.parent().unwrap_or(Path::new("")))
    }
}
