//! A bit for each word of the program's memory that a block may begin at.

use super::raw::Raw;

/// Words that one bitmap is for: those of 2 MiB.
const WORDS: usize = 1 << 18;
/// Numbers of a bitmap.
const BITS: usize = WORDS / 64;
/// Pages of 4 KiB that a bitmap is for, with 2 bits each.
const PAGES: usize = WORDS / 512;
/// Bitmaps of a table.
const TABLE: usize = 1 << 13;

/// The kind of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Heap = 1,
    Static = 2,
    /// No blocks.
    Other = 3,
}

type Region = Option<Box<[u64]>>;

/// The bits, in two levels, since addresses are far apart.
#[derive(Debug)]
pub(super) struct Marks {
    tables: Vec<Option<Box<[Region]>>>,
}

#[inline]
fn place(block: usize) -> (usize, usize, usize) {
    let word = block / 8;
    (word / (WORDS * TABLE), word / WORDS % TABLE, word % WORDS)
}

impl Marks {
    pub(super) fn new() -> Self {
        Self { tables: Vec::new() }
    }

    #[inline]
    fn region(&self, block: usize) -> Option<&[u64]> {
        let (table, region, _) = place(block);
        self.tables.get(table)?.as_ref()?[region].as_deref()
    }

    #[inline]
    fn region_mut(&mut self, block: usize) -> &mut [u64] {
        let (table, region, _) = place(block);
        if table >= self.tables.len() {
            self.tables.resize_with(table + 1, || None);
        }
        let empty = || {
            let mut table = Vec::new();
            table.resize_with(TABLE, || None);
            table.into_boxed_slice()
        };
        let table = self.tables[table].get_or_insert_with(empty);
        table[region].get_or_insert_with(|| vec![0; BITS + PAGES / 32].into_boxed_slice())
    }

    /// Sets the bit of a block. Returns true if it was not set.
    #[inline]
    pub(super) fn set(&mut self, block: usize) -> bool {
        let (_, _, word) = place(block);
        let bits = &mut self.region_mut(block)[word / 64];
        let bit = 1 << (word % 64);
        let is_new = *bits & bit == 0;
        *bits |= bit;
        is_new
    }

    /// Tells the processor that the bit of a block is going to be needed.
    #[inline]
    pub(super) fn prefetch(&self, block: usize) {
        let (_, _, word) = place(block);
        if let Some(bits) = self.region(block) {
            Raw::prefetch(bits[word / 64..].as_ptr().addr());
        }
    }

    /// Clears the bit of a block.
    pub(super) fn clear(&mut self, block: usize) {
        let (_, _, word) = place(block);
        self.region_mut(block)[word / 64] &= !(1 << (word % 64));
    }

    /// Returns true if the bit of a block is set.
    pub(super) fn is_set(&self, block: usize) -> bool {
        let (_, _, word) = place(block);
        let region = self.region(block);
        region.is_some_and(|region| region[word / 64] >> (word % 64) & 1 == 1)
    }

    /// The kind of the page of an address: `find` is called once for each page.
    #[inline]
    pub(super) fn page(&mut self, address: usize, find: impl FnOnce() -> Page) -> Page {
        let (_, _, word) = place(address);
        let page = word / 512;
        let bits = &mut self.region_mut(address)[BITS + page / 32];
        match *bits >> (page % 32 * 2) & 3 {
            1 => Page::Heap,
            2 => Page::Static,
            3 => Page::Other,
            _ => {
                let found = find();
                *bits |= (found as u64) << (page % 32 * 2);
                found
            }
        }
    }

    /// The addresses at which regions with bits begin, in order.
    pub(super) fn regions(&self) -> Vec<usize> {
        let tables = self.tables.iter().enumerate();
        let regions = tables.flat_map(|(t, table)| {
            let regions = table.iter().flat_map(|table| table.iter().enumerate());
            regions.filter_map(move |(r, region)| {
                region.as_ref()?;
                Some(8 * WORDS * (t * TABLE + r))
            })
        });
        regions.collect()
    }

    /// The blocks of a region whose bits are set, in order.
    pub(super) fn blocks(&self, region: usize, blocks: &mut Vec<usize>) {
        blocks.clear();
        let bits = self.region(region).into_iter().flatten().take(BITS);
        for (n, bits) in bits.enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                blocks.push(region + 8 * (64 * n + bits.trailing_zeros() as usize));
                bits &= bits - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_found_in_the_order_of_addresses() {
        let mut marks = Marks::new();
        let blocks = [
            0x7fff_ffff_fff8,
            0x10,
            0x5555_0000_0000,
            0x1f_fff8,
            0x20_0000,
        ];
        for block in blocks {
            assert!(!marks.is_set(block));
            assert!(marks.set(block));
            assert!(!marks.set(block));
            assert!(marks.is_set(block));
        }
        marks.set(0x1000);
        marks.clear(0x1000);
        assert!(!marks.is_set(0x1000));
        assert!(!marks.is_set(0x18));
        let mut found = Vec::new();
        let mut of_region = Vec::new();
        for region in marks.regions() {
            marks.blocks(region, &mut of_region);
            found.append(&mut of_region);
        }
        let mut sorted = blocks;
        sorted.sort_unstable();
        assert_eq!(found, sorted);
    }

    #[test]
    fn pages_are_asked_for_once() {
        let mut marks = Marks::new();
        let pages = [Page::Heap, Page::Static, Page::Other];
        for (n, page) in pages.into_iter().enumerate() {
            let address = 0x7000_0000 + 4096 * n;
            assert_eq!(marks.page(address + 8, || page), page);
            let other = pages[(n + 1) % pages.len()];
            assert_eq!(marks.page(address + 4088, || other), page);
        }
        assert!(!marks.is_set(0x7000_0008));
    }
}
