//! Walking up the stack, without asking anybody else for a lock or for memory.

use std::arch::asm;
use std::sync::atomic::{AtomicBool, Ordering};

use framehop::{FrameAddress, Unwinder};

use super::maps::read_memory;
use super::modules::{self, modules};
use super::rules::with_cache;

/// Frames of a stack that are kept.
const DEEPEST: usize = 1000;

/// The number of bytes copied of a stack that is not a thread's: of a coroutine, or of a signal
/// handler.
const COPIED: usize = 1 << 14;

/// The bits of a return address that are the address. C libraries for arm64 may have it signed in the bits above.
const ADDRESS_BITS: u64 = if cfg!(target_arch = "aarch64") {
    (1 << 48) - 1
} else {
    u64::MAX
};

/// True if the program has frame pointers, which are faster to unwind with.
static FRAME_POINTERS: AtomicBool = AtomicBool::new(false);

/// The state that a thread needs to unwind its stack.
pub(crate) struct Unwinding {
    /// The lowest and highest address of the thread's stack.
    bounds: (u64, u64),
    copy: Vec<u64>,
}

/// The registers at the start of unwinding.
#[derive(Clone, Copy, Debug)]
struct Registers {
    pc: u64,
    sp: u64,
    /// The frame pointer.
    bp: u64,
    /// The link register of arm64, which has the return address of functions that call no others.
    #[cfg(target_arch = "aarch64")]
    lr: u64,
}

impl Registers {
    #[expect(
        clippy::inline_always,
        reason = "it is about the function that it is in"
    )]
    #[inline(always)]
    #[cfg(target_arch = "aarch64")]
    fn here() -> Self {
        let (pc, sp, bp, lr);
        // SAFETY: it only reads registers.
        unsafe {
            asm!(
                "adr {}, .", "mov {}, sp", "mov {}, x29", "mov {}, x30",
                out(reg) pc, out(reg) sp, out(reg) bp, out(reg) lr,
                options(nomem, nostack, preserves_flags)
            );
        }
        Self { pc, sp, bp, lr }
    }

    #[expect(
        clippy::inline_always,
        reason = "it is about the function that it is in"
    )]
    #[inline(always)]
    #[cfg(target_arch = "x86_64")]
    fn here() -> Self {
        let (pc, sp, bp);
        // SAFETY: it only reads registers.
        unsafe {
            asm!(
                "lea {}, [rip]", "mov {}, rsp", "mov {}, rbp",
                out(reg) pc, out(reg) sp, out(reg) bp,
                options(nomem, nostack, preserves_flags)
            );
        }
        Self { pc, sp, bp }
    }

    /// The registers for the unwinder.
    #[cfg(target_arch = "aarch64")]
    fn unwinding(self) -> framehop::aarch64::UnwindRegsAarch64 {
        use framehop::aarch64::{PtrAuthMask, UnwindRegsAarch64};
        let mask = PtrAuthMask(ADDRESS_BITS);
        UnwindRegsAarch64::new_with_ptr_auth_mask(mask, self.lr, self.sp, self.bp)
    }

    /// The registers for the unwinder.
    #[cfg(target_arch = "x86_64")]
    fn unwinding(self) -> framehop::x86_64::UnwindRegsX86_64 {
        framehop::x86_64::UnwindRegsX86_64::new(self.pc, self.sp, self.bp)
    }
}

impl Unwinding {
    pub(crate) fn new() -> Self {
        Self {
            bounds: (0, 0),
            copy: Vec::new(),
        }
    }

    /// From now on, this is for the thread that calls.
    pub(crate) fn begin_thread(&mut self) {
        self.bounds = stack_bounds();
    }

    /// Takes the return addresses of this thread's stack, the innermost first. Those of the sampler
    /// itself are among them.
    #[inline(never)]
    pub(crate) fn capture(&mut self, stack: &mut Vec<u64>) {
        let registers = Registers::here();
        self.walk(registers, stack);
        let Some(modules) = modules() else {
            return;
        };
        let unknown = modules.first_unknown(stack);
        if unknown.is_some_and(modules::refresh_for) {
            self.walk(registers, stack);
        }
    }

