//! Reads values that OCaml's Marshal wrote: those of Spacetime's profiles and of the compiler's `.cmt` files.
//!
//! Nothing in the bytes is trusted. A block needs a byte at least for each of its fields, so what is
//! allocated is bounded by the length of the input, and nothing is recursive.
//!
//! ```
//! use heapline_formats::marshal::{Header, Heap, Limits, Value};
//!
//! // Marshal.to_string [7] []
//! let bytes = [0x84, 0x95, 0xa6, 0xbe, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 3, 0xa0, 0x47, 0x40];
//! let header = Header::read(&bytes, Limits::default())?.expect("a whole header");
//! let content = header.content(&bytes)?;
//! let heap = Heap::parse(&header, &content)?;
//! assert_eq!(heap.list(heap.root()).collect::<Vec<_>>(), [Value::Int(7)]);
//! # Ok::<(), heapline_formats::marshal::MarshalError>(())
//! ```

use std::borrow::Cow;
use std::io::Read;

/// The first bytes of a value in OCaml's usual format.
pub const MAGIC: [u8; 4] = [0x84, 0x95, 0xa6, 0xbe];
/// The first bytes of values with sizes of 64 bits.
const BIG_MAGIC: [u8; 4] = [0x84, 0x95, 0xa6, 0xbf];
/// The first bytes of compressed values.
const COMPRESSED_MAGIC: [u8; 4] = [0x84, 0x95, 0xa6, 0xbd];

/// The largest value that is read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes.
    pub bytes: usize,
    /// Bytes of a compressed value, when it is decompressed.
    pub decompressed_bytes: usize,
    /// Blocks, strings and numbers outside of blocks.
    pub objects: u64,
}

impl Default for Limits {
    /// Five times the largest profile that is known; nothing that is compressed.
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            decompressed_bytes: 0,
            objects: u64::from(u32::MAX),
        }
    }
}

/// Why bytes are not a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct MarshalError {
    /// In bytes from the start of the value.
    pub offset: usize,
    /// The reason.
    pub reason: &'static str,
}

/// The header of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the header.
    len: usize,
    /// Bytes of the value as it is stored, without the header.
    stored: usize,
    /// Bytes of the value, without the header.
    plain: usize,
    objects: u64,
    is_compressed: bool,
}

impl Header {
    /// Reads a header; `None` if there are not enough bytes to tell.
    pub fn read(bytes: &[u8], limits: Limits) -> Result<Option<Self>, MarshalError> {
        let wrong = |reason| Err(MarshalError { offset: 0, reason });
        let start = &bytes[..bytes.len().min(4)];
        let magics = [MAGIC, BIG_MAGIC, COMPRESSED_MAGIC];
        if !magics.iter().any(|magic| magic.starts_with(start)) {
            return wrong("there is no value of OCaml's Marshal");
        }
        let Some(Numbers {
            len,
            stored,
            plain,
            objects,
        }) = Numbers::read(bytes)
        else {
            return Ok(None);
        };
        let is_compressed = start == COMPRESSED_MAGIC;
        let limit = if is_compressed {
            limits.decompressed_bytes
        } else {
            limits.bytes
        };
        let is_small = stored.max(plain) <= limit as u64;
        let (Ok(stored), Ok(plain), true) =
            (usize::try_from(stored), usize::try_from(plain), is_small)
        else {
            return wrong("a value is said to be too large");
        };
        if objects > limits.objects {
            return wrong("a value is said to have too many objects");
        }
        Ok(Some(Self {
            len,
            stored,
            plain,
            objects,
            is_compressed,
        }))
    }

    /// Bytes of header and value as they are stored.
    #[must_use]
    pub fn total(&self) -> usize {
        self.len.saturating_add(self.stored)
    }

    /// The value without its header, decompressed. `bytes` begin with the header.
    pub fn content<'a>(&self, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, MarshalError> {
        let wrong = |reason| MarshalError {
            offset: self.len,
            reason,
        };
        let incomplete = wrong("a value is shorter than its header says");
        let stored = bytes.get(self.len..self.total()).ok_or(incomplete)?;
        if !self.is_compressed {
            return Ok(Cow::Borrowed(stored));
        }
        let mut plain = Vec::new();
        zstd::Decoder::with_buffer(stored)
            .and_then(|decoder| decoder.take(self.plain as u64).read_to_end(&mut plain))
            .map_err(|_| wrong("a compressed value is damaged"))?;
        if plain.len() < self.plain {
            return Err(incomplete);
        }
        Ok(Cow::Owned(plain))
    }
}

