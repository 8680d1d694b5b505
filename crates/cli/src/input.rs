//! The input trace of a command.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use heapline_engine::shell_path;
use heapline_formats::{Executable, HEAD, spacetime};
use heapline_index::TraceFile;
use heapline_model::{Damage, Flaw};
use heapline_profile::query::Size;
use heapline_profile::{Profile, StoreOptions};
use heapline_trace::{ByteSource, Options, Reader, Snapshot};

use crate::error::{note, warn};
use crate::progress::Watched;
use crate::snapshot_file::refuse_other_than_trace;

/// The built-in trace.
pub(crate) mod demo {
    /// Its name as an argument.
    pub(crate) const NAME: &str = "demo";

    /// A recording of `fixtures/shop.ml` on OCaml 5.3.
    pub(crate) const TRACE: &[u8] = include_bytes!("../demo/shop.ctf");
}

/// A trace that takes longer to load should have an index.
const LONG: Duration = Duration::from_secs(15);

/// The arguments of all commands that read a trace.
#[derive(Args, Clone, Debug)]
pub(crate) struct Input {
    /// Trace to read: a .ctf file or a Spacetime profile, plain or compressed (.gz, .zst), or - for standard input
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,

    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// The options of reading, for all traces of a command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Reading {
    /// Fail on damaged traces instead of reading the intact parts
    #[arg(long, help_heading = "Input", hide_short_help = true)]
    pub(crate) strict: bool,

    /// Name functions of Spacetime profiles by the program that wrote them
    #[arg(
        long,
        short,
        value_name = "PROGRAM",
        help_heading = "Input",
        hide_short_help = true
    )]
    pub(crate) executable: Option<PathBuf>,

    /// Limit the memory for a trace; the rest goes to temporary files [default: a quarter of the machine's memory]
    #[arg(
        long,
        value_name = "SIZE",
        help_heading = "Input",
        hide_short_help = true
    )]
    pub(crate) memory: Option<Size>,

    /// Ignore the index of a trace
    #[arg(long, help_heading = "Input", hide_short_help = true)]
    pub(crate) no_index: bool,
}

impl Reading {
    /// A trace to be read with these options.
    pub(crate) fn input(&self, trace: &Path) -> Input {
        Input {
            trace: trace.to_owned(),
            reading: self.clone(),
        }
    }

    /// Bytes of memory that a trace may take.
    pub(crate) fn memory(&self) -> u64 {
        let given = self.memory.map(Size::whole_bytes);
        given.unwrap_or_else(heapline_index::default_memory)
    }

    /// Reads the program that wrote the profiles, if it was given.
    pub(crate) fn executable(&self) -> anyhow::Result<Option<Executable>> {
        let read = |path: &PathBuf| {
            let cannot_read = || format!("cannot read the executable {}", path.display());
            Executable::read(path).with_context(cannot_read)
        };
        self.executable.as_ref().map(read).transpose()
    }
}

impl Input {
    /// Opens the trace.
    pub(crate) fn open(&self, options: Options) -> anyhow::Result<Reader<ByteSource>> {
        self.decode(self.bytes()?, options)
    }

    /// Decodes the bytes of the trace.
    pub(crate) fn decode(
        &self,
        bytes: Watched<Box<dyn Read + Send>>,
        options: Options,
    ) -> anyhow::Result<Reader<ByteSource>> {
        let options = options.strict(self.reading.strict);
        Reader::from_source(bytes, options).map_err(|error| match error {
            heapline_trace::Error::NotATrace { .. } if self.is_spacetime() => anyhow::anyhow!(
                "{} is a Spacetime profile, which has no single blocks as this command needs them; \
                 use summary, tree or export",
                self.name()
            ),
            error => self.error(error),
        })
    }

    /// Returns true if the file is a Spacetime profile. Standard input cannot be read twice.
    pub(crate) fn is_spacetime(&self) -> bool {
        let head = || {
            let file = File::open(&self.trace).ok()?;
            let (bytes, _) = heapline_trace::decompressed(Box::new(file)).ok()?;
            let mut head = Vec::new();
            bytes.take(HEAD as u64).read_to_end(&mut head).ok()?;
            Some(head)
        };
        let format = head().and_then(|head| heapline_formats::sniff(&head));
        format.is_some_and(|format| format.name == spacetime::NAME)
    }

    /// Loads the profile in any input format.
    pub(crate) fn load(
        &self,
        options: heapline_formats::Options,
        store: StoreOptions,
    ) -> anyhow::Result<Profile> {
        self.load_from(|| self.bytes(), options, store)
    }

