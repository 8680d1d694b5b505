//! OCaml's marshalled values, as `Marshal.to_channel` writes them.
//!
//! Nothing is trusted: memory is bounded by the length of the input, and nothing recurses.

use std::io::Read;

/// Longer values are refused.
const MAX_BYTES: u64 = 32 << 20;

/// Values with more blocks are refused.
const MAX_BLOCKS: usize = 1 << 22;

/// The first bytes of values, of OCaml's three formats.
const SMALL: u64 = 0x8495_a6be;
const BIG: u64 = 0x8495_a6bf;
const COMPRESSED: u64 = 0x8495_a6bd;

/// The reason why a value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MarshalError {
    /// It ends too early.
    #[error("the value is incomplete")]
    Incomplete,
    /// It is no marshalled value, or has contents that are not supported.
    #[error("not a marshalled value, or one with unsupported contents")]
    Invalid,
    /// It is too large.
    #[error("the value is too large")]
    TooLarge,
}

/// An immediate value or a reference to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A number; those that do not fit are the largest one.
    Immediate(u32),
    /// The number of a block.
    Block(u32),
}

#[derive(Clone, Copy, Debug)]
enum Block {
    /// Fields from an index on.
    Fields { tag: u8, first: u32, len: u32 },
    /// Bytes of the input.
    String { start: u32, len: u32 },
    /// A number or a custom block.
    Opaque,
}

/// A value, with all blocks that it refers to.
#[derive(Debug, Default)]
pub(super) struct Marshalled {
    data: Vec<u8>,
    blocks: Vec<Block>,
    /// The first one is the value.
    fields: Vec<Value>,
}

impl Marshalled {
    /// Reads a value at the beginning of the input.
    pub(super) fn read(input: &[u8]) -> Result<Self, MarshalError> {
        let mut header = Input { rest: input };
        let format = header.number(4)?;
        let data = match format {
            SMALL => {
                let len = header.number(4)?;
                header.take(12)?;
                header.bounded(len)?.to_vec()
            }
            BIG => {
                header.take(4)?;
                let len = header.number(8)?;
                header.take(16)?;
                header.bounded(len)?.to_vec()
            }
            COMPRESSED => {
                let header_len = header.number(1)? & 0x3f;
                let (stored, plain) = (header.variable()?, header.variable()?);
                let mut content = Input { rest: input };
                content.bounded(header_len)?;
                decompress(content.bounded(stored)?, plain)?
            }
            _ => return Err(MarshalError::Invalid),
        };
        let mut value = Self::default();
        value.parse(&data, format == COMPRESSED)?;
        value.data = data;
        Ok(value)
    }

    fn parse(&mut self, data: &[u8], is_compressed: bool) -> Result<(), MarshalError> {
        let mut input = Input { rest: data };
        self.fields.push(Value::Immediate(0));
        // Fields to be read: from, to. Those of a block within a block come in between.
        let mut pending = vec![(0, 1)];
        let mut missing = 1;
        while let Some((next, end)) = pending.last_mut() {
            let field = *next;
            *next += 1;
            if next == end {
                pending.pop();
            }
            missing -= 1;
            let item = input.item()?;
            let value = match item {
                Item::Immediate(number) => Value::Immediate(number),
                Item::Shared(number) => {
                    let count = self.blocks.len() as u64;
                    // Counted backwards, unless the value is compressed.
                    let from_start = Some(number).filter(|_| is_compressed);
                    let block = from_start.or_else(|| count.checked_sub(number));
                    let block = block.filter(|block| *block < count);
                    Value::Block(index(block.ok_or(MarshalError::Invalid)?)?)
                }
                // Has no identity, and is not counted.
                Item::Block { len: 0, .. } => Value::Immediate(0),
                Item::Block { tag, len } => {
                    let first = self.fields.len();
                    // Each field takes a byte at least.
                    let known = usize::try_from(len).unwrap_or(usize::MAX);
                    missing = known.saturating_add(missing);
                    if missing > input.rest.len() {
                        return Err(MarshalError::Incomplete);
                    }
                    self.fields.resize(first + known, Value::Immediate(0));
                    pending.push((first, first + known));
                    let (first, len) = (index(first as u64)?, index(len)?);
                    self.add(Block::Fields { tag, first, len })?
                }
                Item::String { len } => {
                    let start = index((data.len() - input.rest.len()) as u64)?;
                    input.bounded(len)?;
                    let len = index(len)?;
                    self.add(Block::String { start, len })?
                }
                Item::Opaque { bytes } => {
                    input.bounded(bytes)?;
                    self.add(Block::Opaque)?
                }
            };
            self.fields[field] = value;
        }
        Ok(())
    }

