//! Settings from the environment, for OCaml and Rust programs.
//!
//! | variable | |
//! | --- | --- |
//! | `HEAPLINE_PREFIX` | traces are this and `.PID.ctf`; set by `heapline record` |
//! | `HEAPLINE_TRACE` | the first process writes this file instead |
//! | `HEAPLINE_RATE` | samples per word |
//! | `HEAPLINE_CONTEXT` | what the user wants to remember |
//! | `HEAPLINE_MAX_SIZE` | bytes that a trace may have |
//! | `HEAPLINE_MAX_ALLOCATED` | bytes that a trace may take on disk, where another process frees what it has read |
//! | `HEAPLINE_FOLLOW` | `fork`, `exec` or both: processes that are recorded too |
//! | `HEAPLINE_MEMPROF` | `ours` or `theirs`: who has the sampler if the program wants it |
//! | `HEAPLINE_STACK_DEPTH` | frames of a stack that are kept |
//! | `HEAPLINE_WAIT` | `1`: record nothing until `heapline attach`; of the others, only `HEAPLINE_FOLLOW` counts |
//! | `HEAPLINE_LISTEN` | `1`: take heap snapshots when `heapline record` asks for them, by a socket |
//! | `HEAPLINE_EXIT_SNAPSHOT` | take a heap snapshot when the program exits, to this file |
//! | `HEAPLINE_SNAPSHOT_SIGNAL` | count signals of this number, so that `heapline record` takes a snapshot for each |
//! | `HEAPLINE_STACKS` | `sampler`: stacks are those of OCaml's sampler; `check`: ours are compared with them |
//!
//! Without `heapline record`, memtrace's variables do: `MEMTRACE` is the file to write,
//! `MEMTRACE_RATE` the rate.

use std::env::var_os;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

pub(crate) const VARIABLES: [&CStr; 14] = [
    c"HEAPLINE_PREFIX",
    c"HEAPLINE_TRACE",
    c"HEAPLINE_RATE",
    c"HEAPLINE_CONTEXT",
    c"HEAPLINE_MAX_SIZE",
    c"HEAPLINE_MAX_ALLOCATED",
    c"HEAPLINE_FOLLOW",
    c"HEAPLINE_MEMPROF",
    c"HEAPLINE_STACK_DEPTH",
    c"HEAPLINE_STACKS",
    c"HEAPLINE_WAIT",
    c"HEAPLINE_LISTEN",
    c"HEAPLINE_EXIT_SNAPSHOT",
    c"HEAPLINE_SNAPSHOT_SIGNAL",
];

/// The default rate without `heapline record`, as memtrace has it: one sample for 781 KiB.
pub const MEMTRACE_RATE: f64 = 1e-5;

/// The default rate of `heapline record`: one sample for 78 KiB.
pub const RECORD_RATE: f64 = 1e-4;

/// The settings of a recording.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent settings, each with a variable of its own"
)]
pub struct Settings {
    target: Target,
    /// Samples per word.
    pub rate: f64,
    /// A description by the user.
    pub context: Option<String>,
    /// The trace shall not be larger.
    pub max_size: Option<u64>,
    /// The trace shall not take more bytes on disk.
    pub max_allocated: Option<u64>,
    /// Frames of a stack that are kept.
    pub stack_depth: Option<usize>,
    /// True if forked processes are recorded too.
    pub follow_fork: bool,
    follow_exec: bool,
    /// True if a program that starts its own sampler gets it.
    pub give_way: bool,
    /// The source of the stacks of OCaml programs.
    pub stacks: StackMode,
    /// True if heap snapshots may be asked for.
    pub listen: bool,
    /// A heap snapshot that is taken when the program exits.
    pub exit_snapshot: Option<PathBuf>,
    /// The signal that asks for a heap snapshot.
    pub snapshot_signal: Option<i32>,
}

/// Appends a setting in the form that the agent takes.
fn put_field(bytes: &mut Vec<u8>, name: &str, value: &[u8]) {
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(b'=');
    // A zero byte would end it.
    bytes.extend(value.iter().filter(|byte| **byte != 0));
    bytes.push(0);
}

/// The names and values of settings.
fn fields(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    bytes.split(|byte| *byte == 0).filter_map(|field| {
        let at = field.iter().position(|byte| *byte == b'=')?;
        Some((&field[..at], &field[at + 1..]))
    })
}

