//! Code that depends on the processor. Another architecture is another file like `x86_64.rs`, with
//! the same names.

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod processor;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod processor;

#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
pub(crate) use processor::{
    ALLOC_MAJOR, ALLOC_MINOR, DEALLOC, JUMP, Jump, PROMOTE, Registers, arguments, before_exit,
    before_own_start, before_own_stop, before_shutdown, before_spawn, before_start, flush_code,
    jump_to, prefetch, raise_not_started, return_address, start_sampler, thread_pointer,
};

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
compile_error!("the agent only supports x86-64 and arm64; see crates/agent/src/arch");
