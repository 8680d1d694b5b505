//! Sections as they are stored: header, payload, columns.

use std::io::{self, Read};

use super::cursor::Cursor;
use super::error::{ReadError, section_name};
use crate::writer::{CHECKED_HEADER, CHECKSUM, PLAIN, VERSION, checksum};

/// The largest payload of a section that is read, so that a few compressed bytes cannot fill the
/// memory. An array is in one section with all its references, and has a section of its own if it is large.
pub const MAX_SECTION: u32 = 1 << 29;

/// Sections are compressed with zstd.
pub(super) const ZSTD: u8 = 1;

/// A section, decompressed.
#[derive(Debug, Default)]
pub(super) struct RawSection {
    pub(super) kind: u8,
    pub(super) items: u32,
    /// The place of its header in the file.
    pub(super) offset: u64,
    pub(super) payload: Vec<u8>,
    stored: Vec<u8>,
    /// True if sections have checksums.
    is_checked: bool,
}

impl RawSection {
    /// Reads sections of a version of the format.
    pub(super) fn of_version(version: u16) -> Self {
        Self {
            is_checked: version == VERSION,
            ..Self::default()
        }
    }

    /// Reads the next section of at most `largest` bytes in place of this one; returns its length in the file.
    pub(super) fn read(
        &mut self,
        mut input: impl Read,
        offset: u64,
        largest: u32,
    ) -> Result<u64, ReadError> {
        let mut header = [0; CHECKED_HEADER];
        read_exactly(&mut input, &mut header, offset)?;
        let mut at = offset + CHECKED_HEADER as u64;
        let mut expected = None;
        if self.is_checked {
            let mut sum = [0; CHECKSUM];
            read_exactly(&mut input, &mut sum, at)?;
            expected = Some(u32::from_le_bytes(sum));
            at += CHECKSUM as u64;
        }
        let number = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (codec, plain, stored) = (header[1], number(8), number(12));
        (self.kind, self.items, self.offset) = (header[0], number(4), offset);
        if plain > largest || stored > largest {
            return Err(self.damaged("a length that is too large"));
        }
        read_bytes(input, stored, &mut self.stored, at)?;
        if expected.is_some_and(|expected| expected != checksum(&header, &self.stored)) {
            return Err(self.damaged("another checksum than stated"));
        }
        match codec {
            PLAIN if plain == stored => std::mem::swap(&mut self.payload, &mut self.stored),
            PLAIN => return Err(self.damaged("two different lengths")),
            ZSTD => {
                self.payload.clear();
                zstd::Decoder::with_buffer(&self.stored[..])
                    .and_then(|decoder| {
                        // One more byte than there must be, to see whether there is more.
                        let limit = u64::from(plain) + 1;
                        decoder.take(limit).read_to_end(&mut self.payload)
                    })
                    .map_err(|_| self.damaged("invalid zstd data"))?;
                if self.payload.len() != plain as usize {
                    return Err(self.damaged("another length than stated"));
                }
            }
            _ => return Err(self.damaged("an unknown compression")),
        }
        Ok(at - offset + u64::from(stored))
    }

    pub(super) fn damaged(&self, problem: &'static str) -> ReadError {
        ReadError::Damaged {
            offset: self.offset,
            section: section_name(self.kind),
            problem,
        }
    }

    pub(super) fn columns(&self) -> Columns<'_> {
        Columns {
            items: self.items,
            payload: &self.payload,
        }
    }
}

/// The columns of a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns<'a> {
    items: u32,
    payload: &'a [u8],
}

impl<'a> Columns<'a> {
    /// The items that the header states. Each takes a byte of some column at least, so that their number
    /// is checked by reading them.
    pub(super) fn items(&self) -> u32 {
        self.items
    }

    /// The first `expected` columns. Later versions may have more.
    pub(super) fn cursors<const N: usize>(
        &self,
        expected: usize,
    ) -> Result<[Cursor<'a>; N], &'static str> {
        let mut cursors = [Cursor::default(); N];
        let mut rest = self.payload;
        for cursor in &mut cursors[..expected] {
            const CUT_OFF: &str = "a column that is cut off";
            let (len, after) = rest.split_first_chunk().ok_or(CUT_OFF)?;
            let len = u32::from_le_bytes(*len) as usize;
            let (column, after) = after.split_at_checked(len).ok_or(CUT_OFF)?;
            *cursor = Cursor::new(column);
            rest = after;
        }
        Ok(cursors)
    }

    /// Fails if there is something left in a column.
    pub(super) fn check_end(cursors: &[Cursor<'_>]) -> Result<(), &'static str> {
        if cursors.iter().all(Cursor::is_empty) {
            Ok(())
        } else {
            Err("a column with more items than stated")
        }
    }
}

/// Fills a buffer; an end before that is an incomplete snapshot.
pub(super) fn read_exactly(
    mut input: impl Read,
    buffer: &mut [u8],
    offset: u64,
) -> Result<(), ReadError> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => {
                let offset = offset + filled as u64;
                return Err(ReadError::Incomplete { offset });
            }
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Reads so many bytes. Memory grows with what is there, not with what a header states.
fn read_bytes(
    input: impl Read,
    len: u32,
    bytes: &mut Vec<u8>,
    offset: u64,
) -> Result<(), ReadError> {
    bytes.clear();
    let read = input.take(len.into()).read_to_end(bytes)?;
    if read < len as usize {
        let offset = offset + read as u64;
        return Err(ReadError::Incomplete { offset });
    }
    Ok(())
}
