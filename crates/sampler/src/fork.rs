//! Fork handlers. The child has only one thread, so locks must not be held by others during a fork.

use std::sync::Once;

use crate::{large, session, slab, stack, thread};

/// Registers the handlers, once.
pub(crate) fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers take nothing, and only take and give back locks of ours.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}

/// Takes all locks, the outer ones first, so that no other thread holds them in the child.
extern "C" fn before() {
    thread::hold_orphan();
    session::hold();
    stack::hold();
    thread::hold();
    large::hold();
    slab::hold();
}

extern "C" fn in_parent() {
    slab::release();
    large::release();
    thread::release();
    stack::release();
    session::release();
}

/// Disables sampling in the child: the trace and the closures are its parent's. Blocks that were
/// sampled before are still freed correctly.
extern "C" fn in_child() {
    in_parent();
    session::abandon();
}
