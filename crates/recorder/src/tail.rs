//! The tail of a trace, as the recorder writes it, and its state after the program has ended.
//!
//! [`heapline_trace::tail`] describes the file, and how it is read while the program runs.
//! [`finish`] moves its contents to the trace.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use heapline_trace::tail::layout::{LaneWord, MAGIC, PAGE, SLOT, VERSION, Word};
use heapline_trace::tail::{Completion, Tail};
use rustix::fs::{FlockOperation, flock};

use crate::file::{check_size_limit, create_new};

pub use heapline_trace::tail::path;
pub use heapline_trace::{EarlyEnd, Ending};

/// The most that the header of a packet takes.
const HEADER: usize = 68;

/// The state of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is about to begin.
    Prepared,
    /// The program is recorded, or was until it ended without saying so.
    Recording,
    /// The recording ended as it should.
    Ended,
}

/// A remark about a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// The program started a sampler of its own, which was ignored.
    OwnSampler = 1,
    /// Domains are sampled alike, see the documentation of the agent.
    AlikeDomains = 2,
    /// The program was forked, and the new process is not recorded.
    Forked = 4,
    /// The program has a sampler of its own in a domain, which is not recorded.
    DomainNotRecorded = 8,
}

/// The result of a recording.
#[derive(Debug)]
pub struct Outcome {
    /// The state that it reached.
    pub state: State,
    /// The process that was recorded.
    pub pid: u64,
    /// How it ended before the program, if it did.
    pub early_end: Option<EarlyEnd>,
    /// Bits of [`Note`].
    notes: u64,
    /// Domains that have events of their own.
    pub lanes: u64,
    /// Domains that the program started, the first included.
    pub domains: u64,
    /// Blocks that were recorded.
    pub blocks: u64,
    /// Time spent in the recorder, in nanoseconds.
    pub nanos: u64,
    /// Time spent in the sampler before it called the recorder, in nanoseconds; 0 if it was not measured.
    pub sampler_nanos: u64,
    /// Stacks that were too deep for a packet.
    pub shortened: u64,
    /// Packets that the program had no time to write.
    pub recovered: u64,
    /// The error, such as a full disk, if they could not be moved to the trace and remain in the
    /// tail.
    pub left: Option<io::Error>,
}

impl Outcome {
    /// Returns true if the remark applies.
    #[must_use]
    pub fn has(&self, note: Note) -> bool {
        self.notes & note as u64 != 0
    }
}

/// Creates the tail of a trace, for a recording that is going to begin.
pub(crate) fn prepare(trace: &Path) -> io::Result<File> {
    if let Some(pid) = owner(trace)? {
        return Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            format!("process {pid} is recording to it"),
        ));
    }
    // SAFETY: asks for a number.
    let page_size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    check_page_size(usize::try_from(page_size).map_err(io::Error::other)?)?;
    let path = path(trace);
    // Another program may have the old one mapped, and would crash if it was truncated.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = create_new(&path)?;
    crate::map::reserve(&file, 0, PAGE)?;
    // Not all file systems have locks. The mapping keeps this one when the file is closed.
    let locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    write_word(&file, Word::Locked, u64::from(locked))?;
    write_word(&file, Word::Version, VERSION)?;
    write_word(&file, Word::Magic, MAGIC)?;
    Ok(file)
}

/// Lanes are mapped one by one, and begin at multiples of [`PAGE`]. Some kernels for arm64 have larger pages.
fn check_page_size(size: usize) -> io::Result<()> {
    if PAGE.is_multiple_of(size) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!(
            "the kernel has memory pages of {size} bytes; only those of {PAGE} bytes are supported"
        ),
    ))
}

/// Tests whether a recording could begin: whether nobody else records to this trace, and there is
/// room on the disk.
pub fn probe(trace: &Path) -> io::Result<()> {
    let file = prepare(trace)?;
    let room = crate::map::reserve(&file, PAGE as u64, SLOT);
    std::fs::remove_file(path(trace))?;
    room
}

/// The process that is recording to a trace, as it sees itself; `None` if there is none.
pub fn owner(trace: &Path) -> io::Result<Option<u64>> {
    let Some(mut file) = open(&path(trace))? else {
        return Ok(None);
    };
    let owned = Tail::read(&mut file)
        .ok()
        .filter(|tail| !has_ended(tail, &file));
    Ok(owned.map(|tail| tail.word(Word::Pid)))
}

fn has_ended(tail: &Tail, file: &File) -> bool {
    tail.has_ended(|| flock(file, FlockOperation::NonBlockingLockShared).is_ok())
}

fn write_word(file: &File, word: Word, value: u64) -> io::Result<()> {
    file.write_all_at(&value.to_le_bytes(), word as u64 * 8)
}

