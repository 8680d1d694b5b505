//! Call stacks: where they lead, and what is there.

mod maps;
mod modules;
mod names;
mod rules;
mod walk;

pub(crate) use names::{is_beginning, resolve};
pub(crate) use walk::Unwinding;

pub use names::Frame;

/// Finds out what the program consists of. The sampler must be at work.
pub(crate) fn prepare() {
    modules::refresh();
    rules::prepare();
    walk::look_for_frame_pointers();
}

/// Before a fork.
pub(crate) fn hold() {
    names::hold();
    modules::hold();
    rules::hold();
}

/// After a fork.
pub(crate) fn release() {
    rules::release();
    modules::release();
    names::release();
}
