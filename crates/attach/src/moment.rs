//! The moments at which a thread can be made to call a function.
//!
//! Loading a library takes locks of the dynamic linker and of `malloc`. A thread that holds one of them
//! would wait for itself. So it must be in OCaml code, or wait in a system call: neither the linker nor
//! `malloc` waits for anything but locks.

use std::io;

use crate::arch::{self, Interrupted, SYSCALL};
use crate::process::{Module, Process, has_pending_signal};
use crate::thread::Stopped;

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
        let registers = thread.registers;
        if self.is_ocaml(arch::program_counter(&registers)) {
            return true;
        }
        let is_instruction = |place| {
            let mut instruction = [0; SYSCALL.len()];
            process.read(place, &mut instruction).is_ok() && instruction == SYSCALL
        };
        match arch::interrupted(&registers, thread.waiting(), is_instruction) {
            None => false,
            Some(Interrupted::Ended(again)) => {
                let tid = thread.tid();
                if !has_pending_signal(process.pid(), tid) {
                    thread.registers = again;
                }
                true
            }
            Some(Interrupted::Continues(number, continued)) => {
                thread.registers = continued;
                thread.restarts();
                let stack = arch::stack_pointer(&registers);
                number != libc::SYS_futex || !self.may_hold_lock(process, stack)
            }
        }
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
            let word = arch::code_address(u64::from_le_bytes(*word));
            self.locking.iter().any(|module| module.is_code(word))
        })
    }
}