    fn walk(&mut self, registers: Registers, stack: &mut Vec<u64>) {
        stack.clear();
        let (lowest, highest) = self.bounds;
        let is_own = lowest <= registers.sp && registers.sp < highest;
        if is_own && FRAME_POINTERS.load(Ordering::Relaxed) {
            return by_frame_pointers(registers, highest, stack);
        }
        let mut copy = std::mem::take(&mut self.copy);
        if !is_own {
            copy_stack(registers.sp, &mut copy);
        }
        let read = |address: u64| {
            if is_own {
                // SAFETY: all that is above a thread's stack pointer is its stack.
                read_own(address, registers.sp, highest, |place| unsafe {
                    place.read()
                })
            } else {
                let index = address.wrapping_sub(registers.sp) / 8;
                let index = usize::try_from(index).map_err(|_| ())?;
                copy.get(index).copied().ok_or(())
            }
        };
        by_rules(registers, read, stack);
        self.copy = copy;
    }
}

/// With the tables that programs have for exceptions and panics.
fn by_rules(
    registers: Registers,
    mut read: impl FnMut(u64) -> Result<u64, ()>,
    stack: &mut Vec<u64>,
) {
    let Some(modules) = modules() else {
        return;
    };
    let mut frame = FrameAddress::from_instruction_pointer(registers.pc);
    let mut registers = registers.unwinding();
    while stack.len() < DEEPEST {
        let caller = with_cache(frame.address(), |cache| {
            let rules = &modules.rules;
            rules.unwind_frame(frame, &mut registers, cache, &mut read)
        });
        let caller = caller.and_then(Result::ok).flatten();
        let Some(next) = caller.and_then(FrameAddress::from_return_address) else {
            break;
        };
        frame = next;
        stack.push(frame.address());
    }
}

/// Reads a word of the stack if it is one.
#[inline]
fn read_own(
    address: u64,
    sp: u64,
    highest: u64,
    read: impl Fn(*const u64) -> u64,
) -> Result<u64, ()> {
    if !address.is_multiple_of(8) || address < sp || address > highest - 8 {
        return Err(());
    }
    let address = usize::try_from(address).map_err(|_| ())?;
    Ok(read(std::ptr::with_exposed_provenance(address)))
}

/// Along the chain of frame pointers.
fn by_frame_pointers(registers: Registers, highest: u64, stack: &mut Vec<u64>) {
    let mut sp = registers.sp;
    let mut frame = registers.bp;
    while stack.len() < DEEPEST {
        // A frame has that of its caller, and the address to return to.
        // SAFETY: all that is above a thread's stack pointer is its stack.
        let word = |address| read_own(address, sp, highest, |place| unsafe { place.read() });
        let (Ok(caller), Ok(address)) = (word(frame), word(frame.wrapping_add(8))) else {
            break;
        };
        let address = address & ADDRESS_BITS;
        if address == 0 {
            break;
        }
        stack.push(address);
        // It must lead upwards, or there would be no end.
        sp = frame + 16;
        frame = caller;
    }
}

/// Copies what is above the stack pointer, as far as there is something.
fn copy_stack(sp: u64, copy: &mut Vec<u64>) {
    copy.clear();
    let mut page = [0; 4096];
    let mut address = sp;
    while copy.len() * 8 < COPIED {
        // Up to the end of a page: the next one may not be there.
        let len = usize::try_from(4096 - address % 4096).unwrap_or(4096);
        if !read_memory(address, &mut page[..len]) {
            break;
        }
        let words = page[..len].as_chunks().0;
        copy.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
        address += len as u64;
    }
}

