//! Recordings that still run, read on as they grow.

use std::fmt;
use std::fs::File;
use std::path::Path;

use heapline_model::{Batch, Damage, Decoder, Error, GrowingSource, Header, InputSize, Source};
use heapline_trace::GrowingTrace;

use crate::memtrace::Memtrace;
use crate::{Options, Reader};

/// Reads a file, and what is recorded to it later.
///
/// Each [`refresh`](GrowingSource::refresh) brings all events up to now, those that the program has not
/// written to the file included. It costs what is new, not what there is. Nothing is written, and the
/// program is not disturbed. A file that nobody records to, in any format, is read once and has
/// [ended](GrowingSource::has_ended) then.
///
/// The end is known if the recorder ends the recording, if its process ends, also if it is killed (on file
/// systems with locks), or if the tail of the recording is removed.
///
/// ```
/// use heapline_formats::{Follower, Options};
/// use heapline_model::{Batch, GrowingSource, Source};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mix-ocaml53/trace.ctf");
/// let mut follower = Follower::open(path, Options::default())?;
/// let (mut batch, mut births) = (Batch::default(), 0);
/// loop {
///     follower.refresh()?;
///     while follower.next_batch(&mut batch)? {
///         births += batch.births().len();
///         batch.clear();
///     }
///     println!("{births} blocks");
///     if follower.has_ended() {
///         break;
///     }
///     std::thread::sleep(std::time::Duration::from_secs(1));
/// }
/// # assert_eq!(births, 2787);
/// # Ok::<(), heapline_model::Error>(())
/// ```
pub struct Follower {
    input: Input,
}

enum Input {
    Growing {
        trace: Box<GrowingTrace>,
        decoder: Box<Memtrace>,
        /// True if the end was reported as damage, if it is.
        noted_end: bool,
    },
    Complete {
        reader: Box<Reader>,
        has_ended: bool,
    },
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("has_ended", &self.has_ended())
            .finish_non_exhaustive()
    }
}

impl Follower {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no profile. A recording that is about to begin may not have a
    /// header yet: its file is empty.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let path = path.as_ref();
        if let Some(trace) = GrowingTrace::open(path, is_unlocked)? {
            let mut decoder = Box::new(Memtrace::of_packets(&options));
            decoder.begin(trace.first_packet())?;
            if decoder.header().is_some() {
                return Ok(Self {
                    input: Input::Growing {
                        trace: Box::new(trace),
                        decoder,
                        noted_end: false,
                    },
                });
            }
        }
        let bytes = heapline_trace::open(path)?;
        Ok(Self {
            input: Input::Complete {
                reader: Box::new(Reader::new(bytes, options)?),
                has_ended: false,
            },
        })
    }

    /// Returns true if something was recording to the file when that was last looked at.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        match &self.input {
            Input::Growing { trace, .. } => !trace.has_ended(),
            Input::Complete { .. } => false,
        }
    }
}

impl Source for Follower {
    fn header(&self) -> &Header {
        match &self.input {
            Input::Growing { decoder, .. } => decoder
                .header()
                .unwrap_or_else(|| unreachable!("the first packet has been decoded")),
            Input::Complete { reader, .. } => reader.header(),
        }
    }

    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        match &mut self.input {
            Input::Growing {
                trace,
                decoder,
                noted_end,
            } => {
                while !batch.is_full() {
                    match trace.next_packet()? {
                        Some(part) => decoder.resume(part, batch)?,
                        None => break,
                    }
                }
                if trace.has_ended()
                    && !std::mem::replace(noted_end, true)
                    && let Some(end) = trace.early_end()
                {
                    decoder.end_early(end);
                }
                Ok(!batch.is_empty())
            }
            Input::Complete { reader, has_ended } => {
                let is_more = reader.next_batch(batch)?;
                *has_ended = !is_more;
                Ok(is_more)
            }
        }
    }

    fn damage(&self) -> Damage {
        match &self.input {
            Input::Growing { decoder, .. } => decoder.damage(),
            Input::Complete { reader, .. } => reader.damage(),
        }
    }

    fn size(&self) -> InputSize {
        match &self.input {
            Input::Growing { trace, decoder, .. } => InputSize {
                bytes: trace.size(),
                ..decoder.size()
            },
            Input::Complete { reader, .. } => reader.size(),
        }
    }
}

impl GrowingSource for Follower {
    fn refresh(&mut self) -> Result<(), Error> {
        if let Input::Growing { trace, .. } = &mut self.input {
            trace.refresh()?;
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        match &self.input {
            Input::Growing { trace, .. } => trace.has_ended(),
            Input::Complete { has_ended, .. } => *has_ended,
        }
    }
}

/// Returns true if nobody holds a lock on the tail of a recording. The lock that this takes is given
/// back at once; it is shared, so that others can look at the same time.
#[must_use]
#[cfg(unix)]
pub fn is_unlocked(tail: &File) -> bool {
    use rustix::fs::{FlockOperation, flock};
    let is_free = flock(tail, FlockOperation::NonBlockingLockShared).is_ok();
    if is_free {
        // The lock would end with the file anyway.
        let _ = flock(tail, FlockOperation::Unlock);
    }
    is_free
}

/// Returns true if nobody holds a lock on the tail of a recording: nothing records on such systems.
#[must_use]
#[cfg(not(unix))]
pub fn is_unlocked(_: &File) -> bool {
    true
}
