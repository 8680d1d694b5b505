//! arm64: jumps, the code of closures, and hooks.

use std::arch::{asm, naked_asm};

use crate::callbacks;
use crate::callbacks::{MultipleDomains, SingleDomain};
use crate::exit;
use crate::own_sampler;
use crate::preload;
use crate::runtime::{C_CALL, START_ARGUMENTS, Value};
use crate::tracker::Closure;

/// Bytes of a jump to anywhere.
pub(crate) const JUMP: usize = 16;

/// Instructions that jump somewhere.
pub(crate) type Jump = [u8; JUMP];

/// `ldr x16, #8; br x16`, and the address. `x16` is for such code: no function expects anything in it.
pub(crate) fn jump_to(target: usize) -> Jump {
    let mut code = [0; JUMP];
    code[..4].copy_from_slice(&0x5800_0050_u32.to_le_bytes());
    code[4..8].copy_from_slice(&0xd61f_0200_u32.to_le_bytes());
    code[8..].copy_from_slice(&target.to_le_bytes());
    code
}

/// Makes processors execute code that was just written: their caches for instructions do not see what is written as data.
pub(crate) fn flush_code(start: usize, len: usize) {
    /// Commands of `membarrier`: `PRIVATE_EXPEDITED_SYNC_CORE`, and the request to be allowed to use it.
    const SYNC: libc::c_int = 1 << 5;
    const REGISTER_SYNC: libc::c_int = 1 << 6;
    let types: u64;
    // SAFETY: reads a register that user code may read.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) types, options(nomem, nostack, preserves_flags)) };
    // Cache lines as logarithms of words of 4 bytes.
    let data_line = 4 << (types >> 16 & 15);
    let code_line = 4 << (types & 15);
    let lines = |line: usize| (start & !(line - 1)..start + len).step_by(line);
    // SAFETY: the code is in memory that can be read. These instructions change none of it.
    unsafe {
        for line in lines(data_line) {
            asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags));
        }
        asm!("dsb ish", options(nostack, preserves_flags));
        for line in lines(code_line) {
            asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags));
        }
        asm!("dsb ish", "isb", options(nostack, preserves_flags));
        // Other cores may have fetched the old instructions already. If the system does not know the call, they get the
        // new ones at their next interrupt.
        libc::syscall(libc::SYS_membarrier, REGISTER_SYNC, 0, 0);
        libc::syscall(libc::SYS_membarrier, SYNC, 0, 0);
    }
}

/// The thread pointer, by which a thread finds its own variables.
#[inline]
pub(crate) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: reads a register that user code may read.
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}

/// Tells the processor that an address is going to be read.
#[inline]
pub(crate) fn prefetch(at: usize) {
    // SAFETY: it is a hint, which has no effect for addresses that cannot be read.
    unsafe {
        asm!("prfm pldl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    };
}

/// The return address in a word of an OCaml stack.
///
/// OCaml 5.5 sets bit 60 in return addresses of frames that a minor collection has scanned (`caml/stack.h`). No address
/// of a program has that bit.
#[inline]
pub(crate) fn return_address(word: usize) -> usize {
    word & !(1 << 60)
}

/// Code for closures of one argument, which call a function with that.
///
/// OCaml passes the argument in `x0`, as C does, keeps the domain's state in `x28`, the allocation pointer
/// in `x27` and the exception handler in `x26`, which C functions preserve, and expects nothing else to survive. The
/// stack is aligned as C has it.
///
/// So in OCaml 4 a C function that has nothing to do with the heap is called like any other. In
/// OCaml 5 code runs on the stack of a fiber, which is small: `caml_c_call` takes a C function in
/// `x8` and calls it on the system's.
macro_rules! closure {
    ($name:ident, $function:ident) => {
        pub(crate) const $name: Closure = {
            #[unsafe(naked)]
            unsafe extern "C" fn switching(_: Value) -> Value {
                naked_asm!(
                    "adrp x8, {function}",
                    "add x8, x8, :lo12:{function}",
                    "adrp x16, {c_call}",
                    "ldr x16, [x16, :lo12:{c_call}]",
                    "br x16",
                    function = sym callbacks::$function::<MultipleDomains>,
                    c_call = sym C_CALL,
                )
            }
            Closure {
                direct: callbacks::$function::<SingleDomain>,
                switching,
            }
        };
    };
}

closure!(ALLOC_MINOR, alloc_minor);
closure!(ALLOC_MAJOR, alloc_major);
closure!(PROMOTE, promote);
closure!(DEALLOC, dealloc);

/// Code of a closure that calls a C function with three arguments. It has no frame of its own, which the
/// runtime would not know, so that there may be collections and exceptions.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn start_sampler() {
    naked_asm!(
        "adrp x16, {arguments}",
        "add x16, x16, :lo12:{arguments}",
        "ldp x0, x1, [x16]",
        "ldp x2, x8, [x16, #16]",
        "adrp x16, {c_call}",
        "ldr x16, [x16, :lo12:{c_call}]",
        "br x16",
        arguments = sym START_ARGUMENTS,
        c_call = sym C_CALL,
    )
}

/// Registers that a hook saves: `x0` to `x8`, and one word that aligns the stack.
pub(crate) type Registers = [Value; 10];

/// The places of the first three arguments of a function.
///
/// # Safety
///
/// There are saved registers.
pub(crate) unsafe fn arguments(registers: *mut Registers) -> [*mut Value; 3] {
    let first = registers.cast::<Value>();
    // SAFETY: the registers begin with x0, x1 and x2.
    unsafe { [first, first.add(1), first.add(2)] }
}

/// Code that raises an exception, in place of a function of the runtime.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn raise_not_started() {
    naked_asm!(
        "adrp x0, {message}",
        "ldr x0, [x0, :lo12:{message}]",
        "adrp x16, {failwith}",
        "ldr x16, [x16, :lo12:{failwith}]",
        "br x16",
        message = sym own_sampler::NOT_STARTED,
        failwith = sym own_sampler::FAILWITH,
    )
}

/// A hook that a function of the runtime was overwritten with a jump to: calls ours with the saved
/// [`Registers`], which returns the address of the function, restored, or of another one, and goes there with
/// all that was passed to it.
macro_rules! hook {
    ($name:ident, $function:path) => {
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            naked_asm!(
                "stp x29, x30, [sp, #-96]!",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]",
                "stp x2, x3, [sp, #32]",
                "stp x4, x5, [sp, #48]",
                "stp x6, x7, [sp, #64]",
                "stp x8, xzr, [sp, #80]",
                "add x0, sp, #16",
                "bl {function}",
                "mov x16, x0",
                "ldp x0, x1, [sp, #16]",
                "ldp x2, x3, [sp, #32]",
                "ldp x4, x5, [sp, #48]",
                "ldp x6, x7, [sp, #64]",
                "ldr x8, [sp, #80]",
                "ldp x29, x30, [sp], #96",
                "br x16",
                function = sym $function,
            )
        }
    };
}

hook!(before_start, preload::before_start);
hook!(before_spawn, preload::before_spawn);
hook!(before_exit, exit::before_exit);
hook!(before_shutdown, exit::before_shutdown);
hook!(before_own_start, own_sampler::before_own_start);
hook!(before_own_stop, own_sampler::before_own_stop);
