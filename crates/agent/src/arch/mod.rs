//! Code that depends on the processor. Another architecture is another file like `x86_64.rs`, with
//! the same names.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{
    ALLOC_MAJOR, ALLOC_MINOR, DEALLOC, JUMP, Jump, PROMOTE, Registers, arguments, before_exit,
    before_own_start, before_own_stop, before_spawn, before_start, jump_to, raise_not_started,
    start_sampler, thread_pointer,
};

#[cfg(not(target_arch = "x86_64"))]
compile_error!("the agent only supports x86-64; see crates/agent/src/arch");
