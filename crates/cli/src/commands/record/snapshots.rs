//! `heapline record --snapshot`: heap snapshots of the program that is recorded.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use heapline_engine::{Filter, shell_path};
use heapline_formats::{Follower, Options};
use heapline_profile::query::Size;
use heapline_profile::reports::{self, SummaryOptions};
use heapline_profile::{LiveProfile, Recursion, StoreOptions};
use heapline_recorder::settings::RecordingSettings;
use heapline_trace::tail::{self, layout::Word};

use super::{Kind, make_way};
use crate::commands::attach::duration;
use crate::commands::attach::program::has_ended;
use crate::commands::snapshot::{self, finish, say, used_share, wait_for_writer};
use crate::error::{note, warn};

/// The time between two looks at the program.
const INTERVAL: Duration = Duration::from_millis(50);

/// The time between two looks at the trace.
const TRACE_INTERVAL: Duration = Duration::from_secs(1);

/// Signals that programs have for purposes of their own, and their numbers on Linux for x86-64 and arm64.
const SIGNALS: [(&str, i32); 2] = [("USR1", 10), ("USR2", 12)];

/// When to take a snapshot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::commands) enum When {
    /// When the program exits.
    End,
    /// Once, after a time.
    After(Duration),
    /// Again and again.
    Every(Duration),
    /// Once, when so many bytes are live.
    Live(f64),
    /// Once, when a part of the memory of the control group is used.
    Limit(f64),
    /// When the program gets a signal.
    Signal(i32),
}

impl When {
    fn first_time(self) -> Duration {
        match self {
            Self::After(time) | Self::Every(time) => time,
            _ => Duration::ZERO,
        }
    }

    fn signal(self) -> Option<i32> {
        match self {
            Self::Signal(signal) => Some(signal),
            _ => None,
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = || {
            "expected `end`, `10s`, `every 60s`, `live > 1GiB`, `limit 90%` or `signal USR2`"
                .to_owned()
        };
        let duration = |text: &str| duration(text.trim()).map_err(|_| problem());
        let text = text.trim();
        if text == "end" {
            return Ok(Self::End);
        }
        if let Some(time) = text.strip_prefix("every ") {
            return duration(time).map(Self::Every);
        }
        if let Some(size) = text.strip_prefix("live") {
            let size = size.trim().strip_prefix('>').ok_or_else(problem)?;
            let size = size.trim().parse::<Size>().map_err(|_| problem())?;
            return Ok(Self::Live(size.bytes(8.0)));
        }
        if let Some(part) = text.strip_prefix("limit ") {
            let part = part.trim().strip_suffix('%').ok_or_else(problem)?;
            let part = part.trim().parse::<f64>().map_err(|_| problem())?;
            let is_part = part > 0.0 && part < 100.0;
            return is_part
                .then_some(Self::Limit(part / 100.0))
                .ok_or_else(problem);
        }
        if let Some(name) = text.strip_prefix("signal ") {
            let signal = SIGNALS.iter().find(|(known, _)| *known == name.trim());
            return signal
                .map(|&(_, signal)| Self::Signal(signal))
                .ok_or_else(problem);
        }
        duration(text).map(Self::After)
    }
}

/// The snapshots of a program.
pub(super) struct Snapshots {
    whens: Vec<When>,
    /// They are named `PREFIX.N.heap`.
    prefix: PathBuf,
    has_ended: Arc<AtomicBool>,
    watcher: Option<JoinHandle<Vec<Taken>>>,
}

type Taken = (PathBuf, snapshot::Finished);

impl Snapshots {
    pub(super) fn new(whens: &[When], prefix: &Path) -> Self {
        Self {
            whens: whens.to_vec(),
            prefix: prefix.to_owned(),
            has_ended: Arc::new(AtomicBool::new(false)),
            watcher: None,
        }
    }

    fn end_file(&self) -> PathBuf {
        named(&self.prefix, "end")
    }

