//! Reports on a recording that still runs, again and again.

use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use heapline_engine::{Ask, Cancel, Filter, LoadedTrace, Session};
use heapline_formats::{Follower, Options};
use heapline_profile::{LiveProfile, Profile, Recursion, StoreOptions};
use heapline_text::{Context, Line, Screen, Style, Text};

use crate::input::Input;
use crate::output::{to_stdout, to_stdout_styled};
use crate::question::{Json, Question, with_selection};

/// Options of commands that follow a recording.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct FollowOptions {
    /// Follow a recording that still runs: print the report again when it has changed
    ///
    /// Redraws it on a terminal. Ends with the recording, or with Ctrl-C; the program is not disturbed.
    #[arg(long)]
    pub(super) follow: bool,

    /// Print at most once in this many seconds, with --follow
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "1",
        value_parser = parse_interval,
        requires = "follow"
    )]
    interval: Duration,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let seconds = text.strip_suffix('s').unwrap_or(text).parse::<f64>();
    match seconds {
        Ok(seconds) if (0.1..=86_400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected 0.1 to 86400 seconds".to_owned()),
    }
}

/// A report that is printed again and again.
pub(super) struct Watch<'a, O: Ask> {
    pub(super) question: &'a Question,
    pub(super) options: &'a O,
    pub(super) json: Json,
    pub(super) screen: Screen,
    pub(super) render: fn(&O::Report, &Context<'_>) -> Text,
}

impl FollowOptions {
    /// Prints a report each time that it has changed, until the recording ends.
    pub(super) fn run<O: Ask>(&self, watch: &Watch<'_, O>) -> anyhow::Result<()> {
        let Question { input, filter } = watch.question;
        watch
            .options
            .validate()
            .map_err(|error| anyhow::anyhow!("--{error}"))?;
        let mut live = open(input, filter)?;
        let redraws = io::stdout().is_terminal() && !watch.json.is_json();
        loop {
            let news = live.refresh().with_context(|| input.name())?;
            let has_ended = live.has_ended();
            if let Some(profile) = news {
                let session = session(input, profile);
                let report = session.ask(filter, watch.options, &Cancel::default())?;
                if redraws && !has_ended {
                    redraw(&watch.text(&report))?;
                } else {
                    if redraws {
                        clear()?;
                    }
                    watch.print(&report)?;
                }
                if has_ended {
                    // It always has something new to say.
                    input.warn_of(session.trace().profile.damage());
                }
            }
            if has_ended {
                return Ok(());
            }
            thread::sleep(self.interval);
        }
    }
}

impl<O: Ask> Watch<'_, O> {
    fn print(&self, report: &O::Report) -> anyhow::Result<()> {
        if self.json.is_json() {
            // A line for each, so that whoever reads them knows where one ends.
            let mut line = serde_json::to_vec(report)?;
            line.push(b'\n');
            return to_stdout(&line);
        }
        to_stdout_styled(&self.text(report))
    }

    fn text(&self, report: &O::Report) -> Text {
        let context = Context {
            screen: self.screen,
            suggest: None,
        };
        let report = (self.render)(report, &context);
        with_selection(&self.question.filter, report, self.screen)
    }
}

fn open(input: &Input, filter: &Filter) -> anyhow::Result<LiveProfile> {
    if input.file_size().is_none() {
        bail!("cannot follow {}: it is not a regular file", input.name());
    }
    let options = input.formats_options(Options::default())?;
    let source = Follower::open(&input.trace, options).with_context(|| input.name())?;
    let recursion = if filter.keep_recursion {
        Recursion::Keep
    } else {
        Recursion::Collapse
    };
    Ok(LiveProfile::new(source, StoreOptions { recursion }))
}

/// A session about the newest profile.
fn session(input: &Input, profile: Profile) -> Session {
    let trace = LoadedTrace {
        path: input.trace.display().to_string(),
        size: input.file_size(),
        profile,
    };
    Session::new(trace, None)
}

/// Draws the first lines in place of those that are there.
fn redraw(text: &Text) -> anyhow::Result<()> {
    let height = terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0));
    let mut shown = Text::default();
    for line in text.lines().iter().take(height.saturating_sub(2)) {
        shown.push(line.clone());
    }
    shown.push(Line::new(
        "recording; Ctrl-C ends watching, not the program",
        Style::Faint,
    ));
    // From the top; each line is cleared behind its end, and the screen behind the last.
    let lines = shown.to_ansi().replace('\n', "\x1b[K\n");
    let mut stdout = anstream::stdout();
    write!(stdout, "\x1b[H{lines}\x1b[J")
        .and_then(|()| stdout.flush())
        .context("cannot write to standard output")
}

fn clear() -> anyhow::Result<()> {
    to_stdout(b"\x1b[H\x1b[J")
}
