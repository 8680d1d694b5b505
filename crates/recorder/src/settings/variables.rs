//! Variables with their values: those of the environment, or some that were sent.

use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;

/// Names of variables.
pub(super) mod name {
    use std::ffi::CStr;

    pub(crate) const PREFIX: &CStr = c"HEAPLINE_PREFIX";
    pub(crate) const TRACE: &CStr = c"HEAPLINE_TRACE";
    pub(crate) const SUPERVISED: &CStr = c"HEAPLINE_SUPERVISED";
    pub(crate) const RATE: &CStr = c"HEAPLINE_RATE";
    pub(crate) const SEED: &CStr = c"HEAPLINE_SEED";
    pub(crate) const CONTEXT: &CStr = c"HEAPLINE_CONTEXT";
    pub(crate) const MAX_SIZE: &CStr = c"HEAPLINE_MAX_SIZE";
    pub(crate) const MAX_ALLOCATED: &CStr = c"HEAPLINE_MAX_ALLOCATED";
    pub(crate) const FOLLOW: &CStr = c"HEAPLINE_FOLLOW";
    pub(crate) const MEMPROF: &CStr = c"HEAPLINE_MEMPROF";
    pub(crate) const STACK_DEPTH: &CStr = c"HEAPLINE_STACK_DEPTH";
    pub(crate) const STACKS: &CStr = c"HEAPLINE_STACKS";
    pub(crate) const WAIT: &CStr = c"HEAPLINE_WAIT";
    pub(crate) const LISTEN: &CStr = c"HEAPLINE_LISTEN";
    pub(crate) const EXIT_SNAPSHOT: &CStr = c"HEAPLINE_EXIT_SNAPSHOT";
    pub(crate) const SNAPSHOT_SIGNAL: &CStr = c"HEAPLINE_SNAPSHOT_SIGNAL";
    pub(crate) const MEMTRACE: &CStr = c"MEMTRACE";
    pub(crate) const MEMTRACE_RATE: &CStr = c"MEMTRACE_RATE";

    /// Those of Heapline.
    pub(crate) const ALL: [&CStr; 16] = [
        PREFIX,
        TRACE,
        SUPERVISED,
        RATE,
        SEED,
        CONTEXT,
        MAX_SIZE,
        MAX_ALLOCATED,
        FOLLOW,
        MEMPROF,
        STACK_DEPTH,
        STACKS,
        WAIT,
        LISTEN,
        EXIT_SNAPSHOT,
        SNAPSHOT_SIGNAL,
    ];
}

/// Variables that are set, and not empty.
#[derive(Debug, Default)]
pub(super) struct Variables(Vec<(&'static CStr, OsString)>);

impl Variables {
    /// Reads the environment. In a program with more rights than its user, none are set: whoever starts it must not
    /// choose a file that it writes.
    pub(super) fn of_environment() -> Self {
        if has_more_rights() {
            return Self::default();
        }
        let names = [&name::ALL[..], &[name::MEMTRACE, name::MEMTRACE_RATE]].concat();
        let value = |name: &'static CStr| Some((name, std::env::var_os(text(name))?));
        let mut variables = Self(names.into_iter().filter_map(value).collect());
        variables.0.retain(|(_, value)| !value.is_empty());
        variables
    }

    /// Reads what [`to_bytes`](Self::to_bytes) has written.
    pub(super) fn of_bytes(bytes: &[u8]) -> Result<Self, String> {
        let mut variables = Self::default();
        let fields = bytes.split(|byte| *byte == 0);
        for field in fields.filter(|field| !field.is_empty()) {
            let parts = field.iter().position(|byte| *byte == b'=');
            let parts = parts.map(|at| (&field[..at], &field[at + 1..]));
            let known = parts.and_then(|(name, value)| {
                let name = name::ALL.into_iter().find(|known| known.to_bytes() == name);
                Some((name?, OsStr::from_bytes(value)))
            });
            let Some((name, value)) = known else {
                let field = String::from_utf8_lossy(field);
                return Err(format!(
                    "unknown setting {field:?}; heapline is of another version"
                ));
            };
            variables.set(name, value);
        }
        Ok(variables)
    }

    /// `NAME=value` with a NUL after each.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, value) in &self.0 {
            bytes.extend_from_slice(name.to_bytes());
            bytes.push(b'=');
            // A zero byte would end it.
            bytes.extend(value.as_bytes().iter().filter(|byte| **byte != 0));
            bytes.push(0);
        }
        bytes
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &OsStr)> {
        self.0.iter().map(|(name, value)| (text(name), &**value))
    }

    pub(super) fn set(&mut self, name: &'static CStr, value: impl AsRef<OsStr>) {
        let value = value.as_ref();
        if !value.is_empty() {
            self.0.push((name, value.to_owned()));
        }
    }

    pub(super) fn set_if(&mut self, name: &'static CStr, value: Option<impl AsRef<OsStr>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    pub(super) fn get(&self, name: &CStr) -> Option<&OsStr> {
        let mut values = self.0.iter().filter(|(other, _)| *other == name);
        values.next_back().map(|(_, value)| &**value)
    }

    pub(super) fn text(&self, name: &CStr) -> Option<String> {
        let value = self.get(name)?;
        Some(value.to_string_lossy().into_owned())
    }

    pub(super) fn number<T: FromStr>(&self, name: &CStr) -> Result<Option<T>, String> {
        let number = self.text(name).map(|text| text.parse());
        number
            .transpose()
            .map_err(|_| self.invalid(name, "it must be a whole number"))
    }

    pub(super) fn rate(&self, name: &CStr) -> Result<Option<f64>, String> {
        match self.text(name).map(|text| text.parse()) {
            None => Ok(None),
            Some(Ok(rate)) if 0.0 < rate && rate <= 1.0 => Ok(Some(rate)),
            _ => Err(self.invalid(name, "the sampling rate must be above 0 and at most 1")),
        }
    }

    pub(super) fn switch(&self, name: &CStr) -> Result<bool, String> {
        self.choice(name, &[("0", false), ("1", true)])
    }

    pub(super) fn choice<T: Copy + Default>(
        &self,
        name: &CStr,
        choices: &[(&str, T)],
    ) -> Result<T, String> {
        let Some(text) = self.text(name) else {
            return Ok(T::default());
        };
        let chosen = choices.iter().find(|(word, _)| *word == text);
        chosen.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            self.invalid(name, &format!("it can be {}", words.join(" or ")))
        })
    }

    pub(super) fn invalid(&self, name: &CStr, expected: &str) -> String {
        let value = self.text(name).unwrap_or_default();
        format!("invalid {} {value:?}: {expected}", text(name))
    }
}

/// Returns true in a setuid or setgid program, and in one with capabilities.
fn has_more_rights() -> bool {
    // SAFETY: there is nothing to get wrong.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The name, which is ASCII.
pub(super) fn text(name: &CStr) -> &str {
    name.to_str().unwrap_or_default()
}
