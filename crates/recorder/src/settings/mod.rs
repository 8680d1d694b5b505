//! Settings of a recording, with one encoding for all callers: environment variables.
//!
//! `heapline record` sets them for the agent and for the sampler of Rust programs; `heapline attach` and the OCaml library
//! pass the same variables as bytes, `NAME=value` with a NUL after each. An empty value counts as none. What is not
//! understood is an error.
//!
//! | variable | |
//! | --- | --- |
//! | `HEAPLINE_PREFIX` | traces are this and `.PID.ctf` |
//! | `HEAPLINE_TRACE` | the first process writes this file instead; without a prefix, it is overwritten |
//! | `HEAPLINE_SUPERVISED` | `1`: another process completes that file |
//! | `HEAPLINE_RATE` | samples per word |
//! | `HEAPLINE_SEED` | recordings with the same seed sample the same blocks of a program that does the same |
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
//! In the environment, memtrace's variables do too: `MEMTRACE` is the file to write, `MEMTRACE_RATE` the rate.

mod environment;
mod output;
mod snapshot;
mod variables;
mod wait;

use std::io;
use std::path::PathBuf;

pub use output::Output;
pub use snapshot::{Fold, SnapshotSettings};
pub use wait::WaitSettings;

use crate::gaps::Unit;
use crate::{Options, Recorder, seed};
use variables::{Variables, name};

/// The default rate without `heapline record`, as memtrace has it: one sample for 781 KiB.
pub const MEMTRACE_RATE: f64 = 1e-5;

/// The default rate of `heapline record`: one sample for 78 KiB.
pub const RECORD_RATE: f64 = 1e-4;

/// Settings of a recording.
///
/// ```
/// use heapline_recorder::settings::{Output, RecordingSettings};
///
/// let mut settings = RecordingSettings::new(Output::supervised("/tmp/a.ctf"), 1e-3);
/// settings.stack_depth = Some(100);
/// let received = RecordingSettings::from_bytes(&settings.to_bytes())?;
/// assert_eq!(received, settings);
/// assert!(RecordingSettings::from_bytes(b"HEAPLINE_MAX_SIZE=10GB\0").is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RecordingSettings {
    /// The files to write.
    pub output: Output,
    /// Samples per word.
    pub rate: f64,
    /// Recordings with the same seed sample the same blocks of a program that does the same; without one, each draws its own.
    pub seed: Option<u64>,
    /// A description by the user.
    pub context: Option<String>,
    /// The trace shall not be larger.
    pub max_size: Option<u64>,
    /// The trace shall not take more bytes on disk.
    pub max_allocated: Option<u64>,
    /// Frames of a stack that are kept.
    pub stack_depth: Option<usize>,
    /// The processes that are recorded too.
    pub follow: Follow,
    /// The owner of OCaml's sampler if the program starts it too.
    pub memprof: Memprof,
    /// The source of the stacks of OCaml programs.
    pub stacks: StackMode,
    /// True if heap snapshots may be asked for.
    pub listen: bool,
    /// A heap snapshot that is taken when the program exits.
    pub exit_snapshot: Option<PathBuf>,
    /// The signal that asks for a heap snapshot.
    pub snapshot_signal: Option<i32>,
}

/// The processes that are recorded, or wait, besides the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Follow {
    /// True for those that it forks.
    pub fork: bool,
    /// True for programs that it runs.
    pub exec: bool,
    /// True if the arguments of programs, which can have passwords in them, are not recorded.
    pub hide_arguments: bool,
}

/// The owner of OCaml's sampler if the program starts it too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memprof {
    /// Heapline; the program is told that its own sampler runs.
    #[default]
    Ours,
    /// The program; the recording ends.
    Theirs,
}

/// The source of the stacks of OCaml programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StackMode {
    /// Heapline.
    #[default]
    Own,
    /// OCaml's sampler, which is slow where stacks are deep.
    Sampler,
    /// Both, and they are compared: for tests.
    Check,
}

impl RecordingSettings {
    /// Settings with defaults for everything else.
    #[must_use]
    pub fn new(output: Output, rate: f64) -> Self {
        Self {
            output,
            rate,
            seed: None,
            context: None,
            max_size: None,
            max_allocated: None,
            stack_depth: None,
            follow: Follow::default(),
            memprof: Memprof::default(),
            stacks: StackMode::default(),
            listen: false,
            exit_snapshot: None,
            snapshot_signal: None,
        }
    }

