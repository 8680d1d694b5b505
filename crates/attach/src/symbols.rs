//! The symbols that a process's libraries export.
//!
//! They are read from its memory, not from files: those may be in another mount namespace, or have been
//! replaced since the process started. The dynamic symbols are there in stripped programs too.

use std::io::Cursor;

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol, ReadCache};

use crate::process::{Module, Process};

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

/// Bounds for what is read: numbers of another process are not to be trusted.
const MAX_HEADERS: u64 = 64;
const MAX_DYNAMIC: u64 = 512;
const MAX_CHAIN: u64 = 4096;

/// The offset of a symbol from the base of a library, given its file.
#[must_use]
pub fn offset(library: &[u8], name: &str) -> Option<u64> {
    // Which copies what it reads: the file need not be aligned in memory.
    let cache = ReadCache::new(Cursor::new(library));
    let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    elf.dynamic_symbols()
        .find(|symbol| symbol.is_definition() && symbol.name() == Ok(name))
        .map(|symbol| symbol.address())
}

impl Process {
    /// The address of a symbol that the program or one of its libraries exports.
    #[must_use]
    pub fn symbol(&self, modules: &[Module], name: &str) -> Option<u64> {
        modules
            .iter()
            .find_map(|module| self.symbol_of(module, name))
    }

    /// The address of a symbol of one module.
    pub(crate) fn symbol_of(&self, module: &Module, name: &str) -> Option<u64> {
        let table = self.tables(module)?;
        let hash = name.bytes().fold(5381_u32, |hash, byte| {
            hash.wrapping_mul(33).wrapping_add(byte.into())
        });
        let header = self.halves(table.hash)?;
        let [buckets, first] = header;
        let [bloom, _] = self.halves(table.hash + 8)?;
        if buckets == 0 {
            return None;
        }
        let buckets_at = table.hash + 16 + 8 * u64::from(bloom);
        let chain_at = buckets_at + 4 * u64::from(buckets);
        let [mut index, _] = self.halves(buckets_at + 4 * u64::from(hash % buckets))?;
        if index < first {
            return None;
        }
        for _ in 0..MAX_CHAIN {
            let [entry, _] = self.halves(chain_at + 4 * u64::from(index - first))?;
            if entry | 1 == hash | 1 {
                let symbol = table.symbols + 24 * u64::from(index);
                let [name_at, info] = self.halves(symbol)?;
                let value = self.word(symbol + 8).ok()?;
                let is_defined = info >> 16 != 0;
                if is_defined && self.is_text(table.strings + u64::from(name_at), name) {
                    return Some(table.bias.wrapping_add(value));
                }
            }
            if entry & 1 == 1 {
                return None;
            }
            index += 1;
        }
        None
    }

    /// Returns true for a program that is loaded by a dynamic linker.
    pub(crate) fn has_interpreter(&self, program: &Module) -> bool {
        self.headers(program)
            .is_some_and(|headers| headers.iter().any(|(kind, _)| *kind == PT_INTERP))
    }

    /// The types and addresses of a module's program headers.
    fn headers(&self, module: &Module) -> Option<Vec<(u32, u64)>> {
        let mut magic = [0; 4];
        self.read(module.base, &mut magic).ok()?;
        if magic != *b"\x7fELF" {
            return None;
        }
        let headers = module.base + self.word(module.base + 32).ok()?;
        let [_, sizes] = self.halves(module.base + 52)?;
        let count = u64::from(sizes & 0xffff).min(MAX_HEADERS);
        (0..count)
            .map(|n| {
                let header = headers + 56 * n;
                let [kind, _] = self.halves(header)?;
                Some((kind, self.word(header + 16).ok()?))
            })
            .collect()
    }

    fn tables(&self, module: &Module) -> Option<Tables> {
        let mut dynamic = None;
        let mut lowest = u64::MAX;
        for (kind, address) in self.headers(module)? {
            match kind {
                PT_DYNAMIC => dynamic = Some(address),
                PT_LOAD => lowest = lowest.min(address & !0xfff),
                _ => {}
            }
        }
        let bias = module.base.wrapping_sub(lowest);
        let dynamic = dynamic?.wrapping_add(bias);
        let [mut symbols, mut strings, mut hash] = [0; 3];
        for n in 0..MAX_DYNAMIC {
            let entry = dynamic + 16 * n;
            let value = self.word(entry + 8).ok()?;
            // The dynamic linker has turned them into addresses, but for the kernel's own library.
            let address = if value < module.base {
                value.wrapping_add(bias)
            } else {
                value
            };
            match self.word(entry).ok()? {
                0 => break,
                DT_SYMTAB => symbols = address,
                DT_STRTAB => strings = address,
                DT_GNU_HASH => hash = address,
                _ => {}
            }
        }
        (symbols != 0 && strings != 0 && hash != 0).then_some(Tables {
            bias,
            symbols,
            strings,
            hash,
        })
    }

    /// Two numbers of 32 bits.
    fn halves(&self, address: u64) -> Option<[u32; 2]> {
        let mut bytes = [[0; 4]; 2];
        self.read(address, bytes.as_flattened_mut()).ok()?;
        Some(bytes.map(u32::from_le_bytes))
    }

    fn is_text(&self, address: u64, text: &str) -> bool {
        let mut bytes = vec![0; text.len() + 1];
        self.read(address, &mut bytes).is_ok() && bytes.strip_suffix(&[0]) == Some(text.as_bytes())
    }
}

/// The dynamic symbols of a module.
struct Tables {
    /// The offset from addresses in the file to those in memory.
    bias: u64,
    symbols: u64,
    strings: u64,
    hash: u64,
}
