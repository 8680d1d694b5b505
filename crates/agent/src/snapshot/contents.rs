//! The contents of blocks besides their sizes and references: hashes of strings, memory outside of the heap, and
//! containers with unused space.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use heapline_heapfile::FactKind;

use super::block::{self, Header, is_pointer};
use super::raw::Raw;

/// The name of the operations of bigarrays.
const BIGARRAY: &[u8] = b"_bigarr02";

/// Bytes of the elements of bigarrays, by kind.
const ELEMENTS: [usize; 14] = [4, 8, 1, 1, 2, 2, 4, 8, 8, 8, 8, 16, 1, 2];

/// Flags of bigarrays: who frees the memory.
const OWNED: usize = 0x600;
/// Dimensions that a bigarray has at most.
const DIMENSIONS: usize = 16;

/// Bytes of the name of custom operations.
const NAME: usize = 256;

/// Elements of a table that are looked at to recognise it.
const SOME: usize = 8;

/// Reads blocks.
#[derive(Debug)]
pub(super) struct Contents {
    raw: Raw,
    /// The names of operations by their address.
    pub(super) operations: HashMap<usize, Vec<u8>>,
    /// A random key, which is not in the snapshot: who has that cannot find out what a string was.
    key: RandomState,
}

/// A fact about a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) kind: FactKind,
    pub(super) a: u64,
    pub(super) b: u64,
}

/// The number in a value, if it is one.
fn number(value: usize) -> Option<usize> {
    (value & 1 == 1).then_some(value >> 1)
}

impl Contents {
    pub(super) fn new(raw: Raw) -> Self {
        Self {
            raw,
            operations: HashMap::new(),
            key: RandomState::new(),
        }
    }

    /// A hash of the content of a string, which includes its length. Equal strings have equal hashes.
    pub(super) fn hash(&self, block: usize, header: Header) -> u64 {
        let mut hasher = self.key.build_hasher();
        for n in 0..header.words() {
            hasher.write_usize(self.raw.word(block + 8 * n));
        }
        hasher.finish()
    }

    /// A fact about a block, if there is one. `is_block` tells addresses of blocks from other words.
    pub(super) fn fact(
        &mut self,
        block: usize,
        header: Header,
        is_block: impl FnMut(usize) -> bool,
    ) -> Option<Fact> {
        match (header.tag(), header.words()) {
            (block::CUSTOM, words) => self.external(block, words),
            (0, 3 | 4) => self.container(block, header.words(), is_block),
            _ => None,
        }
    }

    /// The memory outside of the heap of a bigarray.
    fn external(&mut self, block: usize, words: usize) -> Option<Fact> {
        let raw = self.raw;
        let operations = raw.word(block);
        let name = self.operations.entry(operations);
        let name = name.or_insert_with(|| raw.text(raw.word(operations), NAME));
        if name != BIGARRAY || words < 6 {
            return None;
        }
        // struct caml_ba_array: data, num_dims, flags, proxy, dim[]
        let [data, dimensions, flags, proxy] = [1, 2, 3, 4].map(|n| raw.word(block + 8 * n));
        let element = *ELEMENTS.get(flags & 0xff)?;
        if flags & OWNED == 0 || dimensions > DIMENSIONS || dimensions + 5 > words {
            return None;
        }
        let sizes = (0..dimensions).map(|n| raw.word(block + 8 * (5 + n)));
        let bytes = sizes.fold(element, usize::saturating_mul);
        // A part of another one keeps all of it. struct caml_ba_proxy: refcount, data
        let start = if proxy == 0 {
            data
        } else {
            raw.word(proxy + 8)
        };
        Some(Fact {
            kind: FactKind::External,
            a: (data.wrapping_sub(start).wrapping_add(bytes)) as u64,
            b: start as u64,
        })
    }

    /// A hash table or a buffer.
    fn container(
        &self,
        block: usize,
        words: usize,
        mut is_block: impl FnMut(usize) -> bool,
    ) -> Option<Fact> {
        let raw = self.raw;
        let field = |block: usize, n: usize| raw.word(block + 8 * n);
        let fact = |kind, a: usize, b: usize| Fact {
            kind,
            a: a as u64,
            b: b as u64,
        };
        if words == 4
            && let Some(size) = number(field(block, 0))
        {
            let array = field(block, 1);
            let buckets = Header::of(raw, array_of(array, &mut is_block)?);
            let is_table = number(field(block, 2)).is_some()
                && number(field(block, 3)).is_some_and(usize::is_power_of_two)
                && buckets.tag() == 0
                && buckets.words().is_power_of_two()
                && (0..buckets.words().min(SOME))
                    .all(|n| self.is_bucket(field(array, n), &mut is_block));
            return is_table.then(|| fact(FactKind::Hashtable, size, buckets.words()));
        }
        // OCaml 4: buffer, position, length, initial buffer; OCaml 5.3: (buffer, length), position, initial
        let (buffer, length, used, initial) = match words {
            4 => [0, 2, 1, 3].map(|n| field(block, n)).into(),
            _ => {
                let inner = array_of(field(block, 0), &mut is_block)?;
                let header = Header::of(raw, inner);
                if header.tag() != 0 || header.words() != 2 {
                    return None;
                }
                (
                    field(inner, 0),
                    field(inner, 1),
                    field(block, 1),
                    field(block, 2),
                )
            }
        };
        let (length, used) = (number(length)?, number(used)?);
        let is_buffer = used <= length
            && self.bytes(buffer, &mut is_block) == Some(length)
            && self.bytes(initial, &mut is_block).is_some();
        is_buffer.then(|| fact(FactKind::Buffer, used, length))
    }

    /// The length of a string, if it is one.
    fn bytes(&self, value: usize, is_block: &mut impl FnMut(usize) -> bool) -> Option<usize> {
        let string = array_of(value, is_block)?;
        let header = Header::of(self.raw, string);
        if header.tag() != block::STRING {
            return None;
        }
        let last = 8 * header.words() - 1;
        last.checked_sub(self.raw.byte(string + last).into())
    }

    /// Returns true for `Empty` and `Cons` of a bucket.
    fn is_bucket(&self, value: usize, is_block: &mut impl FnMut(usize) -> bool) -> bool {
        if value == 1 {
            return true;
        }
        array_of(value, is_block).is_some_and(|cons| {
            let header = Header::of(self.raw, cons);
            header.tag() == 0 && header.words() == 3
        })
    }
}

/// The address in a value, if it is one of a block.
fn array_of(value: usize, is_block: &mut impl FnMut(usize) -> bool) -> Option<usize> {
    (is_pointer(value) && is_block(value)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A string of two words on the heap, with its header.
    fn string(content: [usize; 2]) -> [usize; 3] {
        [2 << 10 | usize::from(block::STRING), content[0], content[1]]
    }

    fn hash(contents: &Contents, string: &[usize; 3]) -> u64 {
        let block = string.as_ptr().expose_provenance() + 8;
        contents.hash(block, Header::of(contents.raw, block))
    }

    #[test]
    fn hashes_of_strings_tell_nothing_without_their_key() {
        // SAFETY: only the strings below are read.
        let raw = unsafe { Raw::new() };
        let (one, other) = (Contents::new(raw), Contents::new(raw));
        let strings = [string([1, 2]), string([1, 2]), string([1, 3])];
        let [a, b, c] = strings.each_ref().map(|string| hash(&one, string));
        assert_eq!(a, b, "duplicates are found");
        assert_ne!(a, c);
        assert_ne!(a, hash(&other, &strings[0]), "the key is random");
    }
}
