//! The format of heap snapshots (`.heap`).
//!
//! A snapshot has all blocks of a program's heap that can be reached, the references between them, and
//! the roots. It is a stream of [sections](Section), each with a few columns:
//!
//! ```text
//! file     "heapline heap\n", version: u16
//! section  kind: u8, codec: u8 (0 plain, 1 zstd), 0: u16, items: u32,
//!          plain length: u32, stored length: u32, checksum: u32, payload
//! payload  per column: length in bytes: u32, bytes
//! ```
//!
//! The checksum is the CRC-32 of the section without it: a section in which a bit has changed is refused. Files of version 1
//! have none, and can be read.
//!
//! All numbers are little-endian. `varint` is LEB128, `delta` a varint of the zigzag-encoded difference to
//! the previous number of the same column in the same section (0 before the first), `text` a varint for
//! the length and as many bytes of UTF-8. Addresses are byte addresses divided by 8, but for those of code.
//!
//! | section | columns |
//! | --- | --- |
//! | [`Meta`](Section::Meta) | one text per item: `key=value` |
//! | [`Nodes`](Section::Nodes) | see [`Nodes`] |
//! | [`Roots`](Section::Roots) | kind: u8; target: delta; a: varint; b: varint. See [`RootKind`] |
//! | [`Frames`](Section::Frames) | function: text; file: text; line: varint |
//! | [`Ephemerons`](Section::Ephemerons) | block: delta; data: delta, 0 for none; number of keys: varint; keys: delta, 0 for an empty one |
//! | [`Facts`](Section::Facts) | kind: u8; block: delta; a: varint; b: varint. See [`FactKind`] |
//! | [`Symbols`](Section::Symbols) | kind: u8; address in bytes: delta; name: text. See [`SymbolKind`] |
//! | [`Definitions`](Section::Definitions) | block of the module: delta; field: varint; name: text; file: text; line: varint |
//! | [`Sites`](Section::Sites) | block: delta; number in the trace: varint; samples: varint |
//! | [`Stacks`](Section::Stacks) | name: text |
//! | [`End`](Section::End) | tag: u8; blocks: varint; words: varint. One item per tag, without headers |
//!
//! Items of the same kind are numbered from 0 across sections. Blocks come in the order of their addresses.
//! An address within a closure is that of one of its functions, and refers to the closure.
//! References of ephemerons and weak arrays are in their own section only. Readers skip sections and facts of
//! unknown kinds, and columns after those that they know.
//! A file without [`End`](Section::End) is incomplete.

mod column;
mod kinds;
mod nodes;
#[cfg(feature = "read")]
mod read;
mod writer;

pub use column::{put_delta, put_text, put_varint, zigzag};
pub use kinds::{FactKind, RootKind, Section, SymbolKind};
pub use nodes::{Edge, Folded, Nodes};
#[cfg(feature = "read")]
pub use read::{
    Block, Blocks, Content, Definition, Ephemeron, Fact, Frame, MAX_SECTION, ReadError, Reader,
    Root, Site, Symbol, Total, compress, compress_with, is_snapshot,
};
pub use writer::{HEADER, MAGIC, SECTION_HEADER, VERSION, Writer};
