//! The files that are mapped into the program, and the symbols that they export.
//!
//! They are read from memory, and not with the dynamic linker's functions: another thread may have held
//! its lock when this copy of the process was made.

use std::collections::HashMap;
use std::io;

use super::raw::Raw;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_GNU_HASH: usize = 0x6fff_fef5;

/// Entries of tables at most, and bytes of a name.
const MAX_HEADERS: usize = 64;
const MAX_DYNAMIC: usize = 512;
const MAX_SYMBOLS: usize = 1 << 24;
const MAX_NAME: usize = 4096;

/// Bytes of a function at most.
const MAX_FUNCTION: usize = 1 << 20;

/// The symbols that are worth reading begin with this.
const PREFIX: &[u8] = b"caml";

/// A mapping of the process.
#[derive(Debug)]
struct Mapping {
    start: usize,
    end: usize,
    is_readable: bool,
    /// The name of a file, or of the kernel's.
    name: String,
    is_start_of_file: bool,
}

/// The mappings of the process.
#[derive(Debug)]
pub(super) struct Mappings(Vec<Mapping>);

impl Mappings {
    pub(super) fn read() -> io::Result<Self> {
        let text = std::fs::read_to_string("/proc/self/maps")?;
        Ok(Self(text.lines().filter_map(Mapping::parse).collect()))
    }

    fn at(&self, address: usize) -> Option<&Mapping> {
        let after = self.0.partition_point(|mapping| mapping.start <= address);
        let mapping = self.0.get(after.checked_sub(1)?)?;
        (address < mapping.end).then_some(mapping)
    }

    /// The start of the mapping that an address is in, and a number for it.
    pub(super) fn start_of(&self, address: usize) -> Option<usize> {
        self.at(address).map(|mapping| mapping.start)
    }

    /// Returns true if a word can be read at an address.
    pub(super) fn is_readable(&self, address: usize) -> bool {
        let mapping = self.at(address);
        mapping.is_some_and(|mapping| mapping.is_readable && address + 8 <= mapping.end)
    }

    /// Returns true if an address is in the data or code of a file, such as a library.
    pub(super) fn is_of_file(&self, address: usize) -> bool {
        self.at(address)
            .is_some_and(|mapping| mapping.name.starts_with('/'))
    }

    /// Returns true if an address is in the stack of the main thread.
    pub(super) fn is_main_stack(&self, address: usize) -> bool {
        self.at(address)
            .is_some_and(|mapping| mapping.name == "[stack]")
    }
}

impl Mapping {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let access = words.next()?;
        let offset = words.next()?;
        let name = words.nth(2).unwrap_or_default();
        Some(Self {
            start: usize::from_str_radix(start, 16).ok()?,
            end: usize::from_str_radix(end, 16).ok()?,
            is_readable: access.starts_with('r'),
            name: name.to_owned(),
            is_start_of_file: offset.bytes().all(|digit| digit == b'0'),
        })
    }
}

/// The symbols of OCaml modules and functions.
#[derive(Debug)]
pub(super) struct Symbols {
    by_address: Vec<(usize, Vec<u8>)>,
    by_name: HashMap<Vec<u8>, usize>,
}

impl Symbols {
    pub(super) fn read(raw: Raw, mappings: &Mappings) -> Self {
        let mut by_address = Vec::new();
        for mapping in &mappings.0 {
            if mapping.is_readable
                && mapping.is_start_of_file
                && mapping.name.starts_with('/')
                && raw.int(mapping.start).to_le_bytes() == *b"\x7fELF"
            {
                let symbols = Tables::find(raw, mapping.start);
                by_address.extend(symbols.into_iter().flat_map(|tables| tables.symbols(raw)));
            }
        }
        by_address.sort_unstable();
        let by_name = by_address.iter().cloned().map(|(at, name)| (name, at));
        Self {
            by_name: by_name.collect(),
            by_address,
        }
    }

