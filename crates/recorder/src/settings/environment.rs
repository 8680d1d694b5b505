//! Keeps our variables from programs that are none of ours.

use std::env::var_os;
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

use super::variables::{name, text};
use super::{Output, RecordingSettings};

impl RecordingSettings {
    /// Removes the variables from the environment, so that programs that this one runs are not
    /// recorded. Not if those shall be recorded too.
    ///
    /// # Safety
    ///
    /// No other thread looks at the environment meanwhile.
    pub unsafe fn hide(&self, own_path: &CStr) {
        if !self.follow.exec {
            // SAFETY: the caller promises that nobody else looks at the environment.
            unsafe { forget(own_path) };
            if matches!(self.output, Output::File { .. }) {
                // SAFETY: the caller promises that nobody else looks at the environment.
                unsafe { libc::unsetenv(name::MEMTRACE.as_ptr()) };
            }
        }
    }

    /// Like [`hide`](Self::hide), for programs with several threads: the variables are still there, but
    /// empty, which counts as not set. Removing them would move others while threads read them.
    ///
    /// # Safety
    ///
    /// No other thread changes the environment meanwhile.
    pub unsafe fn blank(&self) {
        if self.follow.exec {
            return;
        }
        let memtrace = matches!(self.output, Output::File { .. }).then_some(name::MEMTRACE);
        for name in name::ALL.into_iter().chain(memtrace) {
            // SAFETY: the caller promises that the environment does not change.
            let value = unsafe { libc::getenv(name.as_ptr()) };
            if !value.is_null() {
                // SAFETY: the C library never frees a variable's value, and the kernel and `setenv`
                // put it into memory that can be written to. A reader sees the old value or none.
                unsafe { AtomicU8::from_ptr(value.cast()) }.store(0, Ordering::Relaxed);
            }
        }
    }
}

/// Removes our variables from the environment, and a library from those that are preloaded.
///
/// # Safety
///
/// No other thread looks at the environment meanwhile.
pub(super) unsafe fn forget(library: &CStr) {
    for name in name::ALL {
        // SAFETY: the caller promises that nobody else looks at the environment.
        unsafe { libc::unsetenv(name.as_ptr()) };
    }
    let preload = var_os("LD_PRELOAD").unwrap_or_default();
    let rest = without(preload.as_bytes(), library.to_bytes());
    match CString::new(rest) {
        Ok(rest) if !rest.is_empty() => {
            // SAFETY: nobody else looks at the environment; both strings end in NUL.
            unsafe { libc::setenv(c"LD_PRELOAD".as_ptr(), rest.as_ptr(), 1) };
        }
        _ => {
            // SAFETY: the caller promises that nobody else looks at the environment.
            unsafe { libc::unsetenv(c"LD_PRELOAD".as_ptr()) };
        }
    }
}

/// Removes the variables of a recording around this process from the environment of a program. Those that tests set are passed on.
pub(super) fn clear(command: &mut Command) {
    let is_kept = |name: &&CStr| *name == name::STACKS || *name == name::SEED;
    for name in name::ALL.into_iter().filter(|name| !is_kept(name)) {
        command.env_remove(text(name));
    }
}

/// The command line of this process, by which the traces of a build are told apart; the program alone if arguments are hidden.
pub(super) fn command_line(hide_arguments: bool) -> String {
    let mut words = std::env::args_os();
    // Its directory is in the trace anyway.
    let program = words.next().unwrap_or_default();
    let program = Path::new(&program).file_name().unwrap_or_default();
    let shown = if hide_arguments { 0 } else { usize::MAX };
    let words = [program.to_owned()].into_iter().chain(words.take(shown));
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    words.join(" ")
}

/// The list of libraries without one of them.
fn without(list: &[u8], library: &[u8]) -> Vec<u8> {
    let is_separator = |byte: &u8| *byte == b':' || *byte == b' ';
    let rest = list
        .split(is_separator)
        .filter(|path| *path != library && !path.is_empty());
    rest.collect::<Vec<_>>().join(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_library_is_taken_from_the_list() {
        let without = |list: &str| String::from_utf8(without(list.as_bytes(), b"/a/x.so")).unwrap();
        assert_eq!(without("/a/x.so"), "");
        assert_eq!(without("/a/x.so:/b/y.so"), "/b/y.so");
        assert_eq!(without("/b/y.so /a/x.so /c.so"), "/b/y.so:/c.so");
        assert_eq!(without("/b/y.so"), "/b/y.so");
    }
}
