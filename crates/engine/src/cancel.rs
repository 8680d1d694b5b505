//! Cancellation of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{EngineError, ErrorKind};

/// A token that is checked between the steps of a request.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Cancels the requests that have this token.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Fails if the request was cancelled.
    pub fn check(&self) -> Result<(), EngineError> {
        if self.0.load(Ordering::Relaxed) {
            Err(EngineError::new(
                ErrorKind::Cancelled,
                "the request was cancelled",
            ))
        } else {
            Ok(())
        }
    }

    /// Cancels when the returned guard is dropped.
    #[must_use]
    pub fn on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }
}

/// Cancels a request when dropped; held while waiting for the answer.
#[derive(Debug)]
pub struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_the_guard_cancels() {
        let cancel = Cancel::default();
        let waiting = cancel.on_drop();
        assert_eq!(cancel.check(), Ok(()));
        drop(waiting);
        assert_eq!(cancel.check().unwrap_err().kind, ErrorKind::Cancelled);
    }
}
