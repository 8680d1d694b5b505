//! Programs that wait for `heapline attach`.

use std::ffi::CStr;
use std::process::Command;

use super::variables::{Variables, name};
use super::{Follow, environment};

/// Settings of a program that waits.
#[derive(Clone, Copy, Debug)]
pub struct WaitSettings {
    /// The processes that wait too.
    pub follow: Follow,
}

impl WaitSettings {
    /// Reads the environment; `None` if the program is not to wait. A recording goes first.
    pub fn from_environment() -> Result<Option<Self>, String> {
        let variables = Variables::of_environment();
        if variables.get(name::PREFIX).is_some() || !variables.switch(name::WAIT)? {
            return Ok(None);
        }
        let follow = variables.follow()?;
        Ok(Some(Self { follow }))
    }

    /// Sets the variables for a program. A recording around this process would go first, so its variables are removed.
    pub fn set_environment(&self, command: &mut Command) {
        let mut variables = Variables::default();
        variables.set(name::WAIT, "1");
        variables.set(name::FOLLOW, self.follow.words());
        environment::clear(command);
        command.envs(variables.iter());
    }

    /// Removes the variables from the environment, so that programs that this one runs do not wait. Not if
    /// those shall wait too.
    ///
    /// # Safety
    ///
    /// No other thread looks at the environment meanwhile.
    pub unsafe fn hide(&self, own_path: &CStr) {
        if !self.follow.exec {
            // SAFETY: the caller promises that nobody else looks at the environment.
            unsafe { environment::forget(own_path) };
        }
    }
}
