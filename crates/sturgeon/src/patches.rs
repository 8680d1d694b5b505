//! Patches of a text that two sides change at the same time.
//!
//! Each side numbers its patches. With a patch it sends the number of the last one that it has seen
//! from the other side; what it has not seen yet, the receiver applies to the offset.

use std::collections::VecDeque;

use crate::sexp::Sexp;

/// The patches that are remembered until the client has seen them. A client that never says so
/// cannot make this grow; its clicks are then ignored.
const MAX_UNSEEN: usize = 4096;

/// The text of this side: patches that were sent, and what the client has seen of them.
#[derive(Debug, Default)]
pub(crate) struct Patches {
    /// The number of the last patch of this side.
    sent: i64,
    /// The number of the last patch of the client that was received.
    received: i64,
    /// Patches that the client may not have seen, oldest first.
    unseen: VecDeque<Patch>,
    /// The last patch that is no longer remembered.
    forgotten: i64,
}

#[derive(Clone, Copy, Debug)]
struct Patch {
    number: i64,
    offset: usize,
    change: Change,
}

#[derive(Clone, Copy, Debug)]
enum Change {
    /// So many characters more.
    Insert(usize),
    /// So many characters less.
    Remove(usize),
}

impl Patches {
    /// The message that inserts a text.
    pub(crate) fn insert(&mut self, offset: usize, text: &str, is_button: bool) -> Sexp {
        let len = text.chars().count();
        let flags = if is_button {
            Sexp::list(vec![Sexp::symbol("clickable")])
        } else {
            Sexp::NIL
        };
        let operation = Sexp::dotted(vec![Sexp::symbol("insert"), Sexp::text(text)], int(len));
        self.patch(offset, Change::Insert(len), operation, flags)
    }

    /// The message that removes characters.
    pub(crate) fn remove(&mut self, offset: usize, len: usize) -> Sexp {
        let operation = Sexp::dotted(vec![Sexp::symbol("remove")], int(len));
        self.patch(offset, Change::Remove(len), operation, Sexp::NIL)
    }

    fn patch(&mut self, offset: usize, change: Change, operation: Sexp, flags: Sexp) -> Sexp {
        self.sent += 1;
        self.unseen.push_back(Patch {
            number: self.sent,
            offset,
            change,
        });
        if self.unseen.len() > MAX_UNSEEN
            && let Some(oldest) = self.unseen.pop_front()
        {
            self.forgotten = oldest.number;
        }
        let revisions = Sexp::dotted(vec![Sexp::Int(self.received)], Sexp::Int(self.sent));
        Sexp::list(vec![
            Sexp::symbol("patch"),
            revisions,
            int(offset),
            operation,
            flags,
        ])
    }

    /// Notes that the client has seen the patch `seen`, and sent `number`.
    pub(crate) fn acknowledge(&mut self, seen: i64, number: i64) {
        self.received = self.received.max(number);
        while self
            .unseen
            .front()
            .is_some_and(|patch| patch.number <= seen)
        {
            self.unseen.pop_front();
        }
        self.forgotten = self.forgotten.max(seen.min(self.sent));
    }

    /// Where an offset is now that the client meant when it had seen the patch `seen`; `None` if it
    /// was removed since, or if that was too long ago.
    pub(crate) fn now(&self, offset: usize, seen: i64) -> Option<usize> {
        if seen < self.forgotten || seen > self.sent {
            return None;
        }
        let later = self.unseen.iter().filter(|patch| patch.number > seen);
        later
            .into_iter()
            .try_fold(offset, |offset, patch| match patch.change {
                _ if offset < patch.offset => Some(offset),
                Change::Insert(len) => Some(offset + len),
                Change::Remove(len) => offset.checked_sub(len).filter(|&now| now >= patch.offset),
            })
    }
}

/// A number of characters: texts have less than 2^63.
fn int(n: usize) -> Sexp {
    Sexp::Int(i64::try_from(n).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_move_with_patches_that_the_client_has_not_seen() {
        let mut patches = Patches::default();
        patches.insert(0, "0123456789", false);
        patches.insert(5, "abc", false);
        patches.remove(0, 2);
        // Seen: all, then all but the last, then the first.
        assert_eq!(patches.now(7, 3), Some(7));
        assert_eq!(patches.now(7, 2), Some(5));
        assert_eq!(patches.now(7, 1), Some(8));
        assert_eq!(patches.now(4, 1), Some(2));
        // Removed since.
        assert_eq!(patches.now(1, 1), None);
        // Never sent.
        assert_eq!(patches.now(1, 4), None);
    }

    #[test]
    fn patches_that_were_seen_are_forgotten() {
        let mut patches = Patches::default();
        patches.insert(0, "abc", false);
        patches.insert(0, "abc", false);
        patches.acknowledge(1, 9);
        assert_eq!(patches.unseen.len(), 1);
        assert_eq!(patches.now(0, 0), None);
        assert_eq!(patches.now(0, 1), Some(3));
        let patch = patches.remove(0, 1).to_string();
        assert_eq!(patch, "(patch (9 . 3) 0 (remove . 1) nil)");
        // Numbers that were never sent.
        patches.acknowledge(i64::MAX, i64::MAX);
        assert!(patches.unseen.is_empty());
        assert_eq!(patches.now(5, 3), Some(5));
    }

    #[test]
    fn a_client_that_never_answers_costs_nothing() {
        let mut patches = Patches::default();
        for _ in 0..3 * MAX_UNSEEN {
            patches.insert(0, "a", false);
        }
        assert_eq!(patches.unseen.len(), MAX_UNSEEN);
        assert_eq!(patches.now(0, 0), None);
    }
}
