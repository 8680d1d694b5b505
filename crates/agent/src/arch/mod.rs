//! What depends on the processor. Another architecture is one more file like `x86_64.rs`, with
//! the same names in it.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{
    JUMP, Jump, alloc_major, alloc_minor, before_own_sampler, before_spawn, before_start,
    dealloc_major, dealloc_minor, jump_to, promote,
};

#[cfg(not(target_arch = "x86_64"))]
compile_error!("the agent is written for x86-64 only so far; see crates/agent/src/arch");