    /// Reads the environment; `None` if no recording is wanted.
    pub fn from_environment() -> Result<Option<Self>, String> {
        let variables = Variables::of_environment();
        if variables.get(name::PREFIX).is_some() {
            let mut settings = Self::decode(&variables)?;
            if settings.context.is_none() && settings.follow.exec {
                settings.context = Some(environment::command_line(settings.follow.hide_arguments));
            }
            return Ok(Some(settings));
        }
        let Some(file) = variables.get(name::MEMTRACE) else {
            return Ok(None);
        };
        let rate = variables.rate(name::MEMTRACE_RATE)?;
        let mut settings = Self::new(Output::overwrite(file), rate.unwrap_or(MEMTRACE_RATE));
        settings.seed = variables.number(name::SEED)?;
        settings.stacks = variables.stack_mode()?;
        Ok(Some(settings))
    }

    /// Reads what [`to_bytes`](Self::to_bytes) has written.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        Self::decode(&Variables::of_bytes(bytes)?)
    }

    /// The variables as bytes, for an agent that runs already.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encode().to_bytes()
    }

    /// Sets the variables for a program. Those that this process was started with are not passed on.
    pub fn set_environment(&self, command: &mut std::process::Command) {
        environment::clear(command);
        command.envs(self.encode().iter());
    }

    fn decode(variables: &Variables) -> Result<Self, String> {
        let rate = variables.rate(name::RATE)?.unwrap_or(RECORD_RATE);
        Ok(Self {
            seed: variables.number(name::SEED)?,
            context: variables.text(name::CONTEXT),
            max_size: variables.number(name::MAX_SIZE)?,
            max_allocated: variables.number(name::MAX_ALLOCATED)?,
            stack_depth: variables.number(name::STACK_DEPTH)?,
            follow: variables.follow()?,
            memprof: variables.choice(
                name::MEMPROF,
                &[("ours", Memprof::Ours), ("theirs", Memprof::Theirs)],
            )?,
            stacks: variables.stack_mode()?,
            listen: variables.switch(name::LISTEN)?,
            exit_snapshot: variables.get(name::EXIT_SNAPSHOT).map(PathBuf::from),
            snapshot_signal: variables.number(name::SNAPSHOT_SIGNAL)?,
            ..Self::new(variables.output()?, rate)
        })
    }

    fn encode(&self) -> Variables {
        let mut variables = Variables::default();
        let number = |number: &dyn ToString| number.to_string();
        match &self.output {
            Output::File {
                path,
                is_supervised,
            } => {
                variables.set(name::TRACE, path);
                variables.set_if(name::SUPERVISED, is_supervised.then_some("1"));
            }
            Output::New { first, prefix } => {
                variables.set(name::PREFIX, prefix);
                variables.set_if(name::TRACE, first.as_ref());
            }
        }
        variables.set(name::RATE, number(&self.rate));
        variables.set_if(name::SEED, self.seed.map(|seed| number(&seed)));
        variables.set_if(name::CONTEXT, self.context.as_ref());
        variables.set_if(name::MAX_SIZE, self.max_size.map(|size| number(&size)));
        variables.set_if(
            name::MAX_ALLOCATED,
            self.max_allocated.map(|size| number(&size)),
        );
        variables.set_if(
            name::STACK_DEPTH,
            self.stack_depth.map(|depth| number(&depth)),
        );
        variables.set(name::FOLLOW, self.follow.words());
        let memprof = match self.memprof {
            Memprof::Ours => "ours",
            Memprof::Theirs => "theirs",
        };
        variables.set(name::MEMPROF, memprof);
        let stacks = match self.stacks {
            StackMode::Own => None,
            StackMode::Sampler => Some("sampler"),
            StackMode::Check => Some("check"),
        };
        variables.set_if(name::STACKS, stacks);
        variables.set_if(name::LISTEN, self.listen.then_some("1"));
        variables.set_if(name::EXIT_SNAPSHOT, self.exit_snapshot.as_ref());
        variables.set_if(
            name::SNAPSHOT_SIGNAL,
            self.snapshot_signal.map(|signal| number(&signal)),
        );
        variables
    }

    /// The seed of a recording.
    #[must_use]
    pub fn draw_seed(&self) -> u64 {
        self.seed.unwrap_or_else(seed::random)
    }

    /// Starts a trace of this process. `seed` is that of its samples, if it is known, and `first_id` the first id to give
    /// out: see [`Recorder::next_id`].
    pub fn start(
        &self,
        unit: Unit,
        runtime_params: String,
        seed: Option<u64>,
        first_id: u64,
    ) -> io::Result<&'static Recorder> {
        let claimed = self.output.claim()?;
        Recorder::start(&Options {
            trace: claimed.path,
            supervised: claimed.is_supervised,
            sample_rate: self.rate,
            unit,
            context: self.context.clone(),
            runtime_params,
            seed,
            max_size: self.max_size,
            max_allocated: self.max_allocated,
            stack_depth: self.stack_depth,
            first_id,
        })
    }
}

