//! Hooks of the runtime: variables that hold the address of a function.

use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::runtime::symbol;

/// The type of most hooks.
pub(crate) type Hook = extern "C" fn();

/// A hook of the runtime, in front of which ours was put.
///
/// Ours stay: a hook that another library has set after us may call them. Two of ours may be in front of the same hook, each
/// with a chain of its own.
pub(crate) struct Chain {
    previous: AtomicPtr<()>,
}

impl Chain {
    pub(crate) const fn new() -> Self {
        Self {
            previous: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Puts a hook in front of the one in a variable of the runtime, once. Returns false if there is no such variable.
    pub(crate) fn set(&self, name: &CStr, hook: Hook) -> bool {
        let Some(variable) = symbol(name) else {
            return false;
        };
        // SAFETY: it is a variable of the runtime that holds the address of a function, which the runtime
        // reads whole.
        let variable =
            unsafe { AtomicPtr::from_ptr(std::ptr::with_exposed_provenance_mut(variable)) };
        self.put_before(variable, hook);
        true
    }

    fn put_before(&self, variable: &AtomicPtr<()>, hook: Hook) {
        self.previous
            .store(variable.load(Ordering::Acquire), Ordering::Release);
        variable.store(hook as *mut (), Ordering::Release);
    }

    /// Calls the hook that was there before.
    pub(crate) fn call_previous(&self) {
        let previous = self.previous.load(Ordering::Acquire);
        if !previous.is_null() {
            // SAFETY: it was there as a function to call.
            let previous: Hook = unsafe { std::mem::transmute(previous) };
            previous();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    static CALLS: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    static FIRST: Chain = Chain::new();
    static SECOND: Chain = Chain::new();

    fn note(name: &'static str) {
        CALLS.lock().unwrap().push(name);
    }

    extern "C" fn theirs() {
        note("theirs");
    }

    extern "C" fn first() {
        note("first");
        FIRST.call_previous();
    }

    extern "C" fn second() {
        note("second");
        SECOND.call_previous();
    }

    #[test]
    fn two_chains_call_each_other_and_what_was_there() {
        let variable = AtomicPtr::new(theirs as *mut ());
        FIRST.put_before(&variable, first);
        SECOND.put_before(&variable, second);
        // SAFETY: it is one of the functions above.
        let hook: Hook = unsafe { std::mem::transmute(variable.load(Ordering::Acquire)) };
        hook();
        assert_eq!(*CALLS.lock().unwrap(), ["second", "first", "theirs"]);
    }
}