    fn add(&mut self, block: Block) -> Result<Value, MarshalError> {
        if self.blocks.len() >= MAX_BLOCKS {
            return Err(MarshalError::TooLarge);
        }
        self.blocks.push(block);
        Ok(Value::Block(index(self.blocks.len() as u64 - 1)?))
    }

    /// The value.
    pub(super) fn root(&self) -> Value {
        self.fields[0]
    }

    /// The number of blocks.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The tag and the fields of a block; `None` for other values.
    pub(super) fn block(&self, value: Value) -> Option<(u8, &[Value])> {
        let Value::Block(block) = value else {
            return None;
        };
        match *self.blocks.get(block as usize)? {
            Block::Fields { tag, first, len } => {
                let fields = self.fields.get(first as usize..)?;
                Some((tag, fields.get(..len as usize)?))
            }
            _ => None,
        }
    }

    /// A field of a block with a tag and a number of fields.
    pub(super) fn field(&self, value: Value, field: usize) -> Option<Value> {
        self.block(value)?.1.get(field).copied()
    }

    /// The text of a string in UTF-8.
    pub(super) fn text(&self, value: Value) -> Option<&str> {
        let Value::Block(block) = value else {
            return None;
        };
        match *self.blocks.get(block as usize)? {
            Block::String { start, len } => {
                let bytes = self.data.get(start as usize..)?.get(..len as usize)?;
                std::str::from_utf8(bytes).ok()
            }
            _ => None,
        }
    }
}

fn index(number: u64) -> Result<u32, MarshalError> {
    u32::try_from(number).map_err(|_| MarshalError::TooLarge)
}

/// Decompresses exactly so many bytes.
fn decompress(stored: &[u8], plain: u64) -> Result<Vec<u8>, MarshalError> {
    if plain > MAX_BYTES {
        return Err(MarshalError::TooLarge);
    }
    let mut data = Vec::new();
    zstd::Decoder::with_buffer(stored)
        .and_then(|decoder| decoder.take(plain).read_to_end(&mut data))
        .map_err(|_| MarshalError::Invalid)?;
    if (data.len() as u64) < plain {
        return Err(MarshalError::Incomplete);
    }
    Ok(data)
}

/// A value as it is stored, without its contents.
enum Item {
    Immediate(u32),
    /// A block that came before.
    Shared(u64),
    Block {
        tag: u8,
        len: u64,
    },
    String {
        len: u64,
    },
    Opaque {
        bytes: u64,
    },
}

struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], MarshalError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(MarshalError::Incomplete)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes a stated number of bytes.
    fn bounded(&mut self, len: u64) -> Result<&'a [u8], MarshalError> {
        if len > MAX_BYTES {
            return Err(MarshalError::TooLarge);
        }
        self.take(usize::try_from(len).map_err(|_| MarshalError::TooLarge)?)
    }

    /// A big-endian number of up to 8 bytes.
    fn number(&mut self, bytes: usize) -> Result<u64, MarshalError> {
        let bytes = self.take(bytes)?;
        Ok(bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    }

    /// A number with 7 bits per byte, the highest ones first.
    fn variable(&mut self) -> Result<u64, MarshalError> {
        let mut number: u64 = 0;
        loop {
            let byte = self.number(1)?;
            if number >> 57 != 0 {
                return Err(MarshalError::TooLarge);
            }
            number = number << 7 | byte & 0x7f;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
    }

    /// A signed number.
    fn immediate(&mut self, bytes: usize) -> Result<Item, MarshalError> {
        let unused = 64 - 8 * u32::try_from(bytes).unwrap_or(0);
        let number = (self.number(bytes)? << unused).cast_signed() >> unused;
        Ok(Item::Immediate(u32::try_from(number).unwrap_or(u32::MAX)))
    }

    /// The next value. See `caml/intext.h` for the codes.
    fn item(&mut self) -> Result<Item, MarshalError> {
        let code = self.take(1)?[0];
        Ok(match code {
            0x80.. => Item::Block {
                tag: code & 15,
                len: u64::from(code >> 4 & 7),
            },
            0x40.. => Item::Immediate(u32::from(code & 0x3f)),
            0x20.. => Item::String {
                len: u64::from(code & 0x1f),
            },
            0x00..=0x03 => self.immediate(1 << code)?,
            0x04..=0x06 => Item::Shared(self.number(1 << (code - 0x04))?),
            0x14 => Item::Shared(self.number(8)?),
            0x08 => header(self.number(4)?),
            0x13 => header(self.number(8)?),
            0x09 => Item::String {
                len: self.number(1)?,
            },
            0x0a => Item::String {
                len: self.number(4)?,
            },
            0x15 => Item::String {
                len: self.number(8)?,
            },
            0x0b | 0x0c => Item::Opaque { bytes: 8 },
            0x0d | 0x0e => Item::Opaque {
                bytes: 8 * self.number(1)?,
            },
            0x07 | 0x0f => Item::Opaque {
                bytes: 8 * self.number(4)?,
            },
            0x19 => Item::Opaque {
                bytes: self.custom()?,
            },
            // Closures, other custom blocks and huge arrays do not occur in files of the compiler.
            _ => return Err(MarshalError::Invalid),
        })
    }

    /// The bytes of a boxed integer, after its name.
    fn custom(&mut self) -> Result<u64, MarshalError> {
        let name = self.rest.iter().take(4).position(|byte| *byte == 0);
        let name = self.take(name.ok_or(MarshalError::Invalid)? + 1)?;
        match name {
            b"_i\0" => Ok(4),
            b"_j\0" => Ok(8),
            // Its size comes first.
            b"_n\0" => match self.number(1)? {
                1 => Ok(4),
                2 => Ok(8),
                _ => Err(MarshalError::Invalid),
            },
            _ => Err(MarshalError::Invalid),
        }
    }
}

/// A block, by its header in memory.
fn header(header: u64) -> Item {
    Item::Block {
        tag: (header & 0xff) as u8,
        len: header >> 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value in the small format.
    fn small(data: &[u8]) -> Vec<u8> {
        let mut file = 0x8495_a6be_u32.to_be_bytes().to_vec();
        file.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        file.extend([0; 12]);
        file.extend(data);
        file
    }

    /// `("ab", [300; -1])`, and the string again.
    const TUPLE: &[u8] = &[
        0xb0, 0x22, b'a', b'b', 0xa0, 0x01, 0x01, 0x2c, 0xa0, 0x00, 0xff, 0x40, 0x04, 3,
    ];

    fn check(value: &Marshalled) {
        let (tag, fields) = value.block(value.root()).unwrap();
        assert_eq!((tag, fields.len()), (0, 3));
        assert_eq!(value.text(fields[0]), Some("ab"));
        assert_eq!(value.field(fields[1], 0), Some(Value::Immediate(300)));
        let next = value.field(fields[1], 1).unwrap();
        assert_eq!(value.field(next, 0), Some(Value::Immediate(u32::MAX)));
        assert_eq!(fields[2], fields[0]);
        assert_eq!(value.len(), 4);
    }

    #[test]
    fn values_are_read_in_all_formats() {
        check(&Marshalled::read(&small(TUPLE)).unwrap());

        let mut big = 0x8495_a6bf_u32.to_be_bytes().to_vec();
        big.extend([0; 4]);
        big.extend((TUPLE.len() as u64).to_be_bytes());
        big.extend([0; 16]);
        big.extend(TUPLE);
        check(&Marshalled::read(&big).unwrap());

        // References are counted from the first block.
        let mut plain = TUPLE.to_vec();
        *plain.last_mut().unwrap() = 1;
        let stored = zstd::bulk::compress(&plain, 3).unwrap();
        let mut compressed = 0x8495_a6bd_u32.to_be_bytes().to_vec();
        let len = u8::try_from(stored.len()).unwrap();
        compressed.extend([10, len, u8::try_from(plain.len()).unwrap(), 4, 0, 0]);
        compressed.extend(stored);
        check(&Marshalled::read(&compressed).unwrap());
    }

    #[test]
    fn damaged_values_are_refused() {
        let file = small(TUPLE);
        for len in 0..file.len() {
            assert!(Marshalled::read(&file[..len]).is_err(), "{len}");
        }
        for (data, problem) in [
            // A block of 2^54 - 1 fields.
            (
                &[0x13, 255, 255, 255, 255, 255, 255, 255, 255][..],
                MarshalError::Incomplete,
            ),
            (&[0x15, 0, 0, 0, 1, 0, 0, 0, 0], MarshalError::TooLarge),
            // A reference to a block that does not exist.
            (&[0x04, 1], MarshalError::Invalid),
            (&[0x10], MarshalError::Invalid),
            (b"\x19_x\0", MarshalError::Invalid),
        ] {
            assert_eq!(Marshalled::read(&small(data)).unwrap_err(), problem);
        }
        let mut bomb = 0x8495_a6bd_u32.to_be_bytes().to_vec();
        bomb.extend([14, 1, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0]);
        assert_eq!(Marshalled::read(&bomb).unwrap_err(), MarshalError::TooLarge);
    }

    #[test]
    fn numbers_and_custom_blocks_are_skipped() {
        let mut data = vec![0xc0];
        data.push(0x0c);
        data.extend([0; 8]);
        data.extend([0x0e, 1]);
        data.extend([0; 8]);
        data.extend(b"\x19_j\0\0\0\0\0\0\0\0\x07\x19_n\0\x01\0\0\0\x07");
        let value = Marshalled::read(&small(&data)).unwrap();
        assert_eq!(value.len(), 5);
    }
}
