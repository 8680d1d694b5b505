//! Reads values that OCaml's Marshal wrote: the part of its format that Spacetime uses.
//!
//! Nothing in the bytes is trusted. A block needs a byte at least for each of its fields, so what is
//! allocated is bounded by the length of the input, and nothing is recursive.

use std::fmt;

/// The first bytes of every value.
pub(super) const MAGIC: [u8; 4] = [0x84, 0x95, 0xa6, 0xbe];
/// The first bytes of values with sizes of 64 bits.
const BIG_MAGIC: [u8; 4] = [0x84, 0x95, 0xa6, 0xbf];

/// Values are not larger than this, in bytes: five times the largest profile that is known.
const MAX_LEN: usize = 1 << 30;

/// Why bytes are not a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Invalid {
    /// In bytes from the start of the value.
    pub(super) offset: usize,
    pub(super) reason: &'static str,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)
    }
}

/// The header of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Bytes of the header.
    pub(super) len: usize,
    /// Bytes of the value, without the header.
    pub(super) data: usize,
    objects: u64,
}

impl Header {
    const SMALL: usize = 20;
    const BIG: usize = 32;

    /// Reads a header; `None` if there are not enough bytes to tell.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>, Invalid> {
        let wrong = |reason| Err(Invalid { offset: 0, reason });
        let start = &bytes[..bytes.len().min(4)];
        let is_big = BIG_MAGIC.starts_with(start) && !MAGIC.starts_with(start);
        if !is_big && !MAGIC.starts_with(start) {
            return wrong("there is no value of OCaml's Marshal");
        }
        let len = if is_big { Self::BIG } else { Self::SMALL };
        let Some(header) = bytes.get(..len) else {
            return Ok(None);
        };
        let number = |at: usize, width: usize| {
            let bytes = header[at..at + width].iter();
            bytes.fold(0, |n: u64, &byte| n << 8 | u64::from(byte))
        };
        let (data, objects) = if is_big {
            (number(8, 8), number(16, 8))
        } else {
            (number(4, 4), number(8, 4))
        };
        match usize::try_from(data) {
            Ok(data) if data <= MAX_LEN => Ok(Some(Self { len, data, objects })),
            _ => wrong("a value is said to be larger than 1 GiB"),
        }
    }

    /// Bytes of header and value.
    pub(super) fn total(&self) -> usize {
        self.len + self.data
    }
}

/// A value: an integer, or something in a [`Heap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
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
    Block { tag: u8 },
    String,
    Double,
    Int64,
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
pub(super) struct Heap<'a> {
    data: &'a [u8],
    fields: Vec<Word>,
    objects: Vec<Object>,
    root: Word,
}

/// A block of a [`Heap`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    pub(super) tag: u8,
    fields: &'a [Word],
}

impl Block<'_> {
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    pub(super) fn get(&self, field: usize) -> Option<Value> {
        self.fields.get(field).map(|word| word.value())
    }

    pub(super) fn int(&self, field: usize) -> Option<i64> {
        match self.get(field)? {
            Value::Int(n) => Some(n),
            _ => None,
        }
    }

    pub(super) fn ints(&self) -> impl Iterator<Item = Option<i64>> {
        (0..self.len()).map(|field| self.int(field))
    }
}

