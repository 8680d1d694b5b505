//! `heapline top` in a real terminal: tmux.
#![cfg(unix)]

use std::fs;
use std::process::Command;

use heapline_profile::Estimate;
use heapline_text::units::estimated_bytes;
use serde_json::Value;

#[cfg(recording)]
#[path = "common/recording.rs"]
mod recorded;
#[path = "common/terminal.rs"]
mod terminal;

use terminal::{HEAPLINE, Terminal, root, top};

const MIX: &str = "fixtures/mix-ocaml53/trace.ctf";
const SPACETIME: &str = "fixtures/spacetime/mix/spacetime.profile.zst";

fn resize(terminal: &Terminal, width: u16, height: u16) {
    let (width, height) = (width.to_string(), height.to_string());
    terminal.tmux(&["resize-window", "-x", &width, "-y", &height]);
}

/// The process that the shell of a terminal runs.
fn child(terminal: &Terminal) -> String {
    let shell = terminal.tmux(&["list-panes", "-F", "#{pane_pid}"]);
    let shell = shell.trim();
    let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
    children.unwrap().trim().to_owned()
}

fn json(arguments: &[&str]) -> Value {
    let output = Command::new(HEAPLINE)
        .args(arguments)
        .arg("--json")
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// An amount of a report as the screen shows it.
fn bytes(figures: &Value) -> String {
    let number = |name: &str| figures["bytes"][name].as_f64().unwrap();
    estimated_bytes(Estimate {
        value: number("value"),
        error: number("error"),
        low: number("low"),
        high: number("high"),
    })
}

fn assert_row(screen: &str, figure: &str, name: &str) {
    let is_it = |row: &&str| row.contains(name) && row.trim_start().starts_with(figure);
    let found = screen.lines().find(is_it);
    assert!(found.is_some(), "no {figure} of {name} in\n{screen}");
}

#[test]
fn figures_are_those_of_the_commands() {
    let Some(terminal) = Terminal::start("top", (80, 24), &top(MIX)) else {
        return;
    };
    let screen = terminal.wait_for(&["Mix.big", "allocated 36.52 ± 0.78 MiB"]);
    let report = json(&["hotspots", MIX, "--live", "end"]);
    let total = bytes(&report["total"]["allocated"]);
    assert!(screen.contains(&format!("live {total} at")), "{screen}");
    for row in report["rows"].as_array().unwrap() {
        let name = row["label"]["name"].as_str().unwrap();
        assert_row(&screen, &bytes(&row["allocated"]), name);
    }
    terminal.keys(&["p", "t"]);
    let screen = terminal.wait_for(&["(the peak)", "(allocations first)", "Stdlib.Map.Make.bal"]);
    let report = json(&["tree", MIX, "--bottom-up", "--live", "peak"]);
    let roots = report["nodes"].as_array().unwrap().iter();
    for node in roots.filter(|node| node["parent"].is_null()) {
        let name = node["label"]["name"].as_str().unwrap();
        assert_row(&screen, &bytes(&node["total"]), name);
    }
    terminal.keys(&["1", "/", "size >= 64KiB", "Enter"]);
    let screen = terminal.wait_for(&["where size >= 64KiB", "function", "Mix.big"]);
    let report = json(&[
        "hotspots",
        MIX,
        "--live",
        "peak",
        "--where",
        "size >= 64KiB",
    ]);
    assert_row(&screen, &bytes(&report["rows"][0]["allocated"]), "Mix.big");
    assert!(!screen.contains("Mix.cached"));
    terminal.keys(&["q"]);
    let screen = terminal.wait_for(&["left 0"]);
    assert!(!screen.contains("Mix.big"), "{screen}");
}

#[test]
fn a_spacetime_profile_is_walked_through() {
    let Some(terminal) = Terminal::start("snapshots", (80, 24), &top(SPACETIME)) else {
        return;
    };
    terminal.wait_for(&["(snapshot 21/21)"]);
    terminal.keys(&["Left"]);
    let screen = terminal.wait_for(&["(snapshot 20/21)", "mix.ml:7"]);
    let info = json(&["info", SPACETIME]);
    let time = info["snapshots"][19]["time_us"].as_u64().unwrap();
    let report = json(&["hotspots", SPACETIME, "--live", &format!("{time}us")]);
    for row in report["rows"].as_array().unwrap().iter().take(10) {
        let name = row["label"]["name"].as_str().unwrap();
        assert_row(&screen, &bytes(&row["allocated"]), name);
    }
}

#[test]
fn the_screen_follows_the_size_of_the_terminal() {
    let Some(terminal) = Terminal::start("resize", (80, 24), &top(MIX)) else {
        return;
    };
    let screen = terminal.wait_for(&["Mix.big", "allocated "]);
    assert!(!screen.contains("with callees"));
    resize(&terminal, 150, 40);
    let screen = terminal.wait_for(&["over time", "with callees", "allocated "]);
    assert_eq!(screen.lines().count(), 40);
    resize(&terminal, 40, 10);
    let screen = terminal.wait("small screen", |screen| {
        screen.lines().count() == 10 && screen.contains("Mix.big") && screen.contains("by function")
    });
    assert!(screen.contains("2.29 MiB") && !screen.contains("┤"));
    resize(&terminal, 20, 3);
    resize(&terminal, 80, 24);
    terminal.wait_for(&["Mix.big", "┤"]);
}

#[test]
fn without_colours_there_are_none() {
    let is_colour = |screen: &str| {
        let codes = screen.split('\u{1b}').skip(1);
        let codes = codes.filter_map(|code| code.strip_prefix('[')?.split('m').next());
        let mut parts = codes.flat_map(|code| code.split(';'));
        parts.any(|part| {
            let number = part.parse().unwrap_or(0);
            matches!(number, 30..=38 | 40..=48 | 90..=107)
        })
    };
    for (variables, expected) in [
        ("TERM=screen-256color", true),
        ("NO_COLOR=1", false),
        ("TERM=dumb", false),
        ("TERM=vt100", false),
    ] {
        let command = format!("env {variables} {}", top(MIX));
        let Some(terminal) = Terminal::start("colours", (80, 24), &command) else {
            return;
        };
        terminal.wait_for(&["Mix.big"]);
        let screen = terminal.tmux(&["capture-pane", "-p", "-e"]);
        assert_eq!(is_colour(&screen), expected, "{variables}");
    }
    let command = format!("env LC_ALL=C {}", top(MIX));
    if let Some(terminal) = Terminal::start("ASCII", (80, 24), &command) {
        let screen = terminal.wait_for(&["Mix.big", "1.26 +- 0.17 MiB"]);
        assert!(screen.is_ascii(), "{screen}");
    }
}

#[test]
fn the_terminal_is_restored() {
    for way in ["q", "C-c", "TERM", "HUP"] {
        let Some(terminal) = Terminal::start("restored", (80, 40), &top(MIX)) else {
            return;
        };
        terminal.wait_for(&["Mix.big"]);
        let code = match way {
            "TERM" | "HUP" => {
                let kill = format!("kill -{way} {}", child(&terminal));
                let status = Command::new("sh").args(["-c", &kill]).status().unwrap();
                assert!(status.success());
                if way == "TERM" { "143" } else { "129" }
            }
            key => {
                terminal.keys(&[key]);
                "0"
            }
        };
        let screen = terminal.wait_for(&[&format!("left {code}"), "icanon"]);
        assert!(!screen.contains("Mix.big"), "{screen}");
        assert!(
            !screen.contains("-icanon") && !screen.contains("-echo "),
            "{screen}"
        );
    }
}

/// Reading from a terminal that is gone would go on forever.
#[test]
fn it_ends_with_its_terminal() {
    let Some(terminal) = Terminal::start("hangup", (80, 24), &top(MIX)) else {
        return;
    };
    terminal.wait_for(&["Mix.big"]);
    let child = child(&terminal);
    drop(terminal);
    let status = format!("/proc/{child}/stat");
    heapline_testkit::wait("the end of the process", || {
        fs::read_to_string(&status).map_or(true, |status| status.contains(") Z "))
    });
}

#[test]
fn it_is_suspended_and_continued() {
    let Some(terminal) = Terminal::start("suspended", (80, 40), "sh -i") else {
        return;
    };
    terminal.keys(&[&format!("{HEAPLINE} top {MIX}"), "Enter"]);
    terminal.wait_for(&["Mix.big", "(the end)"]);
    terminal.keys(&["p", "C-z"]);
    terminal.wait("shell", |screen| !screen.contains("Mix.big"));
    terminal.keys(&["stty -a", "Enter"]);
    let screen = terminal.wait_for(&["icanon"]);
    assert!(!screen.contains("-icanon"), "{screen}");
    terminal.keys(&["fg", "Enter"]);
    terminal.wait_for(&["Mix.big", "(the peak)"]);
    terminal.keys(&["q"]);
    terminal.wait("shell", |screen| !screen.contains("Mix.big"));
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    for arguments in [&["top", MIX][..], &["top", "--", "true"]] {
        let output = Command::new(HEAPLINE)
            .args(arguments)
            .current_dir(root())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("heapline summary --follow"), "{said}");
    }
}