/// The settings of a heap snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSettings {
    /// The file, as the program sees it. An absolute path.
    pub file: PathBuf,
    /// True if the program waits for the snapshot, instead of a copy of it being made.
    pub in_place: bool,
    /// Which snapshots have list cells and small blocks folded.
    pub fold: Fold,
}

/// Which heap snapshots have list cells and small blocks folded into the blocks that hold them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fold {
    /// Those of programs that use more than [`Fold::LARGE`].
    #[default]
    Auto,
    /// All.
    Always,
    /// None.
    Never,
}

impl Fold {
    /// The bytes from which on a program is large.
    pub const LARGE: u64 = 1 << 30;
}

impl SnapshotSettings {
    /// The settings in the form that the agent takes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_field(&mut bytes, "file", self.file.as_os_str().as_bytes());
        if self.in_place {
            put_field(&mut bytes, "in_place", b"1");
        }
        match self.fold {
            Fold::Auto => {}
            Fold::Always => put_field(&mut bytes, "fold", b"1"),
            Fold::Never => put_field(&mut bytes, "fold", b"0"),
        }
        bytes
    }

    /// Reads settings; `None` if they are not such.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut settings = Self {
            file: PathBuf::new(),
            in_place: false,
            fold: Fold::Auto,
        };
        for (name, value) in fields(bytes) {
            match name {
                b"file" => settings.file = OsStr::from_bytes(value).into(),
                b"in_place" => settings.in_place = value == b"1",
                b"fold" if value == b"1" => settings.fold = Fold::Always,
                b"fold" => settings.fold = Fold::Never,
                _ => return None,
            }
        }
        settings.file.is_absolute().then_some(settings)
    }
}

/// The settings of `heapline attach`.
#[derive(Clone, Debug)]
pub struct AttachSettings {
    /// The trace, as the program sees it. An absolute path.
    pub trace: PathBuf,
    /// Samples per word.
    pub rate: f64,
    /// A description by the user.
    pub context: String,
    /// The trace shall not be larger.
    pub max_size: Option<u64>,
    /// Frames of a stack that are kept.
    pub stack_depth: Option<u32>,
}

impl AttachSettings {
    /// The settings in the form that the agent takes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut field = |name: &str, value: &[u8]| put_field(&mut bytes, name, value);
        field("trace", self.trace.as_os_str().as_bytes());
        field("rate", self.rate.to_string().as_bytes());
        field("context", self.context.as_bytes());
        if let Some(size) = self.max_size {
            field("max_size", size.to_string().as_bytes());
        }
        if let Some(depth) = self.stack_depth {
            field("stack_depth", depth.to_string().as_bytes());
        }
        bytes
    }
}

/// The source of the stacks of OCaml programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackMode {
    /// Heapline.
    Own,
    /// OCaml's sampler, which is slow where stacks are deep.
    Sampler,
    /// Both, and they are compared: for tests.
    Check,
}

impl StackMode {
    fn read() -> Self {
        match var_os("HEAPLINE_STACKS").as_deref().and_then(OsStr::to_str) {
            Some("sampler") => Self::Sampler,
            Some("check") => Self::Check,
            _ => Self::Own,
        }
    }
}

/// The output file.
#[derive(Debug)]
enum Target {
    /// As with memtrace: this file, which is overwritten.
    File(PathBuf),
    /// As with `heapline attach`: this file, which it completes.
    Attached(PathBuf),
    /// As with `heapline record`: new files only.
    New {
        first: Option<PathBuf>,
        prefix: OsString,
    },
}

/// A file for a trace.
#[derive(Debug)]
pub struct Claimed {
    /// Its name.
    pub path: PathBuf,
    /// True if `heapline record` supervises it.
    pub is_supervised: bool,
}

