//! Cache of recent answers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::answer::Answer;
use crate::error::EngineError;

/// The epoch of an answer and the key of its request.
pub(crate) type Key = (u64, String);

/// A cache of answers that is bounded in bytes and drops the least recently used first.
#[derive(Debug)]
pub(crate) struct Cache {
    /// The most recently used at the back.
    entries: VecDeque<(Key, Arc<Answer>, usize)>,
    bytes: usize,
    limit: usize,
}

impl Cache {
    /// A cache with a capacity in bytes; 0 disables it.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            limit,
        }
    }

    /// Finds an answer in a shared cache, or computes it and keeps it there.
    pub(crate) fn answer(
        cache: &Mutex<Self>,
        key: Key,
        compute: impl FnOnce() -> Result<Answer, EngineError>,
    ) -> Result<Arc<Answer>, EngineError> {
        let lock = || cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = lock().find(&key) {
            return Ok(answer);
        }
        let answer = Arc::new(compute()?);
        if lock().is_enabled() {
            // A report takes about as much memory as its JSON, and both are kept.
            let bytes = 2 * answer.json()?.len();
            lock().insert(key, &answer, bytes);
        }
        Ok(answer)
    }

    fn is_enabled(&self) -> bool {
        self.limit > 0
    }

    fn find(&mut self, key: &Key) -> Option<Arc<Answer>> {
        let place = self.entries.iter().position(|(known, ..)| known == key)?;
        let entry = self.entries.remove(place)?;
        let answer = Arc::clone(&entry.1);
        self.entries.push_back(entry);
        Some(answer)
    }

    /// Adds an answer of this size in bytes.
    fn insert(&mut self, key: Key, answer: &Arc<Answer>, bytes: usize) {
        // Two clients may have asked the same at the same time.
        if self.find(&key).is_some() {
            return;
        }
        let bytes = bytes + key.1.len();
        self.bytes += bytes;
        self.entries.push_back((key, Arc::clone(answer), bytes));
        while self.bytes > self.limit
            && let Some((.., bytes)) = self.entries.pop_front()
        {
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::complete::Completion;
    use crate::reports::Report;

    fn answer() -> Arc<Answer> {
        let report = Report::Completion(Completion {
            replace: [0, 0],
            items: Vec::new(),
            unmatched: Vec::new(),
        });
        Arc::new(Answer::new("".into(), 0, None, report))
    }

    fn key(name: &str) -> Key {
        (0, name.to_owned())
    }

    #[test]
    fn old_answers_make_room_for_new_ones() {
        let mut cache = Cache::new(300);
        for name in ["a", "b", "c"] {
            cache.insert(key(name), &answer(), 100);
            cache.insert(key(name), &answer(), 100);
        }
        // The three and their keys do not fit; `a` was first.
        assert!(cache.find(&key("a")).is_none());
        assert!(cache.find(&key("b")).is_some());
        cache.insert(key("d"), &answer(), 100);
        assert!(cache.find(&key("c")).is_none() && cache.find(&key("b")).is_some());
        assert!(cache.bytes <= 300);
    }

    #[test]
    fn answers_of_another_epoch_are_not_found() {
        let mut cache = Cache::new(300);
        cache.insert((1, "a".to_owned()), &answer(), 1);
        assert!(cache.find(&(2, "a".to_owned())).is_none());
        assert!(cache.find(&(1, "a".to_owned())).is_some());
    }
}
