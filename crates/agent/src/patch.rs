//! Overwrites functions of the program with jumps to ours.

use std::io;
use std::sync::{Mutex, PoisonError};

use crate::arch::{JUMP, Jump, flush_code, jump_to};

/// A function whose first instructions can be replaced by a jump, and restored.
#[derive(Debug)]
pub(crate) struct Patch {
    /// The function, and its own first instructions while they are replaced.
    patched: Mutex<Option<(usize, Jump)>>,
}

impl Patch {
    pub(crate) const fn new() -> Self {
        Self {
            patched: Mutex::new(None),
        }
    }

    /// Makes `function` jump to `target`, unless it is replaced already.
    ///
    /// # Safety
    ///
    /// `function` is the address of code of at least [`JUMP`] bytes that no thread is executing
    /// or going to execute in the meantime.
    pub(crate) unsafe fn set(&self, function: usize, target: usize) -> io::Result<()> {
        let mut patched = self.patched.lock().unwrap_or_else(PoisonError::into_inner);
        if patched.is_some() {
            return Ok(());
        }
        let code = std::ptr::with_exposed_provenance::<Jump>(function);
        // SAFETY: the caller promises that there are as many bytes.
        let original = unsafe { code.read_unaligned() };
        // SAFETY: as the caller's.
        unsafe { overwrite(function, jump_to(target)) }?;
        *patched = Some((function, original));
        Ok(())
    }

    /// Restores the function; returns its address.
    ///
    /// # Safety
    ///
    /// As for [`set`](Self::set).
    pub(crate) unsafe fn restore(&self) -> Option<usize> {
        let mut patched = self.patched.lock().unwrap_or_else(PoisonError::into_inner);
        let (function, original) = (*patched)?;
        // SAFETY: as the caller's. That the pages could be made writable was seen before.
        if unsafe { overwrite(function, original) }.is_ok() {
            *patched = None;
        }
        Some(function)
    }

    /// Calls `f` while the function is restored; `None` if it is not replaced.
    ///
    /// # Safety
    ///
    /// As for [`set`](Self::set).
    pub(crate) unsafe fn with_original<R>(&self, f: impl FnOnce(usize) -> R) -> Option<R> {
        let patched = self.patched.lock().unwrap_or_else(PoisonError::into_inner);
        let (function, original) = (*patched)?;
        let code = std::ptr::with_exposed_provenance::<Jump>(function);
        // SAFETY: as the caller's. That the pages could be made writable was seen before.
        unsafe {
            let jump = code.read_unaligned();
            overwrite(function, original).ok()?;
            let result = f(function);
            overwrite(function, jump).ok()?;
            Some(result)
        }
    }
}

/// # Safety
///
/// As for [`Patch::set`].
unsafe fn overwrite(function: usize, code: Jump) -> io::Result<()> {
    // SAFETY: asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page = usize::try_from(page).map_err(io::Error::other)?;
    let start = function & !(page - 1);
    let len = (function + JUMP).next_multiple_of(page) - start;
    let protect = |protection| {
        let start = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: code stays readable and executable: other threads may be in the same page.
        if unsafe { libc::mprotect(start, len, protection) } == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    };
    protect(libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC)?;
    let place = std::ptr::with_exposed_provenance_mut::<Jump>(function);
    // SAFETY: it is writable now, and nobody executes it.
    unsafe { place.write_unaligned(code) };
    flush_code(function, JUMP);
    protect(libc::PROT_READ | libc::PROT_EXEC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    extern "C" fn original(n: u64) -> u64 {
        // Long enough to be overwritten.
        let mut sum = n;
        for i in 0..std::hint::black_box(n) {
            sum = sum.wrapping_mul(31) ^ i.rotate_left(7);
        }
        sum
    }

    #[inline(never)]
    extern "C" fn replacement(n: u64) -> u64 {
        std::hint::black_box(n) + 1000
    }

    #[test]
    fn a_function_is_replaced_and_restored() {
        static PATCH: Patch = Patch::new();
        type Function = extern "C" fn(u64) -> u64;
        let function: Function = std::hint::black_box(original);
        let address = (function as *const ()).expose_provenance();
        let before = function(5);
        // SAFETY: no other test uses the function.
        unsafe {
            let target = (replacement as *const ()).expose_provenance();
            PATCH.set(address, target).unwrap();
            assert_eq!(std::hint::black_box(function)(5), 1005);
            assert_eq!(PATCH.restore(), Some(address));
        }
        assert_eq!(std::hint::black_box(function)(5), before);
        // SAFETY: as above.
        assert_eq!(unsafe { PATCH.restore() }, None);
    }
}