impl Follow {
    fn words(self) -> String {
        let words = [
            (self.fork, "fork"),
            (self.exec, "exec"),
            (self.hide_arguments, "no-arguments"),
        ];
        let words = words.iter().filter(|(wanted, _)| *wanted);
        let words: Vec<&str> = words.map(|(_, word)| *word).collect();
        words.join(",")
    }
}

impl Variables {
    fn follow(&self) -> Result<Follow, String> {
        let mut follow = Follow::default();
        let words = self.text(name::FOLLOW).unwrap_or_default();
        for word in words.split(',').filter(|word| !word.is_empty()) {
            match word {
                "fork" => follow.fork = true,
                "exec" => follow.exec = true,
                "no-arguments" => follow.hide_arguments = true,
                _ => {
                    let reason = "it can have fork, exec and no-arguments, with commas between";
                    return Err(self.invalid(name::FOLLOW, reason));
                }
            }
        }
        Ok(follow)
    }

    fn stack_mode(&self) -> Result<StackMode, String> {
        let modes = [
            ("own", StackMode::Own),
            ("sampler", StackMode::Sampler),
            ("check", StackMode::Check),
        ];
        self.choice(name::STACKS, &modes)
    }

    fn output(&self) -> Result<Output, String> {
        let trace = self.get(name::TRACE).map(PathBuf::from);
        match (self.get(name::PREFIX), trace) {
            (Some(prefix), first) => Ok(Output::New {
                first,
                prefix: prefix.to_owned(),
            }),
            (None, Some(path)) => Ok(Output::File {
                path,
                is_supervised: self.switch(name::SUPERVISED)?,
            }),
            (None, None) => Err("no trace to write is given".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_arrive_as_they_were_sent() {
        let all = RecordingSettings {
            output: Output::supervised("/a=b/c\n.ctf"),
            rate: 1e-3,
            seed: Some(u64::MAX),
            context: Some("x = y".to_owned()),
            max_size: Some(1 << 20),
            max_allocated: Some(1 << 30),
            stack_depth: Some(7),
            follow: Follow {
                fork: true,
                exec: true,
                hide_arguments: true,
            },
            memprof: Memprof::Theirs,
            stacks: StackMode::Check,
            listen: true,
            exit_snapshot: Some("/end.heap".into()),
            snapshot_signal: Some(12),
        };
        let new = Output::New {
            first: Some("first.ctf".into()),
            prefix: "prefix".into(),
        };
        for settings in [
            all.clone(),
            RecordingSettings::new(new, 0.5),
            RecordingSettings::new(Output::overwrite("x"), 1.0),
        ] {
            let received = RecordingSettings::from_bytes(&settings.to_bytes());
            assert_eq!(received.as_ref(), Ok(&settings));
        }
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for (setting, expected) in [
            (
                "HEAPLINE_RATE=often",
                "invalid HEAPLINE_RATE \"often\": the sampling rate must be above 0 and at most 1",
            ),
            (
                "HEAPLINE_MAX_SIZE=10GB",
                "invalid HEAPLINE_MAX_SIZE \"10GB\": it must be a whole number",
            ),
            (
                "HEAPLINE_STACK_DEPTH=-1",
                "invalid HEAPLINE_STACK_DEPTH \"-1\": it must be a whole number",
            ),
            (
                "HEAPLINE_FOLLOW=fork,all",
                "invalid HEAPLINE_FOLLOW \"fork,all\": it can have fork, exec and no-arguments, with commas between",
            ),
            (
                "HEAPLINE_MEMPROF=mine",
                "invalid HEAPLINE_MEMPROF \"mine\": it can be ours or theirs",
            ),
            (
                "HEAPLINE_LISTEN=yes",
                "invalid HEAPLINE_LISTEN \"yes\": it can be 0 or 1",
            ),
            (
                "HEAPLINE_COLOUR=red",
                "unknown setting \"HEAPLINE_COLOUR=red\"; heapline is of another version",
            ),
        ] {
            let bytes = format!("HEAPLINE_TRACE=/a.ctf\0{setting}\0");
            let read = RecordingSettings::from_bytes(bytes.as_bytes());
            assert_eq!(read.unwrap_err(), expected);
        }
        assert!(RecordingSettings::from_bytes(b"").is_err());
        let blank = b"HEAPLINE_TRACE=/a.ctf\0HEAPLINE_MAX_SIZE=\0";
        assert_eq!(RecordingSettings::from_bytes(blank).unwrap().max_size, None);
    }
}
