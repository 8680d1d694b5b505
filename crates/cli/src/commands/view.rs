//! `heapline view`.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Context;
use heapline_server::{Server, Subjects, missing_page};
use heapline_text::sanitize;

use crate::error::warn;
use crate::input::Input;
use crate::output::to_stdout;
use crate::reopen;

/// Look at a trace in the browser
///
/// Serves a page on this machine only, at port 8080 or the next one that is free, and
/// opens it. It is there at once; the trace is loaded meanwhile.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline view trace.ctf
  heapline view after.ctf --against before.ctf
  heapline view trace.ctf --port 3000 --no-browser
  heapline view trace.ctf --listen 0.0.0.0      for other machines: needs the printed address")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// An earlier trace to compare with
    #[arg(long, value_name = "TRACE")]
    against: Option<PathBuf>,

    #[command(flatten)]
    serving: Serving,
}

/// Where the page is.
#[derive(Debug, clap::Args)]
pub(super) struct Serving {
    /// The port, and no other
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    /// The address to listen at; other machines than this one need a token, which is printed
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    listen: IpAddr,

    /// Do not open the browser
    #[arg(long)]
    no_browser: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (trace, against) = reopen::traces(&self.input, self.against)?;
        self.serving.serve(Subjects::new(trace, against))
    }
}

impl Serving {
    /// Serves until the process ends.
    pub(super) fn serve(&self, subjects: Subjects) -> anyhow::Result<()> {
        if let Some(reason) = missing_page() {
            warn(&format!(
                "this heapline was built without its page: {reason}; only the API is served"
            ));
        }
        let server = Server::bind(self.listen, self.port).with_context(|| match self.port {
            Some(port) => format!("cannot listen at {} on port {port}", self.listen),
            None => format!("cannot listen at {} on a port from 8080 on", self.listen),
        })?;
        let url = server.url();
        announce(&subjects, &url)?;
        if !self.no_browser && has_display() && missing_page().is_none() {
            // The address was printed: a browser that does not start is no reason to stop.
            if let Err(error) = open::that_detached(&url) {
                warn(&format!("cannot open a browser: {error}"));
            }
        }
        match server.serve(subjects) {
            Ok(never) => match never {},
            Err(error) => Err(error).context("cannot serve"),
        }
    }
}

fn announce(subjects: &Subjects, url: &str) -> anyhow::Result<()> {
    let name = subjects.trace.name();
    let text = format!("{} is at {url}\nCtrl-C ends it.\n", sanitize(name));
    // In one piece: whoever waits for the address may not stay for more.
    to_stdout(text.as_bytes())
}

/// Whether a browser could be seen. Elsewhere than on Linux it always can.
fn has_display() -> bool {
    !cfg!(target_os = "linux")
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}
