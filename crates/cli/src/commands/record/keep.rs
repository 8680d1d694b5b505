//! `--keep`: follows a recording, keeps its history within a size, and frees what it has read.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use heapline_export::keep::Keeper;
use heapline_formats::is_unlocked;
use heapline_profile::query::Size;
use heapline_trace::{Decoder, EarlyEnd, Ending, FlawKind, GrowingTrace, Options, Step};
use rustix::fs::{FallocateFlags, fallocate};

use crate::error::warn;

/// The minimum of `--keep`.
const MIN_SIZE: f64 = 1024.0 * 1024.0;

/// Parts of the size: the trace, while it is replaced also its successor, what the program writes, and a
/// reserve for the packets that it fills.
const PARTS: u64 = 4;

/// The time after which the trace is written though there is no need to free anything.
const INTERVAL: Duration = Duration::from_secs(60);

/// The share of the time that is spent on writing the trace.
const MAX_SHARE: u32 = 20;

/// The time between two looks at what the program has written.
const SHORTEST_WAIT: Duration = Duration::from_millis(5);
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// The block size of file systems: less cannot be freed.
const BLOCK: u64 = 4096;

/// Code locations that are kept in memory.
const MAX_LOCATIONS: usize = 1 << 21;

/// A recording whose history is kept within a size.
#[derive(Debug)]
pub(super) struct Keeping {
    /// The file that the program writes to.
    pub(super) raw: PathBuf,
    /// Bytes of each part.
    part: u64,
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<anyhow::Result<Option<EarlyEnd>>>>,
}

impl Keeping {
    /// Checks that it is possible, before the program is started. `prefix` is that of traces.
    pub(super) fn prepare(size: Size, prefix: &Path) -> anyhow::Result<Self> {
        let bytes = size.bytes(8.0);
        if bytes < MIN_SIZE {
            bail!("--keep must be at least 1MiB");
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is positive, and a cast saturates"
        )]
        let part = bytes as u64 / PARTS;
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

    /// Tells the recorder in the program where to write, and how much.
    pub(super) fn set_environment(&self, command: &mut Command) {
        command.env("HEAPLINE_TRACE", &self.raw);
        command.env("HEAPLINE_MAX_ALLOCATED", self.part.to_string());
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

    /// Waits until everything is in the trace, now that the program has ended. Returns how the recording
    /// ended before the program, if it did.
    pub(super) fn finish(&mut self) -> anyhow::Result<Option<EarlyEnd>> {
        self.has_ended.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else {
            return Ok(None);
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
    fn follow(&mut self, raw: &Path, has_ended: &AtomicBool) -> anyhow::Result<Option<EarlyEnd>> {
        let Some(mut trace) = wait_for(raw, has_ended)? else {
            return self.read(raw);
        };
        self.decoder.push(trace.first_packet());
        self.decoder.visit_packet(&mut self.keeper)?;
        let first_packet = trace.first_packet().len() as u64;
        let mut freed = first_packet.next_multiple_of(BLOCK);
        let file = File::options().write(true).open(raw)?;
        let mut wait = SHORTEST_WAIT;
        loop {
            let is_last = has_ended.load(Ordering::Acquire);
            let before = trace.consumed();
            trace.refresh()?;
            while let Some(part) = trace.next_packet()? {
                let events = self.decoder.resume_packet(part, &mut self.keeper)?;
                self.is_behind |= events > 0;
                self.keeper.fit();
            }
            if trace.has_ended() || is_last {
                let end = trace.early_end();
                return self.write(end).map(|()| end);
            }
            if self.keeper.is_full() || self.decoder.locations().len() > MAX_LOCATIONS {
                // The program goes on, and records until its file is full.
                let end = Some(EarlyEnd {
                    reason: Ending::Full,
                    errno: 0,
                    after_ms: u32::try_from(self.keeper.now() / 1000).unwrap_or(u32::MAX),
                });
                return self.write(end).map(|()| end);
            }
            let read = trace.consumed() / BLOCK * BLOCK;
            let must_free = read.saturating_sub(freed) > self.part / 4;
            let is_due =
                self.is_behind && self.written.elapsed() > INTERVAL.max(self.cost * MAX_SHARE);
            if must_free || is_due {
                self.write(None)?;
                if read > freed {
                    // What is freed is in the trace.
                    free(&file, freed, read)?;
                    freed = read;
                }
            }
            wait = if trace.consumed() - before > self.part / 16 {
                SHORTEST_WAIT
            } else {
                LONGEST_WAIT.min(2 * wait)
            };
            thread::park_timeout(wait);
        }
    }

    /// Reads a recording that has ended before it could be followed.
    fn read(&mut self, raw: &Path) -> anyhow::Result<Option<EarlyEnd>> {
        let mut bytes = match heapline_trace::open(raw) {
            Ok(bytes) => bytes,
            // Nothing was recorded.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
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
        self.write(end).map(|()| end)
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
            // With the usual permissions instead of tempfile's.
            .make_in(self.path.parent().unwrap_or(Path::new("")), |path| {
                File::options().write(true).create_new(true).open(path)
            })
    }
}
