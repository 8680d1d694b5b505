//! Numbers of pairs, most of which are the only one with their first part.

use std::hash::Hash;

use hashbrown::HashMap;

use super::ids::{Id, saturated};

/// The numbers that pairs were given.
///
/// First parts are dense ids: nodes, contexts. Most of them have one second part: that pair is
/// found without a hash table, which has only the further ones.
#[derive(Debug)]
pub(crate) struct PairTable<A, B, N> {
    /// The number of the first pair with each first part, or [`EMPTY`]; [`MORE`] if there are others.
    first: Vec<u32>,
    more: HashMap<(A, B), N>,
}

const MORE: u32 = 1 << 31;
const EMPTY: u32 = MORE - 1;
/// How many first parts the table grows by at once.
const ROOM: usize = 1024;

impl<A: Id + Hash, B: Copy + Eq + Hash, N: Id> PairTable<A, B, N> {
    /// The number of a pair. `second` gives the second part of a pair by number.
    #[inline]
    pub(crate) fn get(&self, a: A, b: B, second: impl Fn(N) -> B) -> Option<N> {
        let first = *self.first.get(a.index())?;
        let number = N::from_index((first & !MORE) as usize);
        if first & !MORE != EMPTY && second(number) == b {
            return Some(number);
        }
        if first & MORE == 0 {
            return None;
        }
        self.more.get(&(a, b)).copied()
    }

    /// Sets the number of a pair that has none.
    #[inline]
    pub(crate) fn insert(&mut self, a: A, b: B, number: N) {
        let index = a.index();
        if self.first.len() <= index {
            // Not one by one: the next ones will come soon.
            self.first.resize(index + ROOM, EMPTY);
        }
        if self.first[index] == EMPTY && number.index() < EMPTY as usize {
            self.first[index] = saturated(number.index());
        } else {
            self.first[index] |= MORE;
            self.more.insert((a, b), number);
        }
    }
}

impl<A, B, N> Default for PairTable<A, B, N> {
    fn default() -> Self {
        Self {
            first: Vec::new(),
            more: HashMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_found_again() {
        let mut table = PairTable::default();
        let mut seconds = Vec::new();
        let pairs: Vec<(u32, u32)> = (0..100).map(|i| (i * i % 37, i)).collect();
        for (number, &(a, b)) in (0..).zip(&pairs) {
            let second = |number: u32| seconds[number as usize];
            assert_eq!(table.get(a, b, second), None);
            table.insert(a, b, number);
            seconds.push(b);
        }
        for (number, &(a, b)) in (0..).zip(&pairs) {
            let second = |number: u32| seconds[number as usize];
            assert_eq!(table.get(a, b, second), Some(number));
            assert_eq!(table.get(a, b + 1000, second), None);
        }
    }

    #[test]
    fn large_numbers_are_found_too() {
        let mut table = PairTable::default();
        for (b, number) in [(1, EMPTY), (2, u32::MAX), (3, 5)] {
            table.insert(7, b, number);
        }
        let second = |number| if number == 5 { 3 } else { 0 };
        assert_eq!(table.get(7, 1, second), Some(EMPTY));
        assert_eq!(table.get(7, 2, second), Some(u32::MAX));
        assert_eq!(table.get(7, 3, second), Some(5));
        assert_eq!(table.get(6, 3, second), None);
    }
}
