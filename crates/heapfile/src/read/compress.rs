//! Compresses a snapshot after it was taken: the writer, which runs inside of a stopped program, has better things
//! to do.

use std::io::{Read, Write};

use super::error::ReadError;
use super::section::{RawSection, ZSTD};
use super::{HEADER, read_header};
use crate::kinds::Section;
use crate::writer::{MAGIC, SECTION_HEADER, VERSION};

/// The level of compression: higher ones take much longer and save little.
const LEVEL: i32 = 3;

/// Copies a snapshot with all its sections compressed, one at a time. Returns the bytes written.
///
/// An incomplete snapshot is an error, but its intact sections are written.
pub fn compress(mut input: impl Read, mut output: impl Write) -> Result<u64, ReadError> {
    read_header(&mut input)?;
    output.write_all(&MAGIC)?;
    output.write_all(&VERSION.to_le_bytes())?;
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    let mut section = RawSection::default();
    let (mut offset, mut written) = (HEADER as u64, HEADER as u64);
    loop {
        offset += section.read(&mut input, offset)?;
        let stored = compressor.compress(&section.payload)?;
        let len = |bytes: &[u8]| {
            u32::try_from(bytes.len()).map_err(|_| section.damaged("a length that is too large"))
        };
        let mut header = [0; SECTION_HEADER];
        (header[0], header[1]) = (section.kind, ZSTD);
        header[4..8].copy_from_slice(&section.items.to_le_bytes());
        header[8..12].copy_from_slice(&len(&section.payload)?.to_le_bytes());
        header[12..].copy_from_slice(&len(&stored)?.to_le_bytes());
        output.write_all(&header)?;
        output.write_all(&stored)?;
        written += (SECTION_HEADER + stored.len()) as u64;
        if section.kind == Section::End as u8 {
            output.flush()?;
            return Ok(written);
        }
    }
}
