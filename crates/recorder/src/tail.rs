//! The end of a trace that is being recorded: a file beside it with what is not in it yet.
//!
//! It is mapped by the program that records. When that ends, in whatever way, the file holds
//! the packets that were being filled, and what became of the recording. [`finish`] puts the
//! packets where they belong.
//!
//! All numbers have 64 bits, little-endian. The file begins with a page about the recording
//! (`Word`s), followed by a slot for each domain: a page about it (`LaneWord`s), and room
//! for two packets: events, and the locations that must be written before them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use heapline_trace::MAX_WRITTEN_PACKET;

const MAGIC: u64 = u64::from_le_bytes(*b"heaptail");
/// Changes whenever a word moves.
const VERSION: u64 = 1;

pub(crate) const PAGE: usize = 4096;
/// What a domain takes.
pub(crate) const SLOT: usize = PAGE + 2 * MAX_WRITTEN_PACKET;

/// The words of the first page.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Word {
    Magic = 0,
    Version,
    State,
    Pid,
    /// Domains that have a slot.
    Lanes,
    /// Why the recording ended early, an `Ending`.
    Ending,
    /// The system's error number that belongs to it.
    Errno,
    /// When, in microseconds after the start.
    EndingTime,
    /// Where the first packet that could not be written would have been, plus one.
    FailedAt,
    /// What else there is to say: bits of `Note`.
    Notes,
    /// Domains that the program started.
    Domains,
}

/// The words of a domain's page.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LaneWord {
    /// Where in the trace a packet is being written, plus one.
    Place = 0,
    /// Which packet: 0 events, 1 names.
    Writing,
    /// Events that were taken.
    Events,
    /// Time that they took.
    Nanos,
    /// Blocks among them.
    Blocks,
    /// Stacks that no packet could hold.
    Shortened,
}

/// How far a recording got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is about to begin.
    Prepared,
    /// The program is recorded, or was until it ended without saying so.
    Recording,
    /// The recording ended as it should.
    Ended,
}

/// Why a recording has less than it could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The file reached the size that was allowed: new blocks are not recorded any more, but what
    /// becomes of the others is.
    Full = 1,
    /// The file could not be written.
    Unwritable,
    /// A mistake in the recorder.
    Bug,
    /// The program wanted the sampler for itself.
    TakenOver,
}

/// What else there is to say about a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// The program started a sampler of its own, which was ignored.
    OwnSampler = 1,
    /// Domains are sampled alike, see the documentation of the agent.
    AlikeDomains = 2,
    /// A domain could not be recorded.
    LostDomain = 4,
}

/// What became of a recording.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How far it got.
    pub state: State,
    /// The process that was recorded.
    pub pid: u64,
    /// Why there is less than there could be, and when that was, in microseconds after the start.
    pub ending: Option<(Ending, u64)>,
    /// The error that goes with it.
    pub errno: i32,
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
    /// Stacks that were too deep for a packet.
    pub shortened: u64,
    /// Packets that the program had no time to write.
    pub recovered: u64,
}

impl Outcome {
    /// Whether there is this to say.
    #[must_use]
    pub fn has(&self, note: Note) -> bool {
        self.notes & note as u64 != 0
    }
}

/// The name of a trace's tail.
#[must_use]
pub fn path(trace: &Path) -> PathBuf {
    let mut name = trace.as_os_str().to_owned();
    name.push(".tail");
    name.into()
}

/// Creates the tail of a trace, for a recording that is going to begin.
pub(crate) fn prepare(trace: &Path) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path(trace))?;
    crate::map::reserve(&file, 0, PAGE)?;
    write_word(&file, Word::Version, VERSION)?;
    write_word(&file, Word::Magic, MAGIC)?;
    Ok(file)
}

fn write_word(file: &File, word: Word, value: u64) -> io::Result<()> {
    file.write_all_at(&value.to_le_bytes(), word as u64 * 8)
}

