//! A terminal for `heapline top`: tmux.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) const HEAPLINE: &str = env!("CARGO_BIN_EXE_heapline");

/// A little less than that of other waiting, so that messages have the screen.
const PATIENCE: Duration = heapline_testkit::DEADLINE.saturating_sub(Duration::from_secs(1));

/// A terminal of its own server, which ends with it.
pub(crate) struct Terminal {
    socket: String,
}

impl Terminal {
    /// Runs a command in a shell in a new terminal; `None` if there is no tmux.
    pub(crate) fn start(test: &str, (width, height): (u16, u16), command: &str) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if Command::new("tmux").arg("-V").output().is_err() {
            heapline_testkit::missing(&format!("{test}: there is no tmux"));
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let terminal = Self {
            socket: format!("heapline-test-{}-{number}", std::process::id()),
        };
        let (width, height) = (width.to_string(), height.to_string());
        let size = ["new-session", "-d", "-x", &width, "-y", &height];
        terminal.tmux(&[&size[..], &[command]].concat());
        Some(terminal)
    }

    pub(crate) fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-u", "-L", &self.socket, "-f", "/dev/null"])
            .args(arguments)
            .current_dir(root())
            .env("LC_ALL", "C.UTF-8")
            .env_remove("NO_COLOR")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen is as it should be, and stays so: a screen may be seen half drawn.
    pub(crate) fn wait(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        let mut before = String::new();
        heapline_testkit::wait_for(what, || {
            let screen = self.screen();
            if is_there(&screen) && screen == before {
                return Some(screen);
            }
            assert!(start.elapsed() < PATIENCE, "no {what} in\n{screen}");
            before = screen;
            None
        })
    }

    /// Waits until the screen has all of this, and nothing is being computed.
    pub(crate) fn wait_for(&self, parts: &[&str]) -> String {
        self.wait(&format!("{parts:?}"), |screen| {
            !screen.contains("computing") && parts.iter().all(|part| screen.contains(part))
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux")
            .args(["-L", &self.socket, "kill-server"])
            .output();
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn top(arguments: &str) -> String {
    format!("{HEAPLINE} top {arguments}; echo left $?; stty -a; sleep 1000")
}
