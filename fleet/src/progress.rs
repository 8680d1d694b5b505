//! Shows on a terminal that a statement runs.

use std::future::Future;
use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Answers that come sooner need no progress.
const QUIET: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(200);

/// Waits for an answer; meanwhile, standard error shows for how long, if it is a terminal.
pub async fn with_progress<T>(answer: impl Future<Output = T>) -> T {
    if !io::stderr().is_terminal() {
        return answer.await;
    }
    tokio::pin!(answer);
    tokio::select! {
        answer = &mut answer => return answer,
        () = tokio::time::sleep(QUIET) => {}
    }
    let bar = ProgressBar::new_spinner()
        .with_style(
            ProgressStyle::with_template("{spinner} {elapsed} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        )
        .with_message("running; Ctrl-C cancels");
    bar.enable_steady_tick(STEP);
    let answer = answer.await;
    bar.finish_and_clear();
    answer
}
