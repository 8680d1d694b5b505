//! Programs that are attached to are watched in the browser and in the terminal.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::attach::Running;
use crate::run::heapline;
use crate::terminal::{HEAPLINE, Terminal, top};
use crate::toolchain::compilers;
use crate::trace::Trace;
use crate::view::sampled_blocks;

#[test]
fn the_terminal_shows_a_process_and_detaches_when_it_is_left() {
    let test = "the_terminal_shows_a_process_and_detaches_when_it_is_left";
    for compiler in compilers(test) {
        let running = Running::start(&compiler.program("steady"), &[]);
        let pid = running.pid();
        let trace = running.folder.path().join("trace.ctf");
        let rest = format!("-o {} --rate 1e-3", trace.display());
        for command in [
            top(&format!("{pid} {rest}")),
            format!("{HEAPLINE} attach {pid} --top --force {rest}; echo left $?; sleep 1000"),
        ] {
            let Some(terminal) = Terminal::start(test, (100, 24), &command) else {
                return;
            };
            terminal.wait_for(&["recording", "(now)", "iB/s over"]);
            terminal.keys(&["q"]);
            terminal.wait_for(&["left 0", "blocks sampled", "heapline summary"]);
            assert!(!heapline_recorder::tail::path(&trace).exists());
            assert!(!Trace::strict(&trace).allocations.is_empty());
        }
        let output = running.finish();
        assert!(output.status.success(), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn the_page_shows_a_process_and_stays_when_it_is_detached_from() {
    for compiler in compilers("the_page_shows_a_process_and_stays_when_it_is_detached_from") {
        let running = Running::start(&compiler.program("steady"), &[]);
        let trace = running.folder.path().join("trace.ctf");
        let mut child = heapline()
            .args(["attach", &running.pid().to_string()])
            .args(["--view", "--no-browser", "--port", "0", "-o"])
            .arg(&trace)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
        let interrupt = || kill_process(pid, Signal::INT).unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut says = |what: &str| {
            let mut lines = said.by_ref().map(Result::unwrap);
            let line = lines.find(|line| line.contains(what));
            line.unwrap_or_else(|| panic!("it does not say {what}"))
        };
        let line = says("serving on");
        let address = heapline_testkit::served_address(&line);
        let mut seen = 0;
        for _ in 0..2 {
            let before = seen;
            heapline_testkit::wait("more blocks", || {
                seen = sampled_blocks(address);
                seen > before
            });
        }
        interrupt();
        says("the page stays at");
        // All of the trace, which is complete.
        let blocks = Trace::strict(&trace).allocations.len() as u64;
        heapline_testkit::wait("all blocks", || sampled_blocks(address) == blocks);
        interrupt();
        says("blocks sampled");
        assert!(child.wait().unwrap().success());
        assert!(running.finish().status.success());
    }
}
