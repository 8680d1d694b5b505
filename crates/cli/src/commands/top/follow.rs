//! A trace file that may grow: a recording is read on, other files are loaded again when they have changed.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, bail};
use heapline_formats::{Options, Reader};
use heapline_profile::{LiveProfile, Profile, Recursion, StoreOptions};
use heapline_trace::Snapshot;
use heapline_tui::{Newest, Progress, Source};

use crate::input::Input;
use crate::process;
use crate::reopen;
use crate::snapshot_file::refuse_other_than_trace;

/// Size and time of a file: they change when the file does.
type Stamp = (u64, Option<SystemTime>);

/// A trace file that may grow.
pub(super) struct Follower {
    input: Input,
    store: StoreOptions,
    /// A pipe, which does not grow.
    copy: Option<Snapshot>,
    /// Returns true if the program that was started still runs.
    is_running: Option<IsRunning>,
    /// The recording that is being read on.
    live: Option<LiveProfile>,
    /// The state of the file when it was last loaded.
    seen: Option<Stamp>,
}

/// Returns true if a program runs.
pub(in crate::commands) type IsRunning = Box<dyn FnMut() -> bool + Send>;

impl Follower {
    /// Opens a trace; fails if it is none.
    pub(super) fn open(input: Input, keep_recursion: bool) -> anyhow::Result<Self> {
        let mut follower = Self::new(input, keep_recursion, None);
        let input = &follower.input;
        let name = input.name();
        let snapshot = match input.file_size() {
            Some(_) => {
                refuse_other_than_trace(&input.trace)?;
                Snapshot::open(&input.trace).with_context(|| format!("cannot open {name}"))?
            }
            None => {
                if input.trace.is_dir() {
                    bail!("{name} is a directory; give a trace file, usually named *.ctf");
                }
                let copy = reopen::snapshot(input)?;
                follower.copy.insert(copy).clone()
            }
        };
        if process::owner(&follower.input.trace).is_none() {
            let options = follower.input.formats_options(Options::default())?;
            Reader::new(snapshot.reader(), options).with_context(|| name)?;
        }
        Ok(follower)
    }

    /// The trace of a program that has just been started, which may not be there yet.
    #[cfg(recording)]
    pub(super) fn of_program(input: Input, keep_recursion: bool, is_running: IsRunning) -> Self {
        Self::new(input, keep_recursion, Some(is_running))
    }

    fn new(input: Input, keep_recursion: bool, is_running: Option<IsRunning>) -> Self {
        Self {
            input,
            store: StoreOptions {
                recursion: if keep_recursion {
                    Recursion::Keep
                } else {
                    Recursion::Collapse
                },
            },
            copy: None,
            is_running,
            live: None,
            seen: None,
        }
    }

    /// The name of the trace.
    pub(super) fn name(&self) -> String {
        self.input.name()
    }

    /// Begins to read the recording.
    fn follow(&self) -> anyhow::Result<LiveProfile> {
        let options = self.input.formats_options(Options::default())?;
        let source = heapline_formats::Follower::open(&self.input.trace, options)?;
        Ok(LiveProfile::new(source, self.store))
    }

    fn load(&self, progress: &Progress) -> anyhow::Result<Profile> {
        let bytes = || {
            let snapshot = match &self.copy {
                Some(copy) => copy.clone(),
                None => Snapshot::open(&self.input.trace)?,
            };
            Ok(Counted {
                size: snapshot.size(),
                bytes: snapshot.reader(),
                read: 0,
                progress: progress.clone(),
            })
        };
        let options = self.input.formats_options(Options::default())?;
        heapline_index::load(
            self.input.trace_file().as_ref(),
            self.input.reading.memory(),
            options,
            self.store,
            bytes,
            anyhow::Error::new,
        )
    }
}

impl Source for Follower {
    fn path(&self) -> String {
        self.input.trace.display().to_string()
    }

    fn newest(&mut self, progress: &Progress) -> Result<Newest, String> {
        // Asked before the file is read, so that the last state is read after the end.
        let is_running = self.is_running.as_mut().map(|is_running| is_running());
        let is_recording = process::owner(&self.input.trace).is_some();
        let unchanged = Newest {
            profile: None,
            size: self.input.file_size(),
            is_recording,
        };
        let Some(stamp) = stamp(&self.input.trace, self.copy.as_ref()) else {
            return match is_running {
                Some(true) => Err("waiting for the program to begin to allocate".to_owned()),
                Some(false) => Err("the program has ended, and was not recorded".to_owned()),
                None => Err(format!("{} was removed", self.name())),
            };
        };
        if is_recording && self.live.is_none() {
            let live = self.follow();
            self.live = Some(live.map_err(|error| format!("not yet: {error:#}"))?);
        }
        if let Some(live) = &mut self.live {
            let profile = match live.refresh() {
                Ok(profile) => profile,
                Err(error) => {
                    self.live = None;
                    return Err(format!("{}: {error:#}", self.name()));
                }
            };
            let has_ended = live.has_ended();
            if has_ended {
                self.live = None;
                self.seen = Some(stamp);
            }
            return Ok(Newest {
                profile,
                is_recording: !has_ended,
                ..unchanged
            });
        }
        if self.seen == Some(stamp) {
            return Ok(unchanged);
        }
        let profile = self
            .load(progress)
            .map_err(|error| format!("{}: {error:#}", self.name()))?;
        self.seen = Some(stamp);
        Ok(Newest {
            profile: Some(profile),
            ..unchanged
        })
    }
}

/// The state of a file; `None` if it is not there.
fn stamp(path: &Path, copy: Option<&Snapshot>) -> Option<Stamp> {
    if let Some(copy) = copy {
        return Some((copy.size(), None));
    }
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()))
}

/// Tells how much of a trace has been read.
struct Counted<R> {
    bytes: R,
    read: u64,
    size: u64,
    progress: Progress,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        /// Bytes between two reports.
        const PART: u64 = 1 << 22;
        let n = self.bytes.read(buffer)?;
        let before = self.read;
        self.read += n as u64;
        if self.read / PART != before / PART {
            self.progress
                .report(self.read as f64 / self.size.max(1) as f64);
        }
        Ok(n)
    }
}