/// The numbers of a header.
struct Numbers {
    len: usize,
    stored: u64,
    plain: u64,
    objects: u64,
}

impl Numbers {
    /// `None` if there are not enough bytes.
    fn read(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize, width: usize| {
            let bytes = bytes.get(at..at + width)?.iter();
            Some(bytes.fold(0, |n: u64, &byte| n << 8 | u64::from(byte)))
        };
        let magic = bytes.first_chunk()?;
        if *magic == COMPRESSED_MAGIC {
            let mut at = 5;
            let len = usize::from(bytes.get(4)? & 0x3f);
            // 7 bits a byte, the highest ones first.
            let mut variable = || {
                let mut number: u64 = 0;
                loop {
                    let byte = *bytes.get(at)?;
                    at += 1;
                    number = number.saturating_mul(128) | u64::from(byte & 0x7f);
                    if byte & 0x80 == 0 {
                        return Some(number);
                    }
                }
            };
            let (stored, plain, objects) = (variable()?, variable()?, variable()?);
            return Some(Self {
                len,
                stored,
                plain,
                objects,
            });
        }
        let (len, data, objects) = if *magic == BIG_MAGIC {
            (32, number(8, 8)?, number(16, 8)?)
        } else {
            (20, number(4, 4)?, number(8, 4)?)
        };
        bytes.get(..len)?;
        Some(Self {
            len,
            stored: data,
            plain: data,
            objects,
        })
    }
}

/// A value: an integer, or something in a [`Heap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// An integer.
    Int(i64),
    /// The number of an object, in the order of appearance.
    Object(u32),
    /// A pointer into the middle of a block. Nobody needs to know which.
    Infix,
}

/// A value as it is stored: integers have their low bit set, as OCaml has it.
#[derive(Clone, Copy, Debug)]
struct Word(u64);

impl Word {
    const INFIX: Self = Self(u64::MAX - 1);

    fn int(n: i64) -> Self {
        Self(n.cast_unsigned() << 1 | 1)
    }

    fn object(number: u32) -> Self {
        Self(u64::from(number) << 1)
    }

    fn value(self) -> Value {
        if self.0 & 1 == 1 {
            Value::Int(self.0.cast_signed() >> 1)
        } else {
            u32::try_from(self.0 >> 1).map_or(Value::Infix, Value::Object)
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Block {
        tag: u8,
    },
    String,
    Double,
    Int64,
    /// Something that nobody needs to know.
    Opaque,
}

#[derive(Clone, Copy, Debug)]
struct Object {
    kind: Kind,
    /// Where its fields are, or its bytes.
    start: u32,
    len: u32,
}

/// A value and all that it refers to.
#[derive(Debug)]
pub struct Heap<'a> {
    data: &'a [u8],
    fields: Vec<Word>,
    objects: Vec<Object>,
    root: Word,
}

/// A block of a [`Heap`].
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Its tag.
    pub tag: u8,
    fields: &'a [Word],
}

impl Block<'_> {
    /// The number of fields, which is not 0.
    #[expect(clippy::len_without_is_empty, reason = "blocks are never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// All fields, if there are so many.
    #[must_use]
    pub fn exactly<const N: usize>(&self) -> Option<[Value; N]> {
        let fields: &[Word; N] = self.fields.try_into().ok()?;
        Some(fields.map(Word::value))
    }

    /// A field.
    #[must_use]
    pub fn get(&self, field: usize) -> Option<Value> {
        self.fields.get(field).map(|word| word.value())
    }

    /// A field, counted from the last.
    #[must_use]
    pub fn get_back(&self, field: usize) -> Option<Value> {
        self.get(self.len().checked_sub(field + 1)?)
    }

    /// A field that is an integer.
    #[must_use]
    pub fn int(&self, field: usize) -> Option<i64> {
        match self.get(field)? {
            Value::Int(n) => Some(n),
            _ => None,
        }
    }

    /// All fields, as far as they are integers.
    pub fn ints(&self) -> impl Iterator<Item = Option<i64>> {
        (0..self.len()).map(|field| self.int(field))
    }
}

