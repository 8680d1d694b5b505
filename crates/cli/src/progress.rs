//! A progress bar for reading large traces.

use std::io::{self, IsTerminal, Read};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Delay before the bar is shown, so that it does not flash.
const PATIENCE: Duration = Duration::from_millis(400);

/// Counts the bytes read, and shows them on standard error if that is a terminal.
pub(crate) struct Watched<R> {
    source: R,
    /// `None` without a terminal.
    bar: Option<ProgressBar>,
    started: Instant,
}

impl<R: Read> Watched<R> {
    /// Wraps `source`, whose size in bytes may be known.
    pub(crate) fn new(source: R, size: Option<u64>) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::hidden();
            if let Some(size) = size {
                bar.set_length(size);
            }
            let template = if size.is_some() {
                "reading {bar:30} {percent:>3} %  {binary_bytes_per_sec}  {eta} left"
            } else {
                "reading {spinner} {binary_bytes}  {binary_bytes_per_sec}"
            };
            bar.with_style(
                ProgressStyle::with_template(template)
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
            )
        });
        Self {
            source,
            bar,
            started: Instant::now(),
        }
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read(buffer)?;
        if let Some(bar) = &self.bar {
            bar.inc(n as u64);
            if bar.is_hidden() && self.started.elapsed() > PATIENCE {
                bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
            }
            if n == 0 {
                bar.finish_and_clear();
            }
        }
        Ok(n)
    }
}

impl<R> Drop for Watched<R> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
