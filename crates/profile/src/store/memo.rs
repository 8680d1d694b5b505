//! Results that several reports on a profile need, kept for the next one.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Results that are kept at most: those of all views of the page.
const MOST: usize = 12;

/// The results that were used last, each with what it was computed from.
#[derive(Default)]
pub(crate) struct Memo(Mutex<Vec<Entry>>);

struct Entry {
    key: Box<dyn Any + Send>,
    value: Arc<dyn Any + Send + Sync>,
}

impl Memo {
    /// The result for a key: the kept one, or a new one.
    pub(crate) fn get<K, V>(&self, key: &K, compute: impl FnOnce() -> V) -> Arc<V>
    where
        K: Clone + PartialEq + Send + 'static,
        V: Send + Sync + 'static,
    {
        if let Some(value) = self.find::<K, V>(key) {
            return value;
        }
        // Others may compute the same meanwhile. That is better than to wait for each other.
        let value = Arc::new(compute());
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= MOST {
            entries.remove(0);
        }
        entries.push(Entry {
            key: Box::new(key.clone()),
            value: Arc::clone(&value) as _,
        });
        value
    }

    fn find<K, V>(&self, key: &K) -> Option<Arc<V>>
    where
        K: PartialEq + 'static,
        V: Send + Sync + 'static,
    {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = entries
            .iter()
            .position(|entry| entry.key.downcast_ref() == Some(key) && entry.value.is::<V>())?;
        let entry = entries.remove(place);
        let value = Arc::clone(&entry.value).downcast().ok();
        // The last ones were used last.
        entries.push(entry);
        value
    }
}

impl fmt::Debug for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_kept_that_were_used_last() {
        let memo = Memo::default();
        let number = |key: usize, value: u64| *memo.get(&key, || value);
        assert_eq!(number(0, 10), 10);
        assert_eq!(number(0, 20), 10);
        for key in 1..MOST {
            number(key, 30);
            assert_eq!(number(0, 40), 10, "{key}");
        }
        number(MOST, 50);
        // Key 1 was not used for the longest time.
        assert_eq!(number(1, 60), 60);
        assert_eq!(number(0, 70), 10);
        // Other results for the same key are other results.
        assert_eq!(*memo.get(&0_usize, || "text"), "text");
    }
}
