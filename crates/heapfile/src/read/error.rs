//! Errors of reading.

use std::io;

use crate::kinds::Section;
use crate::writer::VERSION;

/// The reason why a snapshot cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file does not begin as a snapshot does.
    #[error("not a heap snapshot")]
    NotASnapshot,
    /// The file was written by a later version.
    #[error(
        "format version {0} of heap snapshots is not supported, only 1 to {VERSION}; update heapline"
    )]
    UnknownVersion(u16),
    /// The input ends before the snapshot does.
    #[error(
        "incomplete heap snapshot: it ends at byte {offset}, before its last section; \
         the program or the snapshot was stopped while it was written"
    )]
    Incomplete {
        /// The length of the input.
        offset: u64,
    },
    /// A section does not have the content that its kind has.
    #[error("damaged heap snapshot: {problem} in the section of {section} at byte {offset}")]
    Damaged {
        /// The place of the section.
        offset: u64,
        /// Its name.
        section: &'static str,
        /// The problem.
        problem: &'static str,
    },
    /// The input cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The name of a section in messages.
pub(super) fn section_name(number: u8) -> &'static str {
    match Section::from_number(number) {
        Some(Section::Meta) => "properties",
        Some(Section::Nodes) => "blocks",
        Some(Section::Roots) => "roots",
        Some(Section::Frames) => "frames",
        Some(Section::Ephemerons) => "ephemerons",
        Some(Section::Facts) => "facts",
        Some(Section::Symbols) => "symbols",
        Some(Section::Definitions) => "definitions",
        Some(Section::Sites) => "sites",
        Some(Section::Stacks) => "stacks",
        Some(Section::End) => "totals",
        None => "unknown kind",
    }
}