    /// Loads the profile from bytes, which are not opened if the trace has an index.
    pub(crate) fn load_from<R: Read + Send + 'static>(
        &self,
        bytes: impl FnOnce() -> anyhow::Result<R>,
        options: heapline_formats::Options,
        store: StoreOptions,
    ) -> anyhow::Result<Profile> {
        let start = Instant::now();
        let file = self.trace_file();
        let options = self.formats_options(options)?;
        let problem = |error| anyhow::Error::new(error).context(self.name());
        let memory = self.reading.memory();
        let profile = heapline_index::load(file.as_ref(), memory, options, store, bytes, problem)?;
        self.warn_of_moved(profile.moved_events());
        if file.is_some_and(|file| file.uses_index())
            && profile.is_indexable()
            && start.elapsed() >= LONG
        {
            note(&format!(
                "heapline index {} makes the next command start at once",
                shell_path(&self.name())
            ));
        }
        Ok(profile)
    }

    /// The file of the trace, its index and the limit of memory. `None` for pipes.
    pub(crate) fn trace_file(&self) -> Option<TraceFile> {
        self.file_size()?;
        let reading = &self.reading;
        let is_off = std::env::var_os("HEAPLINE_INDEX").is_some_and(|value| value == "off");
        // Until a recording has ended, its last events are not in the file itself.
        let is_recorded = heapline_trace::tail::path(&self.trace).exists();
        let no_index = reading.no_index || is_off || is_recorded;
        Some(TraceFile::new(&self.trace, reading.memory()).without_index(no_index))
    }

    /// Warns about events whose order is not known.
    pub(crate) fn warn_of_moved(&self, events: u64) {
        if events > 0 {
            warn(&format!(
                "{} events of {} came too late to be put in order within the memory limit, and are shown at a later time; \
                 raise --memory",
                events,
                self.name()
            ));
        }
    }

    /// The options of an input format, with those of the user.
    pub(crate) fn formats_options(
        &self,
        mut options: heapline_formats::Options,
    ) -> anyhow::Result<heapline_formats::Options> {
        options.strict = self.reading.strict;
        options.executable = self.reading.executable()?;
        Ok(options)
    }

    /// Opens the file without decompressing it.
    pub(crate) fn bytes(&self) -> anyhow::Result<Watched<Box<dyn Read + Send>>> {
        let name = self.name();
        if self.is_stdin() {
            if io::stdin().is_terminal() {
                anyhow::bail!("standard input is a terminal; pipe a trace to it, or give a file");
            }
            return Ok(Watched::new(Box::new(io::stdin()), None));
        }
        if self.is_demo() {
            return Ok(Watched::new(Box::new(demo::TRACE), None));
        }
        let cannot_open = || format!("cannot open {name}");
        let metadata = self.trace.metadata().with_context(cannot_open)?;
        if metadata.is_dir() {
            anyhow::bail!("{name} is a directory; give a trace file, usually named *.ctf");
        }
        if metadata.is_file() {
            return Ok(watch(&self.snapshot()?));
        }
        let file = File::open(&self.trace).with_context(cannot_open)?;
        Ok(Watched::new(Box::new(file), None))
    }

    /// Opens a regular file, together with the tail of its recording.
    pub(crate) fn snapshot(&self) -> anyhow::Result<Snapshot> {
        refuse_other_than_trace(&self.trace)?;
        let name = self.name();
        let snapshot =
            Snapshot::open(&self.trace).with_context(|| format!("cannot open {name}"))?;
        if let Some(problem) = snapshot.problem() {
            warn(&format!(
                "cannot recover the last events of {name}: {problem}"
            ));
        }
        #[cfg(recording)]
        if let Ok(Some(pid)) = heapline_recorder::tail::owner(&self.trace) {
            note(&format!(
                "process {pid} is still recording to {name}; numbers are those of now"
            ));
        }
        Ok(snapshot)
    }

    /// The size of the file on disk; `None` for pipes.
    pub(crate) fn file_size(&self) -> Option<u64> {
        if self.is_stdin() {
            return None;
        }
        let metadata = self.trace.metadata().ok()?;
        metadata.is_file().then_some(metadata.len())
    }

    /// Adds the name of the trace to an error.
    pub(crate) fn error(&self, error: heapline_trace::Error) -> anyhow::Error {
        anyhow::Error::new(error).context(self.name())
    }

    /// The name of the trace in messages.
    pub(crate) fn name(&self) -> String {
        if self.is_stdin() {
            "standard input".to_owned()
        } else {
            self.trace.display().to_string()
        }
    }

    /// Returns true for the built-in trace, unless there is a file with its name.
    fn is_demo(&self) -> bool {
        let is_file = || self.trace.metadata().is_ok_and(|found| !found.is_dir());
        self.trace == Path::new(demo::NAME) && !is_file()
    }

    fn is_stdin(&self) -> bool {
        self.trace == Path::new("-")
    }

    /// Warns about damage to the trace.
    pub(crate) fn warn_of(&self, damage: &Damage) {
        let Some(first) = damage.flaws.first() else {
            return;
        };
        let name = self.name();
        let more = match damage.count {
            1 => String::new(),
            n => format!(
                " (and {} more; see: heapline info {})",
                n - 1,
                shell_path(&self.trace.display().to_string())
            ),
        };
        let is = if first.kind == Flaw::ENDED_EARLY {
            "is incomplete:"
        } else {
            "is damaged"
        };
        warn(&format!("{name} {is} {first}{more}"));
    }
}

/// The bytes of a snapshot, with a progress bar.
pub(crate) fn watch(snapshot: &Snapshot) -> Watched<Box<dyn Read + Send>> {
    Watched::new(Box::new(snapshot.reader()), Some(snapshot.size()))
}

/// Warns if the last packet was omitted for compatibility with other programs.
pub(crate) fn warn_of_left_out(damage: &Damage) {
    if damage.is_truncated() {
        warn(
            "the incomplete last packet is omitted, for compatibility with memtrace; \
             other formats include its intact events",
        );
    }
}
