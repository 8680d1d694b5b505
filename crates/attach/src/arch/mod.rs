//! Registers, and instructions of the program: what depends on the processor. Another architecture is another file like
//! `x86_64.rs`, with the same names.

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod processor;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod processor;

#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
pub(crate) use processor::{
    CODE, MACHINE, PROGRAM, SYSCALL, SYSCALL_ALIGNMENT, call_result, code_address, interrupted,
    prepare_call, prepare_system_call, program_counter, set_interrupted, stack_pointer,
    system_call_result,
};

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
compile_error!("heapline-attach only supports x86-64 and arm64; see crates/attach/src/arch");

/// A system call in which a stopped thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupted {
    /// The kernel goes on with the call of this number when the thread is let go, with these registers.
    Continues(i64, Registers),
    /// It has ended with an error, though no signal has come, and can be started again, with these registers.
    Ended(Registers),
}

/// The registers of a thread, as ptrace has them.
pub(crate) type Registers = libc::user_regs_struct;

/// A system call that a thread waits in, as `/proc/PID/task/TID/syscall` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) number: i64,
    pub(crate) arguments: [u64; 6],
    pub(crate) stack_pointer: u64,
    /// The address after its instruction.
    pub(crate) program_counter: u64,
}

impl Waiting {
    /// `None` for a thread that waits in no system call.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let number = words.next()?.parse().ok().filter(|number| *number >= 0)?;
        let mut word = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = word()?;
        }
        Some(Self {
            number,
            arguments,
            stack_pointer: word()?,
            program_counter: word()?,
        })
    }
}

/// System calls that end with an error when the process is stopped, though no signal has come: the
/// kernel does not restart them, or not on sockets with a timeout. They have done nothing by then, so
/// that they can be started again.
const NOT_RESTARTED: [i64; 17] = [
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_io_getevents,
    libc::SYS_io_uring_enter,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_call_of_a_waiting_thread_is_read() {
        let line = "22 0x4 0xffffd0c0 0x400 0xffffffffffffffff 0x0 0x8 0xffffd080 0xffffa0b4c1d4\n";
        let waiting = Waiting {
            number: 22,
            arguments: [4, 0xffff_d0c0, 0x400, u64::MAX, 0, 8],
            stack_pointer: 0xffff_d080,
            program_counter: 0xffff_a0b4_c1d4,
        };
        assert_eq!(Waiting::parse(line), Some(waiting));
        for line in ["running\n", "-1 0xffffd080 0xffffa0b4c1d4\n", "", "22 0x4"] {
            assert_eq!(Waiting::parse(line), None, "{line}");
        }
    }
}
