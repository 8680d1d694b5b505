//! x86-64.

use super::{Interrupted, NOT_RESTARTED, Registers, Waiting};

/// The number of the architecture in ELF files, and what its programs are called.
pub(crate) const MACHINE: u16 = 62;
pub(crate) const PROGRAM: &str = "64-bit x86 program";

/// The `syscall` instruction, which may be anywhere.
pub(crate) const SYSCALL: [u8; 2] = [0x0f, 0x05];
pub(crate) const SYSCALL_ALIGNMENT: usize = 1;

/// Code that calls the function in `r12`, with all registers for floating-point numbers and vectors
/// saved at `rbx` and restored, and traps.
///
/// ```text
/// mov eax, -1; mov edx, -1; xsave64 [rbx]
/// call r12
/// mov r13, rax
/// mov eax, -1; mov edx, -1; xrstor64 [rbx]
/// int3
/// ```
pub(crate) const CODE: &[u8] = &[
    0xb8, 0xff, 0xff, 0xff, 0xff, 0xba, 0xff, 0xff, 0xff, 0xff, 0x48, 0x0f, 0xae, 0x23, 0x41, 0xff,
    0xd4, 0x49, 0x89, 0xc5, 0xb8, 0xff, 0xff, 0xff, 0xff, 0xba, 0xff, 0xff, 0xff, 0xff, 0x48, 0x0f,
    0xae, 0x2b, 0xcc,
];

/// In place of the number of a system call: there is none to restart.
const NO_SYSTEM_CALL: u64 = u64::MAX;

/// Results of interrupted system calls, which the kernel restarts.
const RESTARTED: [i64; 4] = [-512, -513, -514, -516];

pub(crate) fn program_counter(registers: &Registers) -> u64 {
    registers.rip
}

pub(crate) fn stack_pointer(registers: &Registers) -> u64 {
    registers.rsp
}

/// The address in a word that may be a return address.
pub(crate) fn code_address(word: u64) -> u64 {
    word
}

/// The system call that a thread was stopped in, which has an instruction just before the program counter. The registers
/// say all.
pub(crate) fn interrupted(
    registers: &Registers,
    _: Option<Waiting>,
    instruction_at: impl Fn(u64) -> bool,
) -> Option<Interrupted> {
    let instruction = registers.rip.wrapping_sub(SYSCALL.len() as u64);
    if !instruction_at(instruction) {
        return None;
    }
    let number = registers.orig_rax.cast_signed();
    let result = registers.rax.cast_signed();
    let is_not_restarted = NOT_RESTARTED.contains(&number) || number == libc::SYS_epoll_wait;
    if result == -i64::from(libc::EINTR) && is_not_restarted {
        return Some(Interrupted::Ended(Registers {
            rax: registers.orig_rax,
            orig_rax: NO_SYSTEM_CALL,
            rip: instruction,
            ..*registers
        }));
    }
    (number >= 0 && RESTARTED.contains(&result))
        .then_some(Interrupted::Continues(number, *registers))
}

/// Before a signal is delivered to a thread whose system call is going to be restarted. The kernel does here what the
/// signal's handler asks for.
pub(crate) fn set_interrupted(_: &mut Registers, _: bool) {}

/// Registers for a system call, by an instruction at an address.
pub(crate) fn prepare_system_call(
    registers: &mut Registers,
    instruction: u64,
    number: i64,
    arguments: [u64; 6],
) {
    registers.rip = instruction;
    registers.rax = number.cast_unsigned();
    registers.orig_rax = NO_SYSTEM_CALL;
    [
        registers.rdi,
        registers.rsi,
        registers.rdx,
        registers.r10,
        registers.r8,
        registers.r9,
    ] = arguments;
}

/// The result of a system call that has just ended.
pub(crate) fn system_call_result(registers: &Registers) -> u64 {
    registers.rax
}

/// Registers for [`CODE`] at an address, which calls a function with two arguments, and saves registers at `saved`.
pub(crate) fn prepare_call(
    registers: &mut Registers,
    code: u64,
    saved: u64,
    stack: u64,
    function: u64,
    arguments: [u64; 2],
) {
    registers.rip = code;
    registers.orig_rax = NO_SYSTEM_CALL;
    registers.rsp = stack;
    registers.rbp = 0;
    registers.rbx = saved;
    registers.r12 = function;
    [registers.rdi, registers.rsi] = arguments;
    // Interrupts on, direction forwards.
    registers.eflags = 0x202;
}

/// The result of the function, if the thread has trapped at the end of [`CODE`].
pub(crate) fn call_result(registers: &Registers, code: u64) -> Option<u64> {
    (registers.rip == code + CODE.len() as u64).then_some(registers.r13)
}