/// The lowest and highest address of this thread's stack.
fn stack_bounds() -> (u64, u64) {
    let mut start = std::ptr::null_mut();
    let mut len = 0;
    // SAFETY: the attributes are filled in before they are asked for anything, and destroyed.
    unsafe {
        let mut attributes = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return (0, 0);
        }
        libc::pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut len);
        libc::pthread_attr_destroy(&raw mut attributes);
    }
    let start = start.addr() as u64;
    (start, start + len as u64)
}

/// Finds out whether the program keeps frame pointers: whether they lead to the same callers as the
/// tables do.
#[inline(never)]
pub(super) fn look_for_frame_pointers() {
    let mut unwinding = Unwinding::new();
    unwinding.begin_thread();
    let registers = Registers::here();
    let (lowest, highest) = unwinding.bounds;
    if !(lowest..highest).contains(&registers.sp) {
        return;
    }
    let (mut right, mut by_pointers) = (Vec::new(), Vec::new());
    let read = |address| {
        // SAFETY: all that is above a thread's stack pointer is its stack.
        read_own(address, registers.sp, highest, |place| unsafe {
            place.read()
        })
    };
    by_rules(registers, read, &mut right);
    by_frame_pointers(registers, highest, &mut by_pointers);
    // The C library, where both end, has none.
    let same = right.iter().zip(&by_pointers).take_while(|(a, b)| a == b);
    let are_kept = same.count() + 3 >= right.len() && right.len() > 4;
    FRAME_POINTERS.store(are_kept, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows the frames of a made-up stack, whose words lead to each other by their number.
    fn follow(words: &[u64], first: u64) -> Vec<u64> {
        // Small numbers are places in the stack, large ones are not.
        let mut placed = words.to_vec();
        let real = placed.as_ptr().expose_provenance() as u64;
        for word in &mut placed {
            if *word < 100 {
                *word = real + *word * 8;
            }
        }
        let registers = Registers {
            pc: 0,
            sp: real,
            bp: real + first * 8,
            #[cfg(target_arch = "aarch64")]
            lr: 0,
        };
        let mut stack = Vec::new();
        let highest = real + placed.len() as u64 * 8;
        by_frame_pointers(registers, highest, &mut stack);
        stack
    }

    #[test]
    fn frame_pointers_lead_to_the_callers() {
        // Two frames, and the end of the chain.
        let words = [7777, 4, 1111, 7777, 6, 2222, u64::MAX, 3333];
        assert_eq!(follow(&words, 1), [1111, 2222, 3333]);
    }

    #[test]
    fn what_is_no_chain_of_frames_comes_to_an_end() {
        // Back to itself, downwards, out of the stack, to the last word of it.
        assert_eq!(follow(&[0, 1111, 7777], 0), [1111]);
        assert_eq!(follow(&[7777, 7777, 0, 1111], 2), [1111]);
        assert_eq!(follow(&[1 << 40, 1111], 0), [1111]);
        assert_eq!(follow(&[7777, 7777], 1), [0_u64; 0]);
        assert_eq!(follow(&[7777, 7777], 50), [0_u64; 0]);
    }

    #[test]
    fn this_stack_is_walked_to_the_function_that_it_began_with() {
        crate::range::range().reserve().unwrap();
        super::super::prepare();
        let mut unwinding = Unwinding::new();
        unwinding.begin_thread();
        let mut stack = Vec::new();
        unwinding.capture(&mut stack);
        assert!(stack.len() > 5, "{stack:x?}");
        let names = stack
            .iter()
            .flat_map(|address| super::super::resolve(*address).to_vec());
        let names: Vec<String> = names.map(|frame| frame.function).collect();
        let here = "this_stack_is_walked_to_the_function_that_it_began_with";
        assert!(names.iter().any(|name| name.contains(here)), "{names:?}");
        assert!(
            names
                .iter()
                .any(|name| name.contains("__rust_begin_short_backtrace"))
        );
        // A stack that is not the thread's is copied.
        unwinding.bounds = (0, 0);
        let mut copied = Vec::new();
        unwinding.capture(&mut copied);
        assert_eq!(copied[1..], stack[1..]);
    }
}