impl<'a> Heap<'a> {
    /// Reads a value from the [content](Header::content) that its header announces.
    pub fn parse(header: &Header, content: &'a [u8]) -> Result<Self, MarshalError> {
        let mut parser = Parser {
            data: content,
            at: 0,
            counts_from_start: header.is_compressed,
            max_objects: header.objects,
            pending: 0,
            heap_fields: Vec::new(),
            objects: Vec::new(),
        };
        let root = parser.parse().map_err(|reason| MarshalError {
            offset: header.len + parser.at,
            reason,
        })?;
        let Parser {
            data,
            at,
            heap_fields,
            objects,
            ..
        } = parser;
        let wrong = |reason| {
            Err(MarshalError {
                offset: header.len + at,
                reason,
            })
        };
        if at != data.len() {
            return wrong("a value is shorter than its header says");
        }
        if objects.len() as u64 != header.objects {
            return wrong("a value has not as many objects as its header says");
        }
        Ok(Self {
            data,
            fields: heap_fields,
            objects,
            root,
        })
    }

    /// The value.
    #[must_use]
    pub fn root(&self) -> Value {
        self.root.value()
    }

    /// The number of blocks, strings and numbers outside of blocks.
    #[must_use]
    pub fn object_count(&self) -> usize {
        self.objects.len()
    }

    fn object(&self, value: Value) -> Option<&Object> {
        match value {
            Value::Object(number) => self.objects.get(number as usize),
            _ => None,
        }
    }

    /// A block with fields.
    #[must_use]
    pub fn block(&self, value: Value) -> Option<Block<'_>> {
        match *self.object(value)? {
            Object {
                kind: Kind::Block { tag },
                start,
                len,
            } => Some(Block {
                tag,
                fields: &self.fields[start as usize..][..len as usize],
            }),
            _ => None,
        }
    }

    /// A string.
    #[must_use]
    pub fn string(&self, value: Value) -> Option<&'a [u8]> {
        match *self.object(value)? {
            Object {
                kind: Kind::String,
                start,
                len,
            } => Some(&self.data[start as usize..][..len as usize]),
            _ => None,
        }
    }

    /// A floating-point number.
    #[must_use]
    pub fn double(&self, value: Value) -> Option<f64> {
        match *self.object(value)? {
            Object {
                kind: Kind::Double,
                start,
                len,
            } => {
                let bytes = self.data[start as usize..].first_chunk()?;
                // The code says in which order the bytes are; its number is kept as the length.
                Some(if len == u32::from(code::DOUBLE_BIG) {
                    f64::from_be_bytes(*bytes)
                } else {
                    f64::from_le_bytes(*bytes)
                })
            }
            _ => None,
        }
    }

    /// An integer of 64 bits in a custom block.
    #[must_use]
    pub fn int64(&self, value: Value) -> Option<u64> {
        match *self.object(value)? {
            Object {
                kind: Kind::Int64,
                start,
                ..
            } => {
                let bytes = self.data[start as usize..].first_chunk()?;
                Some(u64::from_be_bytes(*bytes))
            }
            _ => None,
        }
    }

    /// The elements of a list. A list that is not one ends early, and one that never ends does at
    /// the number of objects.
    pub fn list(&self, mut value: Value) -> impl Iterator<Item = Value> + '_ {
        let mut left = self.objects.len();
        std::iter::from_fn(move || {
            let cell = self.block(value).filter(|cell| cell.len() == 2)?;
            left = left.checked_sub(1)?;
            value = cell.get(1)?;
            cell.get(0)
        })
    }
}

