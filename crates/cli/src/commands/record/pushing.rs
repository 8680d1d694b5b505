//! `--push`: sends profiles while a program is recorded.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use heapline_engine::Filter;
use heapline_formats::{Follower, Options};
use heapline_profile::{LiveProfile, Profile, StoreOptions};
use heapline_push::{Endpoint, Failure, Identity, Pusher, Tally, Windows};

use crate::commands::sending::{self, Sending};
use crate::error::{note, warn};

/// The time between two attempts to open a recording that has not begun.
const ATTEMPTS: Duration = Duration::from_millis(50);

/// The shortest interval.
const SHORTEST: Duration = Duration::from_millis(100);

/// The time for which a server is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Options of commands that record.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::commands) struct PushOptions {
    /// Send profiles to a server while the program runs: otlp=URL, pyroscope=URL or parca=URL
    ///
    /// Each has what was allocated since the one before, and what is live. Can be given more than once. The
    /// program does not wait for the server: if that is down, the oldest profiles are dropped. See docs/push.md.
    #[arg(long, value_name = "PROTOCOL=URL", help_heading = "Push")]
    push: Vec<Endpoint>,

    /// Send a profile this often [default: 15s]
    #[arg(long, value_name = "DURATION", value_parser = crate::commands::attach::duration, requires = "push", help_heading = "Push")]
    push_interval: Option<Duration>,

    #[command(flatten)]
    sending: Sending,
}

/// Profiles that are sent while a program is recorded.
pub(in crate::commands) struct Pushing {
    interval: Duration,
    servers: Vec<(Endpoint, Pusher)>,
    identity: Identity,
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<(Endpoint, Pusher)>>>,
}

impl PushOptions {
    /// Removes credentials from the environment of the program.
    pub(super) fn hide_credentials(&self, command: &mut Command) {
        sending::hide_credentials(command, self.push.iter());
    }

    /// Starts the threads that send, before the program is started. `None` if there is nothing to be sent.
    pub(in crate::commands) fn prepare(&self) -> anyhow::Result<Option<Pushing>> {
        if self.push.is_empty() {
            ensure!(
                self.sending.is_default(),
                "--header, --label and --service need --push"
            );
            return Ok(None);
        }
        let interval = self.push_interval.unwrap_or(Duration::from_secs(15));
        ensure!(
            interval >= SHORTEST,
            "--push-interval must be at least 100ms"
        );
        let start = |endpoint: &Endpoint| {
            let endpoint = self.sending.endpoint(endpoint.clone())?;
            let server = name(&endpoint);
            let failed = {
                let server = server.clone();
                move |failure: &Failure| {
                    let next = match failure {
                        Failure::Temporary { .. } => "trying again",
                        Failure::Permanent { .. } => "this profile is lost",
                    };
                    let reason = failure.reason();
                    warn(&format!("cannot push to {server}: {reason}; {next}"));
                }
            };
            let pusher = Pusher::start(endpoint.clone(), failed)
                .with_context(|| format!("cannot push to {server}"))?;
            Ok((endpoint, pusher))
        };
        Ok(Some(Pushing {
            interval,
            servers: self.push.iter().map(start).collect::<anyhow::Result<_>>()?,
            identity: self.sending.identity(),
            has_ended: Arc::default(),
            thread: None,
        }))
    }
}

impl Pushing {
    /// Follows the recording, in a thread.
    pub(in crate::commands) fn start(&mut self, trace: PathBuf) {
        let following = Following {
            trace,
            interval: self.interval,
            servers: std::mem::take(&mut self.servers),
            identity: self.identity.clone(),
            has_ended: Arc::clone(&self.has_ended),
        };
        self.thread = Some(thread::spawn(move || {
            if let Err(error) = following.run() {
                let trace = following.trace.display();
                warn(&format!("cannot push any more of {trace}: {error:#}"));
            }
            following.servers
        }));
    }