impl Settings {
    /// Reads the environment; `None` if nothing is wanted.
    pub fn read() -> Result<Option<Self>, String> {
        if let Some(prefix) = var_os("HEAPLINE_PREFIX").filter(|prefix| !prefix.is_empty()) {
            let text =
                |name| var_os(name).map(|text: OsString| text.to_string_lossy().into_owned());
            let follow = text("HEAPLINE_FOLLOW").unwrap_or_default();
            let follow_exec = follow.split(',').any(|word| word == "exec");
            return Ok(Some(Self {
                target: Target::New {
                    first: var_os("HEAPLINE_TRACE").map(Into::into),
                    prefix,
                },
                rate: rate("HEAPLINE_RATE")?.unwrap_or(RECORD_RATE),
                context: text("HEAPLINE_CONTEXT").or_else(|| follow_exec.then(command_line)),
                max_size: text("HEAPLINE_MAX_SIZE").and_then(|size| size.parse().ok()),
                max_allocated: text("HEAPLINE_MAX_ALLOCATED").and_then(|size| size.parse().ok()),
                stack_depth: text("HEAPLINE_STACK_DEPTH").and_then(|depth| depth.parse().ok()),
                follow_fork: follow.split(',').any(|word| word == "fork"),
                follow_exec,
                give_way: text("HEAPLINE_MEMPROF").is_some_and(|whose| whose == "theirs"),
                stacks: StackMode::read(),
                listen: text("HEAPLINE_LISTEN").is_some_and(|listen| listen == "1"),
                exit_snapshot: var_os("HEAPLINE_EXIT_SNAPSHOT").map(Into::into),
                snapshot_signal: text("HEAPLINE_SNAPSHOT_SIGNAL").and_then(|n| n.parse().ok()),
            }));
        }
        let file = match var_os("MEMTRACE") {
            Some(file) if !file.is_empty() => file,
            _ => return Ok(None),
        };
        Ok(Some(Self {
            target: Target::File(file.into()),
            rate: rate("MEMTRACE_RATE")?.unwrap_or(MEMTRACE_RATE),
            context: None,
            max_size: None,
            max_allocated: None,
            stack_depth: None,
            follow_fork: false,
            follow_exec: false,
            give_way: false,
            stacks: StackMode::read(),
            listen: false,
            exit_snapshot: None,
            snapshot_signal: None,
        }))
    }

    /// Reads the settings that [`AttachSettings::to_bytes`] has written.
    pub fn attached(bytes: &[u8]) -> Result<Self, String> {
        let mut settings = Self {
            target: Target::Attached(PathBuf::new()),
            rate: RECORD_RATE,
            context: None,
            max_size: None,
            max_allocated: None,
            stack_depth: None,
            follow_fork: false,
            follow_exec: false,
            // What a program starts and stops must work as ever when nobody is attached any more.
            give_way: true,
            stacks: StackMode::Own,
            listen: false,
            exit_snapshot: None,
            snapshot_signal: None,
        };
        for (name, value) in fields(bytes) {
            let text = String::from_utf8_lossy(value);
            let invalid = || format!("invalid setting {text:?}");
            match name {
                b"trace" => settings.target = Target::Attached(OsStr::from_bytes(value).into()),
                b"rate" => settings.rate = text.parse().map_err(|_| invalid())?,
                b"context" => settings.context = Some(text.into_owned()),
                b"max_size" => settings.max_size = Some(text.parse().map_err(|_| invalid())?),
                b"stack_depth" => settings.stack_depth = Some(text.parse().map_err(|_| invalid())?),
                _ => return Err(invalid()),
            }
        }
        Ok(settings)
    }

    /// Removes the variables from the environment, so that programs that this one runs are not
    /// recorded. Not if those shall be recorded too.
    ///
    /// # Safety
    ///
    /// No other thread looks at the environment meanwhile.
    pub unsafe fn hide(&self, own_path: &CStr) {
        if self.follow_exec {
            return;
        }
        // SAFETY: as the caller's.
        unsafe { hide(self.variables(), own_path) };
    }

    /// Like [`hide`](Self::hide), for programs with several threads: the variables are still there, but
    /// empty, which counts as not set. Removing them would move others while threads read them.
    ///
    /// # Safety
    ///
    /// No other thread changes the environment meanwhile.
    pub unsafe fn blank(&self) {
        if self.follow_exec {
            return;
        }
        for name in self.variables() {
            // SAFETY: the caller promises that the environment does not change.
            let value = unsafe { libc::getenv(name.as_ptr()) };
            if !value.is_null() {
                // SAFETY: the C library never frees a variable's value, and the kernel and `setenv`
                // put it into memory that can be written to. A reader sees the old value or none.
                unsafe { AtomicU8::from_ptr(value.cast()) }.store(0, Ordering::Relaxed);
            }
        }
    }