impl<'a> Heap<'a> {
    /// Reads a value; `bytes` are those that its header announces.
    pub(super) fn read(header: &Header, bytes: &'a [u8]) -> Result<Self, Invalid> {
        let mut parser = Parser {
            data: &bytes[header.len..header.total()],
            at: 0,
            pending: 0,
            heap_fields: Vec::new(),
            objects: Vec::new(),
        };
        let root = parser.parse().map_err(|reason| Invalid {
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
            Err(Invalid {
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

    pub(super) fn root(&self) -> Value {
        self.root.value()
    }

    pub(super) fn object_count(&self) -> usize {
        self.objects.len()
    }

    fn object(&self, value: Value) -> Option<&Object> {
        match value {
            Value::Object(number) => self.objects.get(number as usize),
            _ => None,
        }
    }

    pub(super) fn block(&self, value: Value) -> Option<Block<'_>> {
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

    pub(super) fn string(&self, value: Value) -> Option<&'a [u8]> {
        match *self.object(value)? {
            Object {
                kind: Kind::String,
                start,
                len,
            } => Some(&self.data[start as usize..][..len as usize]),
            _ => None,
        }
    }

    pub(super) fn double(&self, value: Value) -> Option<f64> {
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

    pub(super) fn int64(&self, value: Value) -> Option<u64> {
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
    pub(super) fn list(&self, mut value: Value) -> impl Iterator<Item = Value> + '_ {
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
            code::CUSTOM | code::CUSTOM_FIXED => {
                let name = self.skip(3)?;
                if &self.data[name..name + 3] != b"_j\0" {
                    return Err("a value has a custom block that is not an int64");
                }
                let start = self.skip(8)?;
                self.add(Kind::Int64, start, 8)
            }
            _ => Err("a value has a code that Spacetime does not use"),
        }
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
        let distance = self.number(width)?;
        let object = (self.objects.len() as u64).checked_sub(distance);
        match object.filter(|_| distance > 0).map(u32::try_from) {
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
            (Ok(number), Ok(start), Ok(len)) if number < u32::MAX => {
                self.objects.push(Object { kind, start, len });
                Ok(Word::object(number))
            }
            _ => Err("a value has too many objects"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value with a header that fits.
    fn value(objects: u8, data: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([0, 0, 0, u8::try_from(data.len()).unwrap()]);
        bytes.extend([0, 0, 0, objects]);
        bytes.extend([0; 8]);
        bytes.extend(data);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Heap<'_>, Invalid> {
        let header = Header::read(bytes)?.expect("a whole header");
        Heap::read(&header, bytes)
    }

    #[test]
    fn integers_have_their_sign() {
        for (data, expected) in [
            (&[0x7f][..], 63),
            (&[0x00, 0xff], -1),
            (&[0x01, 0x80, 0x00], -32768),
            (&[0x02, 0x7f, 0xff, 0xff, 0xff], 0x7fff_ffff),
            (
                &[0x03, 0, 1, 0, 0, 0xac, 0xe0, 0x0a, 0xce],
                0x1_0000_ace0_0ace,
            ),
        ] {
            let bytes = value(0, data);
            assert_eq!(read(&bytes).unwrap().root(), Value::Int(expected));
        }
    }

    #[test]
    fn blocks_may_be_defined_behind_a_pointer_into_them() {
        // [infix -> [1; "a"]; the same block; 1.5; int64 7]
        let mut data = vec![0x80 | 4 << 4];
        data.extend([0x11, 0, 0, 0, 8, 0x80 | 2 << 4, 0x41, 0x21, b'a']);
        data.extend([0x04, 2]);
        data.push(0x0c);
        data.extend(1.5_f64.to_le_bytes());
        data.extend(*b"\x19_j\0\0\0\0\0\0\0\0\x07");
        let bytes = value(5, &data);
        let heap = read(&bytes).unwrap();
        let root = heap.block(heap.root()).unwrap();
        assert_eq!((root.tag, root.len()), (0, 4));
        assert_eq!(root.get(0), Some(Value::Infix));
        let inner = heap.block(root.get(1).unwrap()).unwrap();
        assert_eq!(inner.int(0), Some(1));
        assert_eq!(heap.string(inner.get(1).unwrap()), Some(&b"a"[..]));
        assert_eq!(heap.double(root.get(2).unwrap()), Some(1.5));
        assert_eq!(heap.int64(root.get(3).unwrap()), Some(7));
    }

    #[test]
    fn a_list_that_never_ends_does() {
        // let rec l = 1 :: l
        let bytes = value(1, &[0x80 | 2 << 4, 0x41, 0x04, 1]);
        let heap = read(&bytes).unwrap();
        assert_eq!(heap.list(heap.root()).count(), 1);
    }

    #[test]
    fn what_is_not_a_value_is_refused() {
        for (objects, data) in [
            (0, &[][..]),
            (0, &[0x40, 0x40]),                         // more bytes than values
            (1, &[0x80 | 3 << 4, 0x40, 0x40]),          // fewer fields than announced
            (1, &[0x08, 0xff, 0xff, 0xff, 0x00, 0x40]), // four million fields
            (0, &[0x04, 1]),                            // refers to nothing
            (0, &[0x0e, 0]),                            // an array of doubles
            (2, &[0x21, b'a']),                         // not as many objects
            (0, &[0x11, 0, 0, 0, 8, 0x11, 0, 0, 0, 8]), // pointers to pointers
            (1, &[0x12, b'_', b'n', 0, 0, 0, 0, 0, 0, 0, 0, 0]), // not an int64
        ] {
            assert!(read(&value(objects, data)).is_err(), "{data:?}");
        }
        assert_eq!(Header::read(&MAGIC), Ok(None));
        assert!(Header::read(b"\x84\x95\xa6\xc0").is_err());
        let mut huge = value(0, &[0x40]);
        huge[4] = 0xff;
        assert!(Header::read(&huge).is_err());
    }
}
