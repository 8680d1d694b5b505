//! Data that a store changes and its snapshots share.

use std::sync::Arc;

/// A value that is changed in place until it is shared, and copied when it is changed after that.
///
/// `Arc::make_mut` does the same, but pays for atomic operations at each change.
#[derive(Debug)]
pub(crate) enum Shared<T> {
    Owned(T),
    Shared(Arc<T>),
}

impl<T: Clone + Default> Shared<T> {
    #[inline]
    pub(crate) fn get(&self) -> &T {
        match self {
            Self::Owned(value) => value,
            Self::Shared(value) => value,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        if let Self::Shared(_) = self {
            self.copy();
        }
        match self {
            Self::Owned(value) => value,
            Self::Shared(_) => unreachable!("it was made an owned one"),
        }
    }

    #[cold]
    fn copy(&mut self) {
        *self = Self::Owned(self.get().clone());
    }

    /// The value as it is now, for a snapshot.
    pub(crate) fn share(&mut self) -> Arc<T> {
        let shared = match self {
            Self::Owned(value) => Arc::new(std::mem::take(value)),
            Self::Shared(value) => return Arc::clone(value),
        };
        *self = Self::Shared(Arc::clone(&shared));
        shared
    }
}

impl<T: Default> Default for Shared<T> {
    fn default() -> Self {
        Self::Owned(T::default())
    }
}