#[test]
fn without_a_subject_it_says_what_can_be_given() {
    let output = Command::new(HEAPLINE).arg("top").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("give a trace, a process or a program"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_shown_is_refused_before_the_screen_is_drawn() {
    for (arguments, reason) in [
        ("no-such-file.ctf", "cannot open no-such-file.ctf"),
        ("fixtures", "is a directory"),
        ("README.md", "README.md: "),
        ("4194999", "neither a file nor a process 4194999"),
        ("1", "process 1"),
        ("--where 'siz > 1'", "unknown field"),
    ] {
        let Some(terminal) = Terminal::start("refusals", (200, 40), &top(arguments)) else {
            return;
        };
        terminal.wait_for(&["left 2", reason]);
    }
}

#[cfg(recording)]
mod recording {
    use std::path::{Path, PathBuf};

    use super::recorded::{allocate, record};
    use super::*;

    /// The program is this test itself, found by its trace and by its number.
    #[test]
    fn a_running_program_is_watched() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.ctf");
        let recorder = record(&trace, 1e-3);
        allocate(recorder, 1000);
        let options = "--interval 0.1";
        let by_trace = top(&format!("{} {options}", trace.display()));
        let by_number = top(&format!("{} {options}", std::process::id()));
        let Some(terminal) = Terminal::start("live", (120, 24), &by_trace) else {
            return;
        };
        let by_number = Terminal::start("live", (120, 24), &by_number).unwrap();
        for terminal in [&terminal, &by_number] {
            let screen = terminal.wait_for(&["recording", "1,000 sampled blocks", "Live.allocate"]);
            assert!(
                screen.contains("(now)") && screen.contains("growth"),
                "{screen}"
            );
        }
        terminal.keys(&["Space"]);
        terminal.wait_for(&["FROZEN"]);
        allocate(recorder, 234);
        let screen = by_number.wait_for(&["1,234 sampled blocks"]);
        let report = json(&["hotspots", trace.to_str().unwrap(), "--live", "end"]);
        let live = bytes(&report["rows"][0]["allocated"]);
        assert_row(&screen, &live, "Live.allocate");
        terminal.wait_for(&["FROZEN", "1,000 sampled blocks"]);
        terminal.keys(&["Space"]);
        terminal.wait_for(&["recording", "1,234 sampled blocks"]);
        recorder.stop();
        terminal.wait_for(&["ended"]);
    }

    /// A program that leaks, prints, and ends by itself or not.
    const PROGRAM: &str = r#"
let leak = ref []
let allocate () = leak := Bytes.create 10_000 :: !leak
let () =
  print_endline "hello";
  for _ = 1 to 2_000 do allocate () done;
  if Array.length Sys.argv > 1 then Unix.sleep 1000
"#;

    #[test]
    fn a_program_is_started_and_watched() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("leaky.ml"), PROGRAM).unwrap();
        let compile = "ocamlfind ocamlopt -g -package unix -linkpkg leaky.ml -o leaky";
        let compiled = Command::new("sh")
            .args(["-c", compile])
            .current_dir(folder.path())
            .output()
            .unwrap();
        if !compiled.status.success() {
            heapline_testkit::missing("a_program_is_started_and_watched: there is no OCaml");
            return;
        }
        let start = |arguments: &str| {
            let folder = folder.path().display();
            format!(
                "cd {folder}; {}",
                top(&format!("--rate 1e-3 -- ./leaky {arguments}"))
            )
        };
        let Some(terminal) = Terminal::start("program", (100, 24), &start("")) else {
            return;
        };
        terminal.wait_for(&["ended", "Leaky.allocate"]);
        terminal.keys(&["q"]);
        terminal.wait_for(&[
            "left 0",
            ".out: the output of the program",
            "next: heapline summary",
        ]);
        let files = || -> Vec<PathBuf> {
            let entries = fs::read_dir(folder.path()).unwrap();
            entries.map(|entry| entry.unwrap().path()).collect()
        };
        let is_output = |path: &&PathBuf| path.extension().is_some_and(|end| end == "out");
        let output = files().iter().find(is_output).cloned().unwrap();
        assert_eq!(fs::read_to_string(output).unwrap(), "hello\n");

        // One that still runs when the screen is left: it is ended, or goes on.
        let ended = Terminal::start("program", (100, 24), &start("wait")).unwrap();
        ended.wait_for(&["recording", "Leaky.allocate"]);
        ended.keys(&["q"]);
        ended.wait_for(&["The program still runs."]);
        ended.keys(&["k"]);
        ended.wait_for(&["left 0", "next: heapline summary"]);

        // As when the window is closed.
        let before = files();
        let lost = Terminal::start("program", (100, 24), &start("wait")).unwrap();
        lost.wait_for(&["recording", "Leaky.allocate"]);
        let is_trace = |path: &&PathBuf| path.extension().is_some_and(|end| end == "ctf");
        let mut new = files();
        new.retain(|path| !before.contains(path));
        let trace = new.iter().find(is_trace).unwrap();
        let pid = trace.file_stem().unwrap().to_str().unwrap();
        let pid = pid.rsplit('.').next().unwrap().to_owned();
        drop(lost);
        let process = Path::new("/proc").join(pid);
        heapline_testkit::wait("end of the program", || !process.exists());
        let is_tail = |path: &PathBuf| path.display().to_string().contains("tail");
        heapline_testkit::wait("end of the recording", || !files().iter().any(is_tail));
        json(&["info", "--strict", trace.to_str().unwrap()]);

        let running = Terminal::start("program", (100, 24), &start("wait")).unwrap();
        running.wait_for(&["recording", "Leaky.allocate"]);
        running.keys(&["q", "l"]);
        let screen = running.wait_for(&["left 0", "runs on"]);
        let words = screen.split_once("process ").unwrap().1;
        let pid = words.split(' ').next().unwrap();
        let again = Terminal::start("program", (100, 24), &top(pid)).unwrap();
        again.wait_for(&["recording", "Leaky.allocate"]);
        let status = Command::new("sh")
            .args(["-c", &format!("kill {pid}")])
            .status();
        assert!(status.unwrap().success());
        again.wait_for(&["ended"]);
    }
}
