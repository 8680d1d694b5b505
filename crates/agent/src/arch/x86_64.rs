//! x86-64: jumps, the code of closures, and hooks.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use std::arch::{asm, naked_asm};

use crate::callbacks;
use crate::callbacks::{MultipleDomains, SingleDomain};
use crate::exit;
use crate::own_sampler;
use crate::preload;
use crate::runtime::{C_CALL, START_ARGUMENTS, Value};
use crate::tracker::Closure;

/// Bytes of a jump to anywhere.
pub(crate) const JUMP: usize = 14;

/// Instructions that jump somewhere.
pub(crate) type Jump = [u8; JUMP];

/// `jmp *(%rip)`, and the address.
pub(crate) fn jump_to(target: usize) -> Jump {
    let mut code = [0; JUMP];
    code[..6].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
    code[6..].copy_from_slice(&target.to_le_bytes());
    code
}

/// Processors of this architecture see by themselves that code was changed.
#[inline]
pub(crate) fn flush_code(_start: usize, _len: usize) {}

/// The thread pointer, by which a thread finds its own variables.
#[inline]
pub(crate) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: a thread's pointer is at the place that it points to.
    unsafe {
        asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly));
    }
    pointer
}

/// Tells the processor that an address is going to be read.
#[inline]
pub(crate) fn prefetch(at: usize) {
    // SAFETY: it is a hint, which has no effect for addresses that cannot be read.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::with_exposed_provenance(at)) };
}

/// The return address in a word of an OCaml stack.
#[inline]
pub(crate) fn return_address(word: usize) -> usize {
    word
}

/// Code for closures of one argument, which call a function with that.
///
/// OCaml passes the argument in `%rax`, keeps the domain's state in `%r14` and the allocation pointer
/// in `%r15`, and expects nothing else to survive. On entry the stack is 8 bytes off its alignment,
/// because of the return address, as C has it.
///
/// So in OCaml 4 a C function that has nothing to do with the heap is called like any other. In
/// OCaml 5 code runs on the stack of a fiber, which is small: `caml_c_call` takes a C function in
/// `%rax` and calls it on the system's.
macro_rules! closure {
    ($name:ident, $function:ident) => {
        pub(crate) const $name: Closure = {
            #[unsafe(naked)]
            unsafe extern "C" fn direct(_: Value) -> Value {
                naked_asm!(
                    "mov rdi, rax",
                    "jmp {function}",
                    function = sym callbacks::$function::<SingleDomain>,
                )
            }
            #[unsafe(naked)]
            unsafe extern "C" fn switching(_: Value) -> Value {
                naked_asm!(
                    "sub rsp, 8",
                    "mov rdi, rax",
                    "lea rax, [rip + {function}]",
                    "call [rip + {c_call}]",
                    "add rsp, 8",
                    "ret",
                    function = sym callbacks::$function::<MultipleDomains>,
                    c_call = sym C_CALL,
                )
            }
            Closure { direct, switching }
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
        "mov rdi, [rip + {arguments}]",
        "mov rsi, [rip + {arguments} + 8]",
        "mov rdx, [rip + {arguments} + 16]",
        "mov rax, [rip + {arguments} + 24]",
        "jmp [rip + {c_call}]",
        arguments = sym START_ARGUMENTS,
        c_call = sym C_CALL,
    )
}

/// Registers that a hook saves: in the order of the stack, from the last pushed one on.
pub(crate) type Registers = [Value; 8];

/// The places of the first three arguments of a function.
///
/// # Safety
///
/// There are saved registers.
pub(crate) unsafe fn arguments(registers: *mut Registers) -> [*mut Value; 3] {
    let first = registers.cast::<Value>();
    // SAFETY: rdi was pushed first, then rsi and rdx.
    unsafe { [first.add(7), first.add(6), first.add(5)] }
}

/// Code that raises an exception, in place of a function of the runtime.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn raise_not_started() {
    naked_asm!(
        "mov rdi, [rip + {message}]",
        "jmp [rip + {failwith}]",
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
                "push rbp",
                "mov rbp, rsp",
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "push rax",
                "push r10",
                "mov rdi, rsp",
                "and rsp, -16",
                "call {function}",
                "mov r11, rax",
                "lea rsp, [rbp - 64]",
                "pop r10",
                "pop rax",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "pop rbp",
                "jmp r11",
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
