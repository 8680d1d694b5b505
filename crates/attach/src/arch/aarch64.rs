//! arm64.
//!
//! The kernel prepares the restart of a system call before a tracer sees the registers, and tells it neither the number of the
//! call nor what its first argument was: the program counter is at the instruction again, or the call has ended. So what the
//! thread waits in is read from `/proc` just before it is stopped, and compared with the registers.

use super::{Interrupted, NOT_RESTARTED, Registers, Waiting};

/// The number of the architecture in ELF files, and what its programs are called.
pub(crate) const MACHINE: u16 = 183;
pub(crate) const PROGRAM: &str = "64-bit ARM program";

/// `svc #0`
pub(crate) const SYSCALL: [u8; 4] = 0xd400_0001_u32.to_le_bytes();
pub(crate) const SYSCALL_ALIGNMENT: usize = 4;
const INSTRUCTION: u64 = 4;

/// The number of instructions of [`CODE`].
const INSTRUCTIONS: usize = 2 * PAIRS + 7;
/// Pairs of registers for vectors.
const PAIRS: usize = 16;

/// Code that calls the function in `x20`, with all registers for floating-point numbers and vectors
/// saved at `x19` and restored, and traps. What is longer than 128 bits (SVE) need not be saved: no code that is interrupted
/// uses it, since system calls overwrite it too.
///
/// ```text
/// stp q0, q1, [x19]; ... stp q30, q31, [x19, #480]
/// mrs x21, fpcr; mrs x22, fpsr
/// blr x20
/// mov x23, x0
/// msr fpcr, x21; msr fpsr, x22
/// ldp q0, q1, [x19]; ... ldp q30, q31, [x19, #480]
/// brk #0
/// ```
pub(crate) const CODE: &[u8] = assemble().as_flattened();

const fn assemble() -> &'static [[u8; 4]; INSTRUCTIONS] {
    const INSTRUCTIONS_OF_CODE: [[u8; 4]; INSTRUCTIONS] = {
        let middle = [
            0xd53b_4415_u32,
            0xd53b_4436,
            0xd63f_0280,
            0xaa00_03f7,
            0xd51b_4415,
            0xd51b_4436,
        ];
        let mut code = [[0; 4]; INSTRUCTIONS];
        let mut n = 0;
        let mut pair = 0_u32;
        while n < PAIRS {
            // Offset in units of 16 bytes, second register, base, first register.
            let operands = pair << 16 | (2 * pair + 1) << 10 | 19 << 5 | (2 * pair);
            code[n] = (0xad00_0000 | operands).to_le_bytes();
            code[PAIRS + middle.len() + n] = (0xad40_0000 | operands).to_le_bytes();
            n += 1;
            pair += 1;
        }
        n = 0;
        while n < middle.len() {
            code[PAIRS + n] = middle[n].to_le_bytes();
            n += 1;
        }
        code[INSTRUCTIONS - 1] = 0xd420_0000_u32.to_le_bytes();
        code
    };
    &INSTRUCTIONS_OF_CODE
}

/// The type of the last branch, in the processor's state: where code is protected, what it jumps to must begin with an
/// instruction for that.
const BRANCH_TYPE: u64 = 3 << 10;

pub(crate) fn program_counter(registers: &Registers) -> u64 {
    registers.pc
}

pub(crate) fn stack_pointer(registers: &Registers) -> u64 {
    registers.sp
}

/// The address in a word that may be a return address: the C library signs those where the processor can, in the bits above
/// those of addresses.
pub(crate) fn code_address(word: u64) -> u64 {
    word & ((1 << 48) - 1)
}

/// The system call that a thread was stopped in, if it is the one that it was waiting in before.
pub(crate) fn interrupted(
    registers: &Registers,
    waiting: Option<Waiting>,
    instruction_at: impl Fn(u64) -> bool,
) -> Option<Interrupted> {
    let waiting = waiting?;
    let instruction = waiting.program_counter.wrapping_sub(INSTRUCTION);
    let is_it = registers.regs[8] == waiting.number.cast_unsigned()
        && registers.sp == waiting.stack_pointer
        && registers.regs[1..6] == waiting.arguments[1..]
        && instruction_at(instruction);
    if !is_it {
        return None;
    }
    let first = waiting.arguments[0];
    let result = registers.regs[0].cast_signed();
    if registers.pc == instruction && registers.regs[0] == first {
        let mut registers = *registers;
        if is_sleep(&waiting) {
            // As the kernel does it: the rest of the time, not all of it again.
            registers.regs[8] = libc::SYS_restart_syscall.cast_unsigned();
        }
        return Some(Interrupted::Continues(waiting.number, registers));
    }
    let has_ended = registers.pc == waiting.program_counter
        && result == -i64::from(libc::EINTR)
        && NOT_RESTARTED.contains(&waiting.number);
    has_ended.then(|| {
        let mut registers = *registers;
        registers.regs[0] = first;
        registers.pc = instruction;
        Interrupted::Ended(registers)
    })
}

