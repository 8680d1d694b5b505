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
    use super::super::ids::{ContextId, IdVec, NodeId};
    use super::*;

    #[test]
    fn every_pair_is_found_again() {
        let mut table = PairTable::default();
        let mut seconds: IdVec<ContextId, usize> = IdVec::default();
        let pairs = (0..100).map(|i| (NodeId::from_index(i * i % 37), i));
        let pairs: IdVec<ContextId, (NodeId, usize)> = pairs.collect();
        for (number, &(a, b)) in pairs.enumerate() {
            let second = |number| seconds[number];
            assert_eq!(table.get(a, b, second), None);
            table.insert(a, b, number);
            seconds.push(b);
        }
        for (number, &(a, b)) in pairs.enumerate() {
            let second = |number| seconds[number];
            assert_eq!(table.get(a, b, second), Some(number));
            assert_eq!(table.get(a, b + 1000, second), None);
        }
    }

    #[test]
    fn large_numbers_are_found_too() {
        let mut table = PairTable::default();
        let large = ContextId::from_index(EMPTY as usize);
        let small = ContextId::from_index(5);
        let [six, seven] = [6, 7].map(NodeId::from_index);
        for (b, number) in [(1, large), (2, ContextId::NONE), (3, small)] {
            table.insert(seven, b, number);
        }
        let second = |number| if number == small { 3 } else { 0 };
        assert_eq!(table.get(seven, 1, second), Some(large));
        assert_eq!(table.get(seven, 2, second), Some(ContextId::NONE));
        assert_eq!(table.get(seven, 3, second), Some(small));
        assert_eq!(table.get(six, 3, second), None);
    }
}
