//! Settings from the environment for programs that wait for `heapline attach`.

use std::env::var_os;
use std::ffi::CStr;

use crate::settings::{VARIABLES, hide};

/// The variable that makes a program wait.
pub const WAIT: &str = "HEAPLINE_WAIT";

/// Settings of a program that waits.
#[derive(Clone, Copy, Debug)]
pub struct WaitSettings {
    /// True if forked processes wait too.
    pub follow_fork: bool,
    follow_exec: bool,
}

impl WaitSettings {
    /// Reads the environment; `None` if the program is not to wait. A recording goes first.
    #[must_use]
    pub fn read() -> Option<Self> {
        let text = |name: &str| var_os(name).map(|text| text.to_string_lossy().into_owned());
        let is_set = |name| text(name).is_some_and(|text| !text.is_empty() && text != "0");
        if !is_set(WAIT) || is_set("HEAPLINE_PREFIX") {
            return None;
        }
        let follow = text("HEAPLINE_FOLLOW").unwrap_or_default();
        let follows = |what| follow.split(',').any(|word| word == what);
        Some(Self {
            follow_fork: follows("fork"),
            follow_exec: follows("exec"),
        })
    }

    /// Removes the variables from the environment, so that programs that this one runs do not wait. Not if
    /// those shall wait too.
    ///
    /// # Safety
    ///
    /// No other thread looks at the environment meanwhile.
    pub unsafe fn hide(&self, own_path: &CStr) {
        if !self.follow_exec {
            // SAFETY: as the caller's.
            unsafe { hide(VARIABLES, own_path) };
        }
    }
}