/// Returns true for a call that sleeps for some time, not until some time.
fn is_sleep(waiting: &Waiting) -> bool {
    let [_, flags, ..] = waiting.arguments;
    waiting.number == libc::SYS_nanosleep
        || waiting.number == libc::SYS_clock_nanosleep
            && flags & u64::from(libc::TIMER_ABSTIME.unsigned_abs()) == 0
}

/// Before a signal is delivered to a thread whose system call is going to be restarted: if the program has a handler for the
/// signal, the call ends with `EINTR`, as it does by itself for handlers without `SA_RESTART`, such as OCaml's.
pub(crate) fn set_interrupted(registers: &mut Registers, is_caught: bool) {
    if is_caught {
        registers.regs[0] = (-i64::from(libc::EINTR)).cast_unsigned();
        registers.pc += INSTRUCTION;
    }
}

/// Registers for a system call, by an instruction at an address.
pub(crate) fn prepare_system_call(
    registers: &mut Registers,
    instruction: u64,
    number: i64,
    arguments: [u64; 6],
) {
    registers.pc = instruction;
    registers.pstate &= !BRANCH_TYPE;
    registers.regs[8] = number.cast_unsigned();
    registers.regs[..6].copy_from_slice(&arguments);
}

/// The result of a system call that has just ended.
pub(crate) fn system_call_result(registers: &Registers) -> u64 {
    registers.regs[0]
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
    registers.pc = code;
    registers.pstate &= !BRANCH_TYPE;
    registers.sp = stack;
    registers.regs[..2].copy_from_slice(&arguments);
    registers.regs[19] = saved;
    registers.regs[20] = function;
    // The end of the chain of frames.
    registers.regs[29] = 0;
    registers.regs[30] = 0;
}