    /// Asks the agent for what it needs.
    pub(super) fn prepare(
        &self,
        settings: &mut RecordingSettings,
        kind: Kind,
        force: bool,
    ) -> anyhow::Result<()> {
        if !self.whens.is_empty() && kind == Kind::Rust {
            bail!(
                "--snapshot is for OCaml programs: the heap of Rust programs does not say what is where"
            );
        }
        if self.whens.contains(&When::End) {
            make_way(&self.end_file(), force)?;
            settings.exit_snapshot = Some(std::path::absolute(self.end_file())?);
        }
        settings.listen = self.whens.iter().any(|when| *when != When::End);
        let mut signals = self.whens.iter().filter_map(|when| when.signal());
        settings.snapshot_signal = signals.next();
        if signals.next().is_some() {
            bail!("--snapshot can be given one signal only");
        }
        Ok(())
    }

    /// Watches a program that was started.
    pub(super) fn start(&mut self, pid: u32, trace: PathBuf) {
        let whens = self.whens.iter().filter(|when| **when != When::End);
        let whens: Vec<_> = whens.map(|when| (*when, when.first_time())).collect();
        if whens.is_empty() {
            return;
        }
        let mut watch = Watch {
            pid,
            whens,
            prefix: self.prefix.clone(),
            start: Instant::now(),
            trace,
            live: None,
            looked: None,
            signals: 0,
            has_ended: Arc::clone(&self.has_ended),
        };
        self.watcher = Some(thread::spawn(move || watch.run()));
    }

    /// Waits for the last snapshots of a program that has ended, and says where they are.
    pub(super) fn finish(self, quiet: bool) {
        self.has_ended.store(true, Ordering::Relaxed);
        let mut taken = self
            .watcher
            .map_or_else(Vec::new, |watcher| watcher.join().unwrap_or_default());
        if self.whens.contains(&When::End) {
            let file = named(&self.prefix, "end");
            let finished = File::open(&file)
                .context("cannot open the snapshot")
                .and_then(|open| wait_for_writer(&open, &AtomicBool::new(false)))
                .and_then(|()| finish(&file, Path::new("/")));
            match finished {
                Ok(finished) => taken.push((file, finished)),
                Err(_) if !file.exists() => warn(
                    "no heap snapshot of the end of the program: it ended by a signal or `_exit`, or ran another \
                     program in its place",
                ),
                Err(error) => {
                    warn(&format!(
                        "no heap snapshot of the end of the program: {error:#}"
                    ));
                    let _ = fs::remove_file(&file);
                }
            }
        }
        if !quiet {
            say_all(&taken);
        }
    }
}

/// Says where the snapshots are.
fn say_all(taken: &[Taken]) {
    let [(first, _), .., (last, _)] = taken else {
        for (file, finished) in taken {
            say(file, finished);
        }
        return;
    };
    let longest = taken.iter().map(|(_, finished)| finished.stopped).max();
    let files = [first, last].map(|file| file.to_string_lossy());
    note(&format!(
        "wrote {} heap snapshots, {} to {}; the program was stopped for at most {:.1} ms; next: heapline \
         diff {} {}",
        taken.len(),
        files[0],
        files[1],
        longest.unwrap_or_default().as_secs_f64() * 1e3,
        shell_path(&files[0]),
        shell_path(&files[1])
    ));
}

/// `PREFIX.NAME.heap`
fn named(prefix: &Path, name: &str) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(format!(".{name}.heap"));
    path.into()
}

/// Looks at a program, and takes snapshots of it.
struct Watch {
    pid: u32,
    /// With the next time of those that have one.
    whens: Vec<(When, Duration)>,
    prefix: PathBuf,
    start: Instant,
    trace: PathBuf,
    live: Option<LiveProfile>,
    /// When it was last looked at the trace.
    looked: Option<Instant>,
    /// Signals so far.
    signals: u64,
    has_ended: Arc<AtomicBool>,
}