    /// Takes the last profile, now that the program has ended. The trace may be changed afterwards.
    pub(in crate::commands) fn program_ended(&mut self) {
        self.has_ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            self.servers = thread.join().unwrap_or_default();
        }
    }

    /// Waits a moment for profiles that are on their way, and says what became of all.
    pub(in crate::commands) fn finish(self, quiet: bool) {
        let end = Instant::now() + PATIENCE;
        for (endpoint, pusher) in self.servers {
            let tally = pusher.finish(end.saturating_duration_since(Instant::now()));
            say(&name(&endpoint), &tally, quiet);
        }
    }
}

/// A server as it is named in messages.
fn name(endpoint: &Endpoint) -> String {
    format!("{} {endpoint}", endpoint.protocol.name())
}

/// Says what became of the profiles for a server.
fn say(server: &str, tally: &Tally, quiet: bool) {
    let problem = tally.problem.as_deref().unwrap_or("no reason given");
    if tally.rejected_profiles > 0 {
        let rejected = tally.rejected_profiles;
        warn(&format!(
            "{server} has rejected {rejected} profiles: {problem}"
        ));
    }
    if tally.lost() > 0 {
        let reasons = [
            (tally.dropped, "dropped because the queue was full"),
            (tally.refused, "refused by the server"),
            (tally.unsent, "not sent before the end"),
        ];
        let reasons = reasons.iter().filter(|(n, _)| *n > 0);
        let reasons: Vec<String> = reasons.map(|(n, why)| format!("{n} {why}")).collect();
        warn(&format!(
            "{} of {} profiles were not pushed to {server} ({}): {problem}",
            tally.lost(),
            tally.lost() + tally.delivered,
            reasons.join(", ")
        ));
    } else if !quiet {
        note(&format!("pushed {} profiles to {server}", tally.delivered));
    }
}

/// The thread that follows the recording.
struct Following {
    trace: PathBuf,
    interval: Duration,
    servers: Vec<(Endpoint, Pusher)>,
    identity: Identity,
    has_ended: Arc<AtomicBool>,
}

impl Following {
    fn run(&self) -> anyhow::Result<()> {
        let Some(mut live) = self.open()? else {
            return Ok(());
        };
        let mut windows = Windows::default();
        let mut newest: Option<Profile> = None;
        let mut next = Instant::now() + self.interval;
        loop {
            self.wait_until(next);
            let is_last = self.has_ended.load(Ordering::Acquire);
            // Not at all times that were missed, if the machine was busy or asleep.
            next = (next + self.interval).max(Instant::now());
            if let Some(profile) = live.refresh()? {
                newest = Some(profile);
            }
            if let Some(profile) = &newest {
                self.push(profile, &mut windows);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Waits for the recording to begin. `None` if the program has ended without one.
    fn open(&self) -> anyhow::Result<Option<LiveProfile>> {
        loop {
            let is_last = self.has_ended.load(Ordering::Acquire);
            match Follower::open(&self.trace, Options::default()) {
                Ok(source) if source.is_recording() || is_last => {
                    return Ok(Some(LiveProfile::new(source, StoreOptions::default())));
                }
                Err(_) if is_last && !is_recorded(&self.trace) => return Ok(None),
                Err(error) if is_last => bail!(error),
                _ => thread::park_timeout(ATTEMPTS),
            }
        }
    }

    /// Waits until a time, or for the end of the program.
    fn wait_until(&self, time: Instant) {
        while !self.has_ended.load(Ordering::Acquire) {
            let left = time.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::park_timeout(left);
        }
    }

    fn push(&self, profile: &Profile, windows: &mut Windows) {
        let scope = Filter::default().scope(profile);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.ok().and_then(|now| u64::try_from(now.as_nanos()).ok());
        let heap = windows.next(&scope, profile.end(), now);
        if heap.is_empty() {
            return;
        }
        for (endpoint, pusher) in &self.servers {
            pusher.push(endpoint.encode(&heap, &self.identity));
        }
    }
}

/// Returns true if something was recorded.
fn is_recorded(trace: &Path) -> bool {
    trace.metadata().is_ok_and(|metadata| metadata.len() > 0)
}
