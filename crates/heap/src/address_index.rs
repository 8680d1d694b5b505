//! Finds blocks by their addresses.

use hashbrown::HashMap;

/// Words of a page, as a power of 2.
const PAGE: u32 = 9;

/// The number of 64-bit words with a bit for each word of a page.
const BITS: usize = 1 << PAGE >> 6;

/// The pages that have blocks. Looking up an address touches a slot of the table and a page, and not the addresses.
#[derive(Debug, Default)]
pub(crate) struct AddressIndex {
    numbers: HashMap<u64, u32>,
    pages: Vec<Page>,
}

#[derive(Debug)]
struct Page {
    /// A bit for each word at which a block begins.
    blocks: [u64; BITS],
    /// The number of its first block.
    first: u32,
}

impl AddressIndex {
    /// An index of blocks in the order of their addresses, of which there are fewer than 2^32.
    pub(crate) fn new(addresses: &[u64]) -> Self {
        let mut index = Self::default();
        let mut last = None;
        for (first, address) in (0..).zip(addresses) {
            let number = address >> PAGE;
            if last != Some(number) {
                // There are no more pages than blocks.
                let place = u32::try_from(index.pages.len()).unwrap_or(u32::MAX);
                index.numbers.insert(number, place);
                index.pages.push(Page {
                    blocks: [0; BITS],
                    first,
                });
                last = Some(number);
            }
            if let Some(page) = index.pages.last_mut() {
                let (word, bit) = place(*address);
                page.blocks[word] |= bit;
            }
        }
        index
    }

    /// The number of the block at an address.
    #[inline]
    pub(crate) fn find(&self, address: u64) -> Option<u32> {
        let page = &self.pages[*self.numbers.get(&(address >> PAGE))? as usize];
        let (word, bit) = place(address);
        if page.blocks[word] & bit == 0 {
            return None;
        }
        let before: u32 = page.blocks[..word]
            .iter()
            .map(|bits| bits.count_ones())
            .sum();
        Some(page.first + before + (page.blocks[word] & (bit - 1)).count_ones())
    }
}

/// The word and the bit of an address in its page.
#[inline]
fn place(address: u64) -> (usize, u64) {
    let place = (address & ((1 << PAGE) - 1)) as usize;
    (place / 64, 1 << (place % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_blocks_are_found_and_nothing_else() {
        let addresses: Vec<u64> = (0..5000).map(|n| n * n % 7 + n * 11 + 500).collect();
        let index = AddressIndex::new(&addresses);
        for address in 0..60_000 {
            let expected = addresses.binary_search(&address).ok();
            let found = index.find(address).map(|number| number as usize);
            assert_eq!(found, expected, "{address}");
        }
        let far = AddressIndex::new(&[u64::MAX]);
        assert_eq!((far.find(u64::MAX), far.find(0)), (Some(0), None));
    }
}