impl Watch {
    fn run(&mut self) -> Vec<Taken> {
        let mut taken = Vec::new();
        let mut number = 0;
        while !self.has_ended.load(Ordering::Relaxed) {
            if !self.is_due() {
                thread::sleep(INTERVAL);
                continue;
            }
            let file = loop {
                number += 1;
                let file = named(&self.prefix, &number.to_string());
                if !file.exists() {
                    break file;
                }
            };
            let result = snapshot::Args::of_process(self.pid, &file)
                .and_then(|args| args.take(&self.has_ended));
            match result {
                Ok(finished) => taken.push(finished),
                // Perhaps meanwhile.
                Err(_) if self.has_ended.load(Ordering::Relaxed) || has_ended(self.pid) => {}
                Err(error) => warn(&format!("{error:#}")),
            }
        }
        taken
    }

    /// Returns true if a snapshot is to be taken now.
    fn is_due(&mut self) -> bool {
        let now = self.start.elapsed();
        let pid = self.pid;
        let live = self.live_bytes();
        let is_signalled = self.is_signalled();
        let mut is_due = false;
        self.whens.retain_mut(|(when, next)| {
            let is_reached = match *when {
                When::End => false,
                When::After(_) | When::Every(_) => now >= *next,
                When::Live(bytes) => live.is_some_and(|live| live > bytes),
                When::Limit(part) => used_share(pid).is_some_and(|used| used >= part),
                When::Signal(_) => is_signalled,
            };
            is_due |= is_reached;
            match *when {
                When::Every(time) if is_reached => {
                    // Not several at once after a long one.
                    *next = (*next + time).max(now);
                    true
                }
                When::Signal(_) => true,
                _ => !is_reached,
            }
        });
        is_due
    }

    /// Returns true if the program got the signal since it was last asked. Several at once are one.
    fn is_signalled(&mut self) -> bool {
        if !self.whens.iter().any(|(when, _)| when.signal().is_some()) {
            return false;
        }
        // The recording may not have begun yet.
        let signals = File::open(tail::path(&self.trace))
            .and_then(|mut file| tail::read_word(&mut file, Word::SnapshotSignals))
            .unwrap_or(self.signals);
        std::mem::replace(&mut self.signals, signals) != signals
    }

    /// The bytes that are live now, if that matters and is known.
    fn live_bytes(&mut self) -> Option<f64> {
        let is_live = |(when, _): &(When, Duration)| matches!(when, When::Live(_));
        let is_wanted = self.whens.iter().any(is_live);
        let is_early = self
            .looked
            .is_some_and(|last| last.elapsed() < TRACE_INTERVAL);
        if !is_wanted || is_early {
            return None;
        }
        self.looked = Some(Instant::now());
        if self.live.is_none() {
            let source = Follower::open(&self.trace, Options::default()).ok()?;
            let recursion = Recursion::Collapse;
            self.live = Some(LiveProfile::new(source, StoreOptions { recursion }));
        }
        let profile = self.live.as_mut()?.refresh().ok()??;
        let scope = Filter::default().scope(&profile);
        let report = reports::summary(&scope, &SummaryOptions::default());
        Some(report.live_at_end.bytes.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_parsed() {
        for (text, expected) in [
            ("end", When::End),
            ("10s", When::After(Duration::from_secs(10))),
            ("every 500ms", When::Every(Duration::from_millis(500))),
            ("live > 1GiB", When::Live(f64::from(1 << 30))),
            ("live>2KiB", When::Live(2048.0)),
            ("limit 90%", When::Limit(0.9)),
            ("signal USR2", When::Signal(12)),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in [
            "",
            "0s",
            "never",
            "every",
            "live 5",
            "limit 100%",
            "limit 5",
            "-3s",
            "signal KILL",
            "signal",
        ] {
            assert!(text.parse::<When>().is_err(), "{text}");
        }
    }
}