/// A page of words in mapped memory.
#[derive(Debug)]
pub(crate) struct Page(pub(crate) &'static mut [u8]);

impl Page {
    pub(crate) fn set(&mut self, word: usize, value: u64) {
        if let Some(bytes) = self.0.get_mut(word * 8..word * 8 + 8) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
    }

    pub(crate) fn get(&self, word: usize) -> u64 {
        number(self.0, word)
    }
}

fn number(page: &[u8], word: usize) -> u64 {
    page.get(word * 8..)
        .and_then(<[u8]>::first_chunk)
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Completes a trace whose program has ended, from its tail, and removes that.
///
/// `None` if there is none: then the trace is complete, or was made by something else.
pub fn finish(trace: &Path) -> io::Result<Option<Outcome>> {
    let tail = path(trace);
    let Some(outcome) = complete(trace, &tail)? else {
        return Ok(None);
    };
    std::fs::remove_file(&tail)?;
    Ok(Some(outcome))
}

/// Like [`finish`], unless the process that writes the trace is still there.
pub fn finish_if_dead(trace: &Path) -> io::Result<Option<Outcome>> {
    let mut page = [0; PAGE];
    match File::open(path(trace)).and_then(|mut file| file.read_exact(&mut page)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        result => result?,
    }
    let pid = number(&page, Word::Pid as usize);
    if Path::new("/proc").join(pid.to_string()).exists() {
        return Ok(None);
    }
    finish(trace)
}

fn complete(trace: &Path, tail: &Path) -> io::Result<Option<Outcome>> {
    let mut bytes = Vec::new();
    match File::open(tail) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(mut file) => file.read_to_end(&mut bytes)?,
    };
    let (page, slots) = bytes.split_at(PAGE.min(bytes.len()));
    let word = |word: Word| number(page, word as usize);
    if word(Word::Magic) != MAGIC || word(Word::Version) != VERSION {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "{} is not the tail of a trace, or of another version of heapline; remove it",
                tail.display()
            ),
        ));
    }
    let mut outcome = outcome(page);
    if outcome.state as u64 >= State::Recording as u64 {
        let mut file = File::options().write(true).open(trace)?;
        let lanes = usize::try_from(outcome.lanes).unwrap_or(usize::MAX);
        for slot in slots.chunks_exact(SLOT).take(lanes) {
            outcome.recovered += complete_lane(slot, &mut file)?;
            let word = |word: LaneWord| number(slot, word as usize);
            outcome.blocks += word(LaneWord::Blocks);
            outcome.nanos += word(LaneWord::Nanos);
            outcome.shortened += word(LaneWord::Shortened);
        }
        if let Some(failed_at) = word(Word::FailedAt).checked_sub(1) {
            // Behind it there may be packets of other domains, but a hole before them.
            if file.metadata()?.len() > failed_at {
                file.set_len(failed_at)?;
            }
        }
    }
    Ok(Some(outcome))
}

fn outcome(page: &[u8]) -> Outcome {
    let word = |word: Word| number(page, word as usize);
    let ending = match word(Word::Ending) {
        1 => Some(Ending::Full),
        2 => Some(Ending::Unwritable),
        3 => Some(Ending::Bug),
        4 => Some(Ending::TakenOver),
        _ => None,
    };
    Outcome {
        state: match word(Word::State) {
            0 => State::Prepared,
            1 => State::Recording,
            _ => State::Ended,
        },
        pid: word(Word::Pid),
        ending: ending.map(|ending| (ending, word(Word::EndingTime))),
        errno: i32::try_from(word(Word::Errno)).unwrap_or(0),
        notes: word(Word::Notes),
        lanes: word(Word::Lanes),
        domains: word(Word::Domains),
        blocks: 0,
        nanos: 0,
        shortened: 0,
        recovered: 0,
    }
}

/// Writes the packets of a domain that the trace does not have. Returns how many there were.
fn complete_lane(slot: &[u8], file: &mut File) -> io::Result<u64> {
    let (page, packets) = slot.split_at(PAGE);
    let (events, names) = packets.split_at(MAX_WRITTEN_PACKET);
    let place = number(page, LaneWord::Place as usize).checked_sub(1);
    let names_were_written = number(page, LaneWord::Writing as usize) == 1;
    let mut recovered = 0;
    // Names come first.
    for (memory, is_names) in [(names, true), (events, false)] {
        let Some(packet) = heapline_trace::whole_packet(memory) else {
            continue;
        };
        match place {
            // Nobody knows how far that got. Doing it again does no harm.
            Some(place) if names_were_written == is_names => file.write_all_at(packet, place)?,
            _ => {
                io::Seek::seek(file, io::SeekFrom::End(0))?;
                file.write_all(packet)?;
            }
        }
        recovered += 1;
    }
    Ok(recovered)
}