    /// The name of the function that an address is in.
    pub(super) fn function(&self, address: usize) -> Option<&[u8]> {
        let after = self.by_address.partition_point(|(at, _)| *at <= address);
        let (at, name) = self.by_address.get(after.checked_sub(1)?)?;
        (address - at < MAX_FUNCTION).then_some(name)
    }

    /// The name of what begins at an address.
    pub(super) fn exactly_at(&self, address: usize) -> Option<&[u8]> {
        let found = self
            .by_address
            .binary_search_by_key(&address, |(at, _)| *at);
        found.ok().map(|n| self.by_address[n].1.as_slice())
    }

    /// The addresses of a function: its start and that of the next one.
    pub(super) fn range(&self, name: &[u8]) -> Option<(usize, usize)> {
        let start = *self.by_name.get(name)?;
        let after = self.by_address.partition_point(|(at, _)| *at <= start);
        let end = self.by_address.get(after).map_or(start, |(at, _)| *at);
        Some((start, end.min(start + MAX_FUNCTION)))
    }
}

/// The dynamic symbols of a file.
struct Tables {
    /// The difference from addresses in the file to those in memory.
    bias: usize,
    symbols: usize,
    strings: usize,
    hash: usize,
}

impl Tables {
    fn find(raw: Raw, base: usize) -> Option<Self> {
        let headers = base + raw.word(base + 32);
        let count = usize::from(raw.half(base + 56)).min(MAX_HEADERS);
        let (mut dynamic, mut lowest) = (None, usize::MAX);
        for header in (0..count).map(|n| headers + 56 * n) {
            let address = raw.word(header + 16);
            match raw.int(header) {
                PT_DYNAMIC => dynamic = Some(address),
                PT_LOAD => lowest = lowest.min(address & !0xfff),
                _ => {}
            }
        }
        let bias = base.wrapping_sub(lowest);
        let dynamic = dynamic?.wrapping_add(bias);
        let [mut symbols, mut strings, mut hash] = [0; 3];
        for entry in (0..MAX_DYNAMIC).map(|n| dynamic + 16 * n) {
            let value = raw.word(entry + 8);
            // The dynamic linker has turned them into addresses, but for the kernel's own library.
            let address = if value < base {
                value.wrapping_add(bias)
            } else {
                value
            };
            match raw.word(entry) {
                0 => break,
                DT_SYMTAB => symbols = address,
                DT_STRTAB => strings = address,
                DT_GNU_HASH => hash = address,
                _ => {}
            }
        }
        (symbols != 0 && strings != 0 && hash != 0).then_some(Self {
            bias,
            symbols,
            strings,
            hash,
        })
    }

    /// The number of symbols, which only the hash table says.
    fn count(&self, raw: Raw) -> usize {
        let int = |at| raw.int(at) as usize;
        let [buckets, first, bloom] = [0, 4, 8].map(|offset| int(self.hash + offset));
        let buckets_at = self.hash + 16 + 8 * bloom;
        let chains = buckets_at + 4 * buckets;
        let last = (0..buckets).map(|n| int(buckets_at + 4 * n)).max();
        let Some(mut last) = last.filter(|last| *last >= first) else {
            return first;
        };
        while last < MAX_SYMBOLS && int(chains + 4 * (last - first)) & 1 == 0 {
            last += 1;
        }
        last + 1
    }

    fn symbols(self, raw: Raw) -> impl Iterator<Item = (usize, Vec<u8>)> {
        (0..self.count(raw)).filter_map(move |n| {
            let symbol = self.symbols + 24 * n;
            let name = self.strings + raw.int(symbol) as usize;
            let is_defined = raw.half(symbol + 6) != 0;
            let is_wanted =
                is_defined && (0..PREFIX.len()).all(|n| raw.byte(name + n) == PREFIX[n]);
            is_wanted.then(|| {
                let address = self.bias.wrapping_add(raw.word(symbol + 8));
                (address, raw.text(name, MAX_NAME))
            })
        })
    }
}