/// The result of the function, if the thread has trapped at the end of [`CODE`].
pub(crate) fn call_result(registers: &Registers, code: u64) -> Option<u64> {
    // The program counter stays at the instruction.
    let trap = code + CODE.len() as u64 - INSTRUCTION;
    (registers.pc == trap).then_some(registers.regs[23])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBC: u64 = 0xffff_a0b4_c000;

    fn registers() -> Registers {
        Registers {
            regs: std::array::from_fn(|n| 0x1000 + n as u64),
            sp: 0xffff_d080,
            pc: LIBC + 0x1d0,
            pstate: 0x6000_0c00,
        }
    }

    /// A thread in `epoll_pwait(4, ...)`, as `/proc` shows it.
    fn waiting() -> Waiting {
        Waiting::parse(
            "22 0x4 0xffffd0c0 0x400 0xffffffffffffffff 0x0 0x8 0xffffd080 0xffffa0b4c1d4",
        )
        .unwrap()
    }

    /// The registers of that thread.
    fn stopped(first: i64, pc: u64) -> Registers {
        let mut registers = registers();
        registers.regs[..6].copy_from_slice(&waiting().arguments);
        registers.regs[0] = first.cast_unsigned();
        registers.regs[8] = 22;
        registers.pc = pc;
        registers
    }

    fn found(registers: &Registers) -> Option<Interrupted> {
        interrupted(registers, Some(waiting()), |at| at == LIBC + 0x1d0)
    }

    #[test]
    fn a_call_that_the_kernel_restarts_continues() {
        let restarts = stopped(4, LIBC + 0x1d0);
        assert_eq!(found(&restarts), Some(Interrupted::Continues(22, restarts)));
        // Without having been seen waiting, the thread may be about to make the call, with a lock.
        assert_eq!(interrupted(&restarts, None, |_| true), None);
        assert_eq!(interrupted(&restarts, Some(waiting()), |_| false), None);
        // Another call by now.
        for change in [1, 5, 8] {
            let mut other = restarts;
            other.regs[change] += 1;
            assert_eq!(found(&other), None, "x{change}");
        }
        assert_eq!(
            found(&Registers {
                sp: restarts.sp + 16,
                ..restarts
            }),
            None
        );
        assert_eq!(found(&stopped(5, LIBC + 0x1d0)), None);
        assert_eq!(found(&stopped(4, LIBC + 0x200)), None);
    }

    #[test]
    fn a_call_that_has_ended_is_started_again_with_its_first_argument() {
        let ended = stopped(-i64::from(libc::EINTR), LIBC + 0x1d4);
        let again = stopped(4, LIBC + 0x1d0);
        assert_eq!(found(&ended), Some(Interrupted::Ended(again)));
        // It has ended by itself.
        assert_eq!(found(&stopped(1, LIBC + 0x1d4)), None);
        // A call that the kernel restarts if it is not interrupted by a signal.
        let wait = Waiting {
            number: libc::SYS_wait4,
            ..waiting()
        };
        let mut ended = ended;
        ended.regs[8] = libc::SYS_wait4.cast_unsigned();
        assert_eq!(interrupted(&ended, Some(wait), |_| true), None);
    }

    #[test]
    fn a_sleep_goes_on_for_the_rest_of_its_time() {
        for (number, flags, expected) in [
            (libc::SYS_nanosleep, 1, libc::SYS_restart_syscall),
            (libc::SYS_clock_nanosleep, 0, libc::SYS_restart_syscall),
            (libc::SYS_clock_nanosleep, 1, libc::SYS_clock_nanosleep),
        ] {
            let mut sleep = waiting();
            sleep.number = number;
            sleep.arguments[1] = flags;
            let mut before = stopped(4, LIBC + 0x1d0);
            before.regs[1] = flags;
            before.regs[8] = number.cast_unsigned();
            let mut after = before;
            after.regs[8] = expected.cast_unsigned();
            let found = interrupted(&before, Some(sleep), |_| true);
            assert_eq!(found, Some(Interrupted::Continues(number, after)));
        }
    }

    #[test]
    fn a_signal_with_a_handler_ends_the_call() {
        let mut registers = stopped(4, LIBC + 0x1d0);
        set_interrupted(&mut registers, false);
        assert_eq!(registers, stopped(4, LIBC + 0x1d0));
        set_interrupted(&mut registers, true);
        assert_eq!(registers, stopped(-4, LIBC + 0x1d4));
    }

    #[test]
    fn system_calls_and_functions_get_their_arguments() {
        let before = registers();
        let mut call = before;
        prepare_system_call(&mut call, LIBC, libc::SYS_mmap, [1, 2, 3, 4, 5, 6]);
        assert_eq!(call.regs[..7], [1, 2, 3, 4, 5, 6, 0x1006]);
        assert_eq!((call.regs[8], call.pc, call.sp), (222, LIBC, before.sp));
        assert_eq!(call.pstate, 0x6000_0000);
        assert_eq!(system_call_result(&call), 1);

        let mut call = before;
        prepare_call(&mut call, 0x10_000, 0x20_000, 0x30_000, 0x40_000, [7, 8]);
        assert_eq!((call.regs[0], call.regs[1]), (7, 8));
        assert_eq!((call.regs[19], call.regs[20]), (0x20_000, 0x40_000));
        assert_eq!((call.regs[29], call.regs[30]), (0, 0));
        assert_eq!((call.pc, call.sp), (0x10_000, 0x30_000));
        assert_eq!(call_result(&call, 0x10_000), None);
        call.pc += CODE.len() as u64 - 4;
        assert_eq!(call_result(&call, 0x10_000), Some(0x1000 + 23));
    }

    /// Runs the code, but for its trap, in this thread.
    #[test]
    #[expect(unsafe_code, reason = "it is what a traced thread runs")]
    fn the_code_calls_a_function_and_keeps_vectors() {
        extern "C" fn function(a: u64, b: u64) -> u64 {
            let mut result;
            // SAFETY: it overwrites registers that it says it does.
            unsafe {
                std::arch::asm!(
                    "movi v0.16b, #7",
                    "movi v8.16b, #7",
                    "movi v31.16b, #7",
                    "sub {}, {}, {}",
                    out(reg) result, in(reg) a, in(reg) b,
                    out("v0") _, out("v8") _, out("v31") _,
                );
            }
            result
        }
        let (branch_back, rest) = (0xd61f_0300_u32.to_le_bytes(), CODE.len() - 4);
        let code = [&CODE[..rest], &branch_back].concat();
        // SAFETY: the code is written to memory of its own before it is executed, and goes on at the address in x24.
        unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
            let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let page = libc::mmap(std::ptr::null_mut(), 4096, access, private, -1, 0);
            assert_ne!(page, libc::MAP_FAILED);
            page.cast::<u8>().copy_from(code.as_ptr(), code.len());
            let mut saved = [0_u128; 32];
            let (first, middle, last): (u64, u64, u64);
            let result: u64;
            std::arch::asm!(
                "mov x20, {function}",
                "mov x25, {code}",
                "dc cvau, x25",
                "dsb ish",
                "ic ivau, x25",
                "dsb ish",
                "isb",
                "mov x26, x19",
                "mov x19, {saved}",
                "movi v0.16b, #1",
                "movi v8.16b, #2",
                "movi v31.16b, #3",
                "adr x24, 2f",
                "br x25",
                "2:",
                "mov x19, x26",
                "umov x4, v0.d[1]",
                "umov x5, v8.d[1]",
                "umov x6, v31.d[1]",
                function = in(reg) function,
                code = in(reg) page,
                saved = in(reg) saved.as_mut_ptr(),
                in("x0") 50_u64,
                in("x1") 8_u64,
                out("x20") _, out("x21") _, out("x22") _, out("x23") result, out("x24") _, out("x25") _, out("x26") _,
                lateout("x4") first,
                lateout("x5") middle,
                lateout("x6") last,
                clobber_abi("C"),
            );
            libc::munmap(page, 4096);
            assert_eq!(result, 42);
            assert_eq!(
                [first, middle, last],
                [1, 2, 3].map(|n| n * 0x0101_0101_0101_0101)
            );
            assert_eq!(saved[31], 3 * (u128::MAX / 255));
        }
    }
}
