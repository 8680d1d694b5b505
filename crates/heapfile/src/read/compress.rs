//! Compresses a snapshot after it was taken: the writer, which runs inside of a stopped program, has better things
//! to do.

use std::io::{Read, Write};

use super::error::ReadError;
use super::items::{Definition, items};
use super::section::{MAX_SECTION, RawSection, ZSTD};
use super::{HEADER, read_header};
use crate::column::{put_delta, put_text, put_varint};
use crate::kinds::Section;
use crate::writer::{MAGIC, SectionHeader, VERSION};

/// The level of compression: higher ones take much longer and save little.
const LEVEL: i32 = 3;

/// Copies a snapshot with all its sections compressed, one at a time. Returns the bytes written.
///
/// An incomplete snapshot is an error, but its intact sections are written.
pub fn compress(input: impl Read, output: impl Write) -> Result<u64, ReadError> {
    compress_with(input, output, |_| false)
}

/// Compresses a snapshot, and edits its definitions. `edit` returns true if it has changed one.
pub fn compress_with(
    mut input: impl Read,
    mut output: impl Write,
    mut edit: impl FnMut(&mut Definition) -> bool,
) -> Result<u64, ReadError> {
    let version = read_header(&mut input)?;
    output.write_all(&MAGIC)?;
    output.write_all(&VERSION.to_le_bytes())?;
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    let mut section = RawSection::of_version(version);
    let (mut offset, mut written) = (HEADER as u64, HEADER as u64);
    loop {
        offset += section.read(&mut input, offset, MAX_SECTION)?;
        if section.kind == Section::Definitions as u8 {
            edit_definitions(&mut section, &mut edit)?;
        }
        let stored = compressor.compress(&section.payload)?;
        let header = SectionHeader {
            kind: section.kind,
            codec: ZSTD,
            items: section.items,
            plain: u32::try_from(section.payload.len())
                .map_err(|_| section.damaged("a length that is too large"))?,
        };
        written += header.write(&mut output, &stored)?;
        if section.kind == Section::End as u8 {
            output.flush()?;
            return Ok(written);
        }
    }
}

/// Replaces the payload of a section if one of its definitions was changed.
fn edit_definitions(
    section: &mut RawSection,
    edit: &mut impl FnMut(&mut Definition) -> bool,
) -> Result<(), ReadError> {
    let definitions = items::<Definition>(&section.columns());
    let mut definitions = definitions.map_err(|problem| section.damaged(problem))?;
    let mut is_changed = false;
    for definition in &mut definitions {
        is_changed |= edit(definition);
    }
    if !is_changed {
        return Ok(());
    }
    let mut columns: [Vec<u8>; 5] = Default::default();
    let mut previous = 0;
    for definition in &definitions {
        let [module, field, name, file, line] = &mut columns;
        put_delta(module, previous, definition.module);
        previous = definition.module;
        put_varint(field, definition.field);
        put_text(name, definition.name.as_bytes());
        put_text(file, definition.file.as_bytes());
        put_varint(line, definition.line);
    }
    let mut payload = Vec::new();
    for column in columns {
        let Ok(len) = u32::try_from(column.len()) else {
            return Err(section.damaged("definitions that are too large"));
        };
        payload.extend_from_slice(&len.to_le_bytes());
        payload.extend(column);
    }
    // A section that cannot be read again stays as it is.
    if payload.len() <= MAX_SECTION as usize {
        section.payload = payload;
    }
    Ok(())
}