    /// The variables that were used.
    fn variables(&self) -> impl Iterator<Item = &'static CStr> {
        let memtrace = matches!(self.target, Target::File(_)).then_some(c"MEMTRACE");
        VARIABLES.into_iter().chain(memtrace)
    }

    /// Finds a file for the trace of this process. Several processes may do so at once.
    pub fn claim(&self) -> io::Result<Claimed> {
        let (first, prefix) = match &self.target {
            Target::File(path) => {
                return Ok(Claimed {
                    path: path.clone(),
                    is_supervised: false,
                });
            }
            Target::Attached(path) => {
                return Ok(Claimed {
                    path: path.clone(),
                    is_supervised: true,
                });
            }
            Target::New { first, prefix } => (first, prefix),
        };
        let pid = std::process::id();
        let numbered = (1_u32..1000).map(|n| {
            let mut name = prefix.clone();
            if n == 1 {
                name.push(format!(".{pid}.ctf"));
            } else {
                name.push(format!(".{pid}-{n}.ctf"));
            }
            PathBuf::from(name)
        });
        let mut result = Err(io::Error::from(io::ErrorKind::AlreadyExists));
        for path in first.clone().into_iter().chain(numbered) {
            result = File::create_new(&path).map(|_| Claimed {
                path,
                is_supervised: true,
            });
            match &result {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                _ => break,
            }
        }
        result
    }

    /// The path of the trace, for messages.
    #[must_use]
    pub fn place(&self) -> &Path {
        match &self.target {
            Target::File(path) | Target::Attached(path) => path,
            Target::New { first, prefix } => first.as_deref().unwrap_or(Path::new(prefix)),
        }
    }
}

/// Removes variables from the environment, and a library from those that are preloaded.
///
/// # Safety
///
/// No other thread looks at the environment meanwhile.
pub(crate) unsafe fn hide(variables: impl IntoIterator<Item = &'static CStr>, library: &CStr) {
    for name in variables {
        // SAFETY: the caller promises that nobody looks at it.
        unsafe { libc::unsetenv(name.as_ptr()) };
    }
    let preload = var_os("LD_PRELOAD").unwrap_or_default();
    let rest = without(preload.as_bytes(), library.to_bytes());
    match CString::new(rest) {
        Ok(rest) if !rest.is_empty() => {
            // SAFETY: as above.
            unsafe { libc::setenv(c"LD_PRELOAD".as_ptr(), rest.as_ptr(), 1) };
        }
        _ => {
            // SAFETY: as above.
            unsafe { libc::unsetenv(c"LD_PRELOAD".as_ptr()) };
        }
    }
}

/// The command line of this process, by which the traces of a build are told apart.
fn command_line() -> String {
    let mut words = std::env::args_os();
    // Its folder is in the trace anyway.
    let program = words.next().unwrap_or_default();
    let program = Path::new(&program).file_name().unwrap_or_default();
    let words = [program.to_owned()].into_iter().chain(words);
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

fn rate(name: &str) -> Result<Option<f64>, String> {
    let Some(text) = var_os(name) else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    match text.parse() {
        Ok(rate) if 0.0 < rate && rate <= 1.0 => Ok(Some(rate)),
        _ => Err(format!(
            "invalid {name} {text:?}: the sampling rate must be above 0 and at most 1"
        )),
    }
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

    #[test]
    fn settings_of_attach_arrive_as_they_were_sent() {
        let sent = AttachSettings {
            trace: "/a=b/c\n.ctf".into(),
            rate: 1e-3,
            context: "x = y".to_owned(),
            max_size: Some(1 << 20),
            stack_depth: None,
        };
        let settings = Settings::attached(&sent.to_bytes()).unwrap();
        assert_eq!(settings.place(), sent.trace);
        assert!((settings.rate - 1e-3).abs() < 1e-12);
        assert_eq!(settings.context.as_deref(), Some("x = y"));
        assert_eq!(settings.max_size, Some(1 << 20));
        assert_eq!(settings.stack_depth, None);
        assert!(Settings::attached(b"rate=often").is_err());
    }

    #[test]
    fn processes_find_files_of_their_own() {
        let folder = std::env::temp_dir().join(format!("heapline-claim-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let first = folder.join("first.ctf");
        let settings = Settings {
            target: Target::New {
                first: Some(first.clone()),
                prefix: folder.join("trace").into(),
            },
            rate: 1e-4,
            context: None,
            max_size: None,
            max_allocated: None,
            stack_depth: None,
            follow_fork: false,
            follow_exec: false,
            give_way: false,
            stacks: StackMode::Own,
            listen: false,
            exit_snapshot: None,
            snapshot_signal: None,
        };
        let pid = std::process::id();
        let names: Vec<PathBuf> = (0..3).map(|_| settings.claim().unwrap().path).collect();
        assert_eq!(
            names,
            [
                first,
                folder.join(format!("trace.{pid}.ctf")),
                folder.join(format!("trace.{pid}-2.ctf")),
            ]
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