/// The codes that values begin with.
mod code {
    pub(super) const INT8: u8 = 0x00;
    pub(super) const INT16: u8 = 0x01;
    pub(super) const INT32: u8 = 0x02;
    pub(super) const INT64: u8 = 0x03;
    pub(super) const SHARED8: u8 = 0x04;
    pub(super) const SHARED16: u8 = 0x05;
    pub(super) const SHARED32: u8 = 0x06;
    pub(super) const BLOCK32: u8 = 0x08;
    pub(super) const STRING8: u8 = 0x09;
    pub(super) const STRING32: u8 = 0x0a;
    pub(super) const DOUBLE_BIG: u8 = 0x0b;
    pub(super) const DOUBLE_LITTLE: u8 = 0x0c;
    pub(super) const DOUBLES8_BIG: u8 = 0x0d;
    pub(super) const DOUBLES8_LITTLE: u8 = 0x0e;
    pub(super) const DOUBLES32_LITTLE: u8 = 0x07;
    pub(super) const DOUBLES32_BIG: u8 = 0x0f;
    pub(super) const INFIX: u8 = 0x11;
    pub(super) const CUSTOM: u8 = 0x12;
    pub(super) const BLOCK64: u8 = 0x13;
    pub(super) const SHARED64: u8 = 0x14;
    pub(super) const STRING64: u8 = 0x15;
    pub(super) const CUSTOM_FIXED: u8 = 0x19;
    pub(super) const SMALL_STRING: u8 = 0x20;
    pub(super) const SMALL_INT: u8 = 0x40;
    pub(super) const SMALL_BLOCK: u8 = 0x80;
}

struct Parser<'a> {
    data: &'a [u8],
    at: usize,
    /// Fields that are still to come.
    pending: usize,
    /// Shared objects are counted from the first one, and not backwards.
    counts_from_start: bool,
    max_objects: u64,
    heap_fields: Vec<Word>,
    objects: Vec<Object>,
}

