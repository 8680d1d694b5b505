//! The moments at which a thread can be made to call a function.
//!
//! Loading a library takes locks of the dynamic linker and of `malloc`. A thread that holds one of them
//! would wait for itself. So it must be in OCaml code, or wait in a system call: neither the linker nor
//! `malloc` waits for anything but locks.

use std::io;

use crate::process::{Module, Process, has_pending_signal};
use crate::thread::Stopped;

/// Results of interrupted system calls, which the kernel restarts.
const RESTARTED: [i64; 4] = [-512, -513, -514, -516];

/// System calls that end with an error when the process is stopped, though no signal has come: the
/// kernel does not restart them, or not on sockets with a timeout. They have done nothing by then, so
/// that they can be started again.
const NOT_RESTARTED: [i64; 18] = [
    libc::SYS_epoll_wait,
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

/// Length of the `syscall` instruction.
pub(crate) const INSTRUCTION: u64 = 2;
pub(crate) const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Bytes of the stack of a waiting thread that are searched for functions that hold locks.
const SEARCHED: usize = 4096;

/// Segments of OCaml code at most.
const MAX_SEGMENTS: u64 = 1 << 16;

/// The code and data of a program by which such moments are recognised.
#[derive(Debug)]
pub(crate) struct Moments {
    /// OCaml code: start and end, sorted.
    ocaml: Vec<(u64, u64)>,
    /// Code that may hold locks while it waits for another.
    locking: Vec<Module>,
}

impl Moments {
    pub(crate) fn find(process: &Process, modules: &[Module]) -> Self {
        let mut ocaml = Vec::new();
        if let Some(table) = process.symbol(modules, "caml_code_segments") {
            for n in 0..MAX_SEGMENTS {
                let segment = || -> io::Result<(u64, u64)> {
                    Ok((
                        process.word(table + 16 * n)?,
                        process.word(table + 16 * n + 8)?,
                    ))
                };
                match segment() {
                    Ok((0, _)) | Err(_) => break,
                    Ok(segment) => ocaml.push(segment),
                }
            }
            ocaml.sort_unstable();
        }
        let is_locking = |module: &&Module| module.name().starts_with("ld-");
        Self {
            ocaml,
            locking: modules.iter().filter(is_locking).cloned().collect(),
        }
    }

    fn is_ocaml(&self, address: u64) -> bool {
        let next = self.ocaml.partition_point(|(start, _)| *start <= address);
        let segment = next.checked_sub(1).and_then(|last| self.ocaml.get(last));
        segment.is_some_and(|(_, end)| address < *end)
    }

    /// Returns true if a thread can be made to call a function now. It is made to start a system call
    /// again that the kernel would end with an error.
    pub(crate) fn is_safe(&self, process: &Process, thread: &mut Stopped<'_>) -> bool {
        let registers = &mut thread.registers;
        if self.is_ocaml(registers.rip) {
            return true;
        }
        let mut instruction = [0; 2];
        let place = registers.rip.wrapping_sub(INSTRUCTION);
        if process.read(place, &mut instruction).is_err() || instruction != SYSCALL {
            return false;
        }
        let number = registers.orig_rax.cast_signed();
        let result = registers.rax.cast_signed();
        if result == -i64::from(libc::EINTR) && NOT_RESTARTED.contains(&number) {
            let tid = thread.tid();
            if !has_pending_signal(process.pid(), tid) {
                let registers = &mut thread.registers;
                registers.rax = registers.orig_rax;
                registers.orig_rax = u64::MAX;
                registers.rip = place;
            }
            return true;
        }
        if number < 0 || !RESTARTED.contains(&result) {
            return false;
        }
        number != libc::SYS_futex || !self.may_hold_lock(process, registers.rsp)
    }

    /// Returns true if a thread that waits for a lock may hold another, of the dynamic linker.
    fn may_hold_lock(&self, process: &Process, stack: u64) -> bool {
        let mut bytes = vec![0; SEARCHED];
        while process.read(stack, &mut bytes).is_err() {
            // The stack ends before.
            bytes.truncate(bytes.len() / 2);
            if bytes.is_empty() {
                return true;
            }
        }
        let (words, _) = bytes.as_chunks::<8>();
        words.iter().any(|word| {
            let word = u64::from_le_bytes(*word);
            self.locking.iter().any(|module| module.is_code(word))
        })
    }
}
