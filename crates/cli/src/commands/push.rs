//! `heapline push`.

use anyhow::{anyhow, ensure};
use heapline_profile::Look;
use heapline_profile::query::TimePoint;
use heapline_push::{Delivered, Endpoint, Protocol, Windows, deliver};
use heapline_text::units::{bytes, count, seconds};

use super::sending::Sending;
use crate::error::{note, warn};
use crate::question::{Question, warn_of_unmatched_patterns};

/// Send a trace to an OpenTelemetry, Pyroscope or Parca server
///
/// Sends what was allocated, and what was live at the end or at another time, with all stacks. If the server
/// is busy or cannot be reached, it is tried five times in all.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline push trace.ctf otlp=http://localhost:4318
  heapline push trace.ctf pyroscope=http://localhost:4040 --service shop --label env=test
  heapline push trace.ctf parca=http://localhost:7070 --at peak --own-code

To send profiles while a program runs, use heapline record --push. docs/push.md describes both.")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    /// Send to this server: otlp=URL, pyroscope=URL or parca=URL
    #[arg(value_name = "PROTOCOL=URL")]
    server: String,

    /// Select the protocol of a server that is given as a URL alone
    #[arg(long, value_enum, value_name = "PROTOCOL", hide = true)]
    to: Option<Protocol>,

    /// Send memory live at this time: end, peak, 10s, 90% [default: end]
    #[arg(long, value_name = "TIME")]
    at: Option<TimePoint>,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    sending: Sending,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let endpoint = match self.to {
            Some(protocol) => Endpoint::new(protocol, &self.server)?,
            None => self.server.parse()?,
        };
        let endpoint = self.sending.endpoint(endpoint)?;
        let profile = self.question.load()?;
        warn_of_unmatched_patterns(&self.look, &profile);
        let scope = self.question.scope(&profile)?.showing(&self.look);
        let live = match &self.at {
            Some(at) => at.moment(&profile, scope.estimator()),
            None => profile.end(),
        };
        let heap = Windows::default().next(&scope, live, None);
        self.question.check_read(&profile)?;
        ensure!(
            !heap.is_empty(),
            "{} has no blocks to send",
            self.question.input.name()
        );
        let message = endpoint.encode(&heap, &self.sending.identity());
        let server = format!("{} {endpoint}", endpoint.protocol.name());
        let delivered = deliver(&endpoint, &message, |reason, wait| {
            let wait = seconds(wait.as_secs_f64());
            warn(&format!(
                "cannot push to {server}: {reason}; trying again in {wait}"
            ));
        });
        let Delivered { rejected, remark } = delivered
            .map_err(|failure| anyhow!("cannot push to {server}: {}", failure.reason()))?;
        let remark = remark.unwrap_or_default();
        let sent = message.profiles();
        ensure!(
            rejected == 0,
            "{server} has rejected {rejected} of {sent} profiles: {remark}"
        );
        if !remark.is_empty() {
            warn(&format!("{server} says: {remark}"));
        }
        note(&format!(
            "pushed {} stacks to {server} ({})",
            count(heap.len() as u64),
            bytes(message.size() as f64)
        ));
        Ok(())
    }
}