impl Parser<'_> {
    /// Reads the value: first a block, then its fields, each with all that belongs to it.
    fn parse(&mut self) -> Result<Word, &'static str> {
        let root = self.value()?;
        // Blocks whose fields are being read: the next field, and the end.
        let mut open: Vec<(usize, usize)> = Vec::new();
        self.enter(0, &mut open);
        while let Some((next, end)) = open.last_mut() {
            if next == end {
                open.pop();
                continue;
            }
            let field = *next;
            *next += 1;
            self.pending -= 1;
            let fields = self.heap_fields.len();
            self.heap_fields[field] = self.value()?;
            self.enter(fields, &mut open);
        }
        Ok(root)
    }

    /// Continues with the fields that the last value brought, if it is a new block.
    fn enter(&self, fields: usize, open: &mut Vec<(usize, usize)>) {
        if self.heap_fields.len() > fields {
            open.push((fields, self.heap_fields.len()));
        }
    }

    fn value(&mut self) -> Result<Word, &'static str> {
        let mut is_infix = false;
        loop {
            let code = self.number(1)?;
            let code = u8::try_from(code).unwrap_or(u8::MAX);
            if code == code::INFIX {
                if is_infix {
                    return Err("a pointer into a block points to another such pointer");
                }
                self.number(4)?;
                is_infix = true;
                continue;
            }
            let word = self.coded(code)?;
            return Ok(if is_infix { Word::INFIX } else { word });
        }
    }

    fn coded(&mut self, code: u8) -> Result<Word, &'static str> {
        match code {
            code::SMALL_BLOCK..=0xff => {
                let (tag, size) = (code & 0x0f, usize::from(code >> 4 & 7));
                self.block(tag, size)
            }
            code::SMALL_INT..code::SMALL_BLOCK => Ok(Word::int((code & 0x3f).into())),
            code::SMALL_STRING..code::SMALL_INT => self.string((code & 0x1f).into()),
            code::INT8 => self.int(1),
            code::INT16 => self.int(2),
            code::INT32 => self.int(4),
            code::INT64 => self.int(8),
            code::SHARED8 => self.shared(1),
            code::SHARED16 => self.shared(2),
            code::SHARED32 => self.shared(4),
            code::SHARED64 => self.shared(8),
            code::BLOCK32 => self.large_block(4),
            code::BLOCK64 => self.large_block(8),
            code::STRING8 => self.long_string(1),
            code::STRING32 => self.long_string(4),
            code::STRING64 => self.long_string(8),
            code::DOUBLE_BIG | code::DOUBLE_LITTLE => {
                let start = self.skip(8)?;
                self.add(Kind::Double, start, code.into())
            }
            code::DOUBLES8_BIG | code::DOUBLES8_LITTLE => self.doubles(1),
            code::DOUBLES32_BIG | code::DOUBLES32_LITTLE => self.doubles(4),
            code::CUSTOM | code::CUSTOM_FIXED => self.custom(),
            _ => Err("a value has a closure, or something else that is not supported"),
        }
    }

    fn doubles(&mut self, width: usize) -> Result<Word, &'static str> {
        let count = usize::try_from(self.number(width)?).unwrap_or(usize::MAX);
        let start = self.skip(count.saturating_mul(8))?;
        self.add(Kind::Opaque, start, 0)
    }

    /// A boxed integer, by its name.
    fn custom(&mut self) -> Result<Word, &'static str> {
        let name = self.skip(3)?;
        let (kind, len) = match &self.data[name..name + 3] {
            b"_i\0" => (Kind::Opaque, 4),
            b"_j\0" => (Kind::Int64, 8),
            // Its size comes first.
            b"_n\0" => match self.number(1)? {
                1 => (Kind::Opaque, 4),
                2 => (Kind::Opaque, 8),
                _ => return Err("a nativeint has an unknown size"),
            },
            _ => return Err("a value has a custom block that is not an integer"),
        };
        let start = self.skip(len)?;
        self.add(kind, start, len)
    }

    /// Goes on by so many bytes; returns where they begin.
    fn skip(&mut self, len: usize) -> Result<usize, &'static str> {
        let start = self.at;
        // Fields that are still to come take a byte each.
        if self.data.len() - start < len.saturating_add(self.pending) {
            return Err("a value is longer than its header says");
        }
        self.at = start + len;
        Ok(start)
    }

    fn number(&mut self, width: usize) -> Result<u64, &'static str> {
        let start = self.skip(width)?;
        let bytes = self.data[start..self.at].iter();
        Ok(bytes.fold(0, |n, &byte| n << 8 | u64::from(byte)))
    }

    fn int(&mut self, width: u32) -> Result<Word, &'static str> {
        let n = self.number(width as usize)?;
        let unused = 64 - 8 * width;
        Ok(Word::int((n << unused).cast_signed() >> unused))
    }

    fn shared(&mut self, width: usize) -> Result<Word, &'static str> {
        let number = self.number(width)?;
        let count = self.objects.len() as u64;
        let object = if self.counts_from_start {
            Some(number)
        } else {
            count.checked_sub(number)
        };
        match object.filter(|object| *object < count).map(u32::try_from) {
            Some(Ok(number)) => Ok(Word::object(number)),
            _ => Err("a value refers to an object that is not there"),
        }
    }

    fn long_string(&mut self, width: usize) -> Result<Word, &'static str> {
        let len = self.number(width)?;
        self.string(usize::try_from(len).unwrap_or(usize::MAX))
    }

    fn string(&mut self, len: usize) -> Result<Word, &'static str> {
        let start = self.skip(len)?;
        self.add(Kind::String, start, len)
    }

    fn large_block(&mut self, width: usize) -> Result<Word, &'static str> {
        let header = self.number(width)?;
        let tag = u8::try_from(header & 0xff).unwrap_or(0);
        let size = usize::try_from(header >> 10).unwrap_or(usize::MAX);
        self.block(tag, size)
    }

    fn block(&mut self, tag: u8, size: usize) -> Result<Word, &'static str> {
        if size == 0 {
            // An atom: there is one of each tag, and it is not numbered. Only lists and arrays
            // without elements are, which are as good as the integer 0.
            return Ok(Word::int(0));
        }
        let left = self.data.len() - self.at;
        if left < size.saturating_add(self.pending) {
            return Err("a block has more fields than there are bytes");
        }
        self.pending += size;
        let start = self.heap_fields.len();
        self.heap_fields.resize(start + size, Word::int(0));
        self.add(Kind::Block { tag }, start, size)
    }

    fn add(&mut self, kind: Kind, start: usize, len: usize) -> Result<Word, &'static str> {
        let number = u32::try_from(self.objects.len());
        match (number, u32::try_from(start), u32::try_from(len)) {
            (Ok(number), Ok(start), Ok(len)) if u64::from(number) < self.max_objects => {
                self.objects.push(Object { kind, start, len });
                Ok(Word::object(number))
            }
            _ => Err("a value has more objects than its header says"),
        }
    }
}

#[cfg(test)]
mod tests;