/// A page of words in mapped memory, which other processes read at any time.
#[derive(Debug)]
pub(crate) struct Page(&'static [AtomicU64]);

impl Page {
    pub(crate) fn new(bytes: &'static mut [u8]) -> Self {
        // SAFETY: every pattern is a valid word, and nobody else has a reference to the bytes.
        let (_, words, _) = unsafe { bytes.align_to() };
        Self(words)
    }

    /// Its address.
    pub(crate) fn address(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    /// Stores a word, behind everything that was stored before.
    pub(crate) fn set(&self, word: usize, value: u64) {
        if let Some(place) = self.0.get(word) {
            place.store(value.to_le(), Ordering::Release);
        }
    }

    /// The place of a word.
    pub(crate) fn place(&self, word: usize) -> Option<&'static AtomicU64> {
        self.0.get(word)
    }

    pub(crate) fn get(&self, word: usize) -> u64 {
        let place = self.0.get(word);
        place.map_or(0, |place| u64::from_le(place.load(Ordering::Relaxed)))
    }
}

/// Completes a trace whose program has ended, from its tail, and removes that.
///
/// Only for whoever knows that the program has ended. Readers do not need it: they [lay the tail over
/// the trace](heapline_trace::open). `None` if there is no tail of this trace: then it is
/// complete, or was made by something else. An empty trace, whose recording did not begin, is removed. If
/// the trace cannot be written, the tail
/// [stays](Outcome::left).
pub fn finish(trace: &Path) -> io::Result<Option<Outcome>> {
    match open(&path(trace))? {
        Some(tail) => finish_from(trace, tail),
        None => {
            remove_empty(trace)?;
            Ok(None)
        }
    }
}

/// Removes a trace whose program ended when it had only been created.
fn remove_empty(trace: &Path) -> io::Result<()> {
    let metadata = std::fs::symlink_metadata(trace);
    if metadata.is_ok_and(|data| data.is_file() && data.len() == 0) {
        std::fs::remove_file(trace)?;
    }
    Ok(())
}

/// Like [`finish`], unless a process may still write to the trace.
pub fn finish_if_ended(trace: &Path) -> io::Result<Option<Outcome>> {
    let Some(mut file) = open(&path(trace))? else {
        return Ok(None);
    };
    let tail = Tail::read(&mut file)?;
    if has_ended(&tail, &file) {
        return finish_from(trace, file);
    }
    Ok(None)
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

fn finish_from(trace: &Path, mut tail_file: File) -> io::Result<Option<Outcome>> {
    let tail = Tail::read(&mut tail_file)?;
    let mut outcome = outcome(&tail);
    if tail.has_begun() {
        let file = match File::options().read(true).write(true).open(trace) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result?,
        };
        let mut first = [0; HEADER];
        if file.read_exact_at(&mut first, 0).is_err() || !tail.belongs_to(&first) {
            return Ok(None);
        }
        if let Err(error) = complete(&file, &Completion::new(&tail, &first)) {
            outcome.left = Some(error);
            return Ok(Some(outcome));
        }
    } else {
        remove_empty(trace)?;
    }
    std::fs::remove_file(path(trace))?;
    Ok(Some(outcome))
}

/// Writes what a trace lacks. If that fails, it is as it was.
fn complete(file: &File, completion: &Completion) -> io::Result<()> {
    let len = file.metadata()?.len();
    let mut end = len;
    for (offset, bytes) in completion.writes(len) {
        let written =
            check_size_limit(offset, bytes.len()).and_then(|()| file.write_all_at(bytes, offset));
        if let Err(error) = written {
            file.set_len(len)?;
            return Err(error);
        }
        end = offset + bytes.len() as u64;
    }
    file.set_len(end)
}

fn state(tail: &Tail) -> State {
    match tail.word(Word::State) {
        0 => State::Prepared,
        1 => State::Recording,
        _ => State::Ended,
    }
}

fn outcome(tail: &Tail) -> Outcome {
    let early_end = Ending::from_number(tail.word(Word::Ending)).map(|reason| EarlyEnd {
        reason,
        errno: u16::try_from(tail.word(Word::Errno)).unwrap_or(0),
        after_ms: u32::try_from(tail.word(Word::EndingTime) / 1000).unwrap_or(u32::MAX),
    });
    Outcome {
        state: state(tail),
        pid: tail.word(Word::Pid),
        early_end,
        notes: tail.word(Word::Notes),
        lanes: tail.word(Word::Lanes),
        domains: tail.word(Word::Domains),
        blocks: tail.sum(LaneWord::Blocks),
        nanos: tail.sum(LaneWord::Nanos),
        sampler_nanos: tail.word(Word::SamplerNanos),
        shortened: tail.sum(LaneWord::Shortened),
        recovered: tail.packets(),
        left: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_with_larger_pages_are_refused() {
        assert!(check_page_size(4096).is_ok());
        for size in [1 << 14, 1 << 16] {
            let error = check_page_size(size).unwrap_err().to_string();
            assert!(error.contains(&format!("pages of {size} bytes")), "{error}");
        }
    }
}
