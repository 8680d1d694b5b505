//! `heapline sturgeon`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use anyhow::Context;
use heapline_engine::Filter;
use heapline_profile::query::TimePoint;
use heapline_profile::reports::{ByHeap, NodeKind, Tree, TreeNode, TreeOptions, tree};
use heapline_profile::{GroupBy, Look, Profile, Share};
use heapline_sturgeon::{Outline, Rendezvous, Server};
use heapline_text::sanitize;
use heapline_text::units::{estimated_bytes, label, program_name};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::input::{Input, Reading};
use crate::output::to_stdout;
use crate::process;
use crate::question::load;

/// Columns of the amounts.
const AMOUNT: usize = 17;

/// Show a trace in Emacs, with sturgeon.el
///
/// Serves the buffer of statmemprof-emacs: a tree from allocation sites to their callers, which is
/// read again at each refresh. It has what is live at the end, or now, unless --live says otherwise.
/// `M-x sturgeon-connect` shows it. Heapline's own package for Emacs does not need this command: see
/// docs/emacs.md.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline sturgeon 1234                  a process that is being recorded
  heapline sturgeon trace.ctf --min 1%
  heapline sturgeon trace.ctf --live peak --where 'heap = major'")]
pub(crate) struct Args {
    /// Process that is being recorded, or trace to read
    #[arg(value_name = "PID|TRACE")]
    target: PathBuf,

    #[command(flatten)]
    filter: Filter,

    /// Merge nodes below this share of the total into "other"
    #[arg(long, default_value = "0.1%", value_name = "SHARE")]
    min: Share,

    /// Hide nodes with fewer samples
    #[arg(long, default_value_t = 1, value_name = "N")]
    min_samples: u64,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    reading: Reading,
}

impl Args {
    pub(crate) fn run(mut self) -> anyhow::Result<()> {
        if self.filter.live.is_none() {
            self.filter.live = Some(TimePoint::End);
        }
        let input = self.input()?;
        // Also the first check of the trace, while somebody reads errors here.
        let profile = load(&input, false)?;
        let header = profile.header();
        let name = program_name(&header.program).to_owned();
        let rendezvous = Rendezvous::new(&std::env::temp_dir(), &name, header.pid)?;
        drop(profile);
        announce(&input, rendezvous.path())?;

        let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot handle signals")?;
        let listener = rendezvous.listener().context("cannot serve")?;
        let server = Server::new(&name, move || {
            let (args, input) = (self.clone(), input.clone());
            Box::new(move || args.outline(&input).map_err(|error| format!("{error:#}")))
        });
        let error = until_signal(signals, move || server.serve(&listener))?;
        // Dropping the socket removes its file, also after a signal.
        drop(rendezvous);
        match error {
            None => Ok(()),
            Some(error) => Err(error).context("cannot serve"),
        }
    }

    fn input(&self) -> anyhow::Result<Input> {
        let trace = match process::id(&self.target) {
            Some(pid) => process::trace_of(pid)?,
            None => self.target.clone(),
        };
        Ok(self.reading.input(&trace))
    }

    /// Reads the trace.
    fn outline(&self, input: &Input) -> anyhow::Result<Outline> {
        let profile: Profile = load(input, self.filter.keep_recursion)?;
        self.filter.check(&profile)?;
        let options = TreeOptions {
            bottom_up: true,
            by: GroupBy::Site,
            min: self.min,
            details: true,
            look: self.look.clone(),
            ..TreeOptions::default()
        };
        let report = tree(&self.filter.scope(&profile), &options);
        Ok(outline(&report, self.min_samples))
    }
}

/// Calls a function in a thread until a signal arrives; returns its result if it ends before.
fn until_signal<T: Send + 'static>(
    mut signals: Signals,
    function: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let (sender, receiver) = mpsc::channel();
    let result = sender.clone();
    thread::Builder::new().spawn(move || result.send(Some(function())))?;
    thread::Builder::new().spawn(move || {
        if signals.forever().next().is_some() {
            let _ = sender.send(None);
        }
    })?;
    Ok(receiver.recv().ok().flatten())
}

fn announce(input: &Input, socket: &Path) -> anyhow::Result<()> {
    let name = socket.file_name().unwrap_or_default().to_string_lossy();
    let text = format!(
        "{}: serving on {}\nIn Emacs: M-x sturgeon-connect RET {name} RET\nPress Ctrl-C to stop.\n",
        sanitize(&input.name()),
        sanitize(&socket.display().to_string()),
    );
    to_stdout(text.as_bytes())
}

/// The lines of the buffer.
fn outline(report: &Tree, min_samples: u64) -> Outline {
    let amount = |estimate| format!("{:>AMOUNT$}", estimated_bytes(estimate));
    let heaps = report.nodes.iter().filter(|node| node.parent.is_none());
    let heaps = heaps.map(heap).fold(ByHeap::default(), |a, b| ByHeap {
        minor: a.minor + b.minor,
        major: a.major + b.major,
        external: a.external + b.external,
        native: a.native + b.native,
    });
    let total = amount(report.total.bytes);
    let mut outline = Outline::new(&format!("{total} total  {}", shares(heaps)));
    // The number of each node in the outline; `None` if it is hidden.
    let mut numbers: Vec<Option<usize>> = Vec::with_capacity(report.nodes.len());
    for node in &report.nodes {
        let parent = node.parent.map_or(Some(0), |parent| numbers[parent]);
        let is_shown = node.total.samples >= min_samples;
        numbers.push(parent.filter(|_| is_shown).map(|parent| {
            let name = label(&node.label);
            let total = amount(node.total.bytes);
            let text = format!("{total} | {name} {}", shares(heap(node)));
            // The number of merged nodes changes: "other (3)".
            let key = match node.kind {
                NodeKind::Other => "",
                NodeKind::Call | NodeKind::Site => &name,
            };
            outline.add(parent, key, &text)
        }));
    }
    outline
}

fn heap(node: &TreeNode) -> ByHeap {
    node.details
        .map_or(ByHeap::default(), |details| details.heap)
}

/// The shares of the heaps where blocks were born, such as `(80.00% minor, 20.00% major)`.
fn shares(heap: ByHeap) -> String {
    let parts = [
        (heap.minor, "minor"),
        (heap.major, "major"),
        (heap.external, "external"),
        (heap.native, "native"),
    ];
    let whole: f64 = parts.iter().map(|(bytes, _)| bytes).sum();
    let parts: Vec<String> = parts
        .iter()
        .filter(|(bytes, _)| *bytes > 0.0)
        .map(|(bytes, name)| format!("{:.2}% {name}", 100.0 * bytes / whole))
        .collect();
    format!("({})", parts.join(", "))
}
