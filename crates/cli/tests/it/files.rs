//! Files, pipes and standard input as arguments of the binary.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name)
}

fn heapline() -> Command {
    Command::new(env!("CARGO_BIN_EXE_heapline"))
}

fn run(arguments: &[&str]) -> Output {
    heapline().args(arguments).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn nothing_is_overwritten_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.ctf");
    std::fs::write(&out, "precious").unwrap();
    let trace = fixture("mix-ocaml53/trace.ctf");
    for command in ["cut", "dump"] {
        let output = run(&[command, text(&trace), "-o", text(&out)]);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            stderr(&output).contains("already exists; use --force to overwrite it"),
            "{}",
            stderr(&output)
        );
        assert_eq!(std::fs::read(&out).unwrap(), b"precious");
    }
    let output = run(&["cut", text(&trace), "-o", text(&out), "--force"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(std::fs::metadata(&out).unwrap().len() > 50_000);
}

#[test]
fn nothing_is_left_behind_when_a_trace_cannot_be_cut() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.ctf");
    let trace = fixture("damaged/garbage.ctf");
    let output = run(&["cut", text(&trace), "-o", text(&out), "--strict"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
#[cfg(unix)]
fn devices_can_be_written_to_and_stay_devices() {
    let output = run(&[
        "dump",
        text(&fixture("mix-ocaml53/trace.ctf")),
        "-o",
        "/dev/null",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
#[cfg(unix)]
fn links_are_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let (target, link) = (folder.path().join("target"), folder.path().join("link"));
    std::fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let trace = fixture("odd/peakend.ctf");
    assert!(
        run(&["cut", text(&trace), "-o", text(&link), "--force"])
            .status
            .success()
    );
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_ne!(std::fs::read(&target).unwrap(), b"old");
}

#[test]
fn standard_input_is_read_compressed_or_not() {
    let plain = std::fs::read(fixture("mix-ocaml53/trace.ctf")).unwrap();
    let gzipped = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&plain).unwrap();
        encoder.finish().unwrap()
    };
    let zstandard = zstd::encode_all(&plain[..], 1).unwrap();
    let expected = run(&["dump", text(&fixture("mix-ocaml53/trace.ctf"))]).stdout;
    for input in [plain, gzipped, zstandard] {
        let mut child = heapline()
            .args(["dump", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&input).unwrap());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.stdout == expected);
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    for command in [
        &["dump"][..],
        &["dump", "--format", "jsonl"],
        &["info"],
        &["info", "--json"],
    ] {
        let mut child = heapline()
            .args(command)
            .arg(fixture("generated/domains.ctf"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 10];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", output.status);
        assert_eq!(stderr(&output), "", "{command:?}");
    }
}

#[test]
fn colours_only_where_they_are_wanted() {
    let trace = fixture("mix-ocaml53/trace.ctf");
    let has_colour = |variables: &[(&str, &str)]| {
        let mut command = heapline();
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        let output = command
            .arg("info")
            .arg(&trace)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        output.stdout.contains(&0x1b)
    };
    assert!(!has_colour(&[]), "into a pipe");
    assert!(has_colour(&[("CLICOLOR_FORCE", "1")]));
    assert!(!has_colour(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

#[test]
fn a_cut_off_trace_is_dumped_as_memtrace_does_it() {
    // memtrace skips the packet that the file ends in; the other formats keep what is intact.
    let trace = fixture("damaged/truncated.ctf");
    let lines = |format: &str| {
        let output = run(&["dump", text(&trace), "--format", format]);
        assert!(
            stderr(&output).contains("the file ends inside a packet"),
            "{}",
            stderr(&output)
        );
        String::from_utf8_lossy(&output.stdout).lines().count()
    };
    assert_eq!(lines("memtrace"), 0);
    assert!(lines("csv") > 3000);
}

#[test]
fn json_is_one_document_that_says_what_it_is_about() {
    let trace = fixture("damaged/overwritten.ctf");
    let output = run(&["info", text(&trace), "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["file"], text(&trace));
    let size = std::fs::metadata(&trace).unwrap().len();
    assert_eq!(json["file_size"], size);
    assert_eq!(json["trace_bytes"], size);
    assert_eq!(json["trace"]["executable_name"], "/usr/bin/generated");
    assert_eq!(json["damage"]["flaws"][0]["kind"], "bad-packet");
    assert!(json["bytes"]["allocated"]["error"].as_f64().unwrap() > 0.0);
}

#[test]
#[cfg(unix)]
fn overwriting_keeps_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("private.ctf");
    std::fs::write(&out, "old").unwrap();
    std::fs::set_permissions(&out, std::fs::Permissions::from_mode(0o600)).unwrap();
    let trace = fixture("odd/peakend.ctf");
    assert!(
        run(&["cut", text(&trace), "-o", text(&out), "--force"])
            .status
            .success()
    );
    let mode = std::fs::metadata(&out).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Others may read it, as far as the umask allows.
#[test]
#[cfg(unix)]
fn a_new_file_has_the_usual_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (plain, out) = (folder.path().join("plain"), folder.path().join("out.ctf"));
    std::fs::write(&plain, "").unwrap();
    let trace = fixture("odd/peakend.ctf");
    assert!(
        run(&["cut", text(&trace), "-o", text(&out)])
            .status
            .success()
    );
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&out), mode(&plain));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_cut_can_go_into_a_pipe() {
    let trace = fixture("mix-ocaml53/trace.ctf");
    let output = run(&["cut", text(&trace), "-o", "-"]);
    assert!(
        stderr(&output).starts_with("standard output: kept 2,787 of 2,787"),
        "{}",
        stderr(&output)
    );
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.ctf");
    std::fs::write(&out, &output.stdout).unwrap();
    let dump = |path: &Path| run(&["dump", text(path), "--format", "alloc-stats"]).stdout;
    assert!(dump(&out) == dump(&trace));
}

/// The whole dump of a trace that never ends is never complete.
#[test]
#[cfg(unix)]
fn nothing_is_left_behind_when_the_user_stops_it() {
    for signal in ["INT", "TERM", "HUP"] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out.csv");
        let mut child = heapline()
            .args(["dump", "-", "--format", "csv", "-o", text(&out)])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin
            .write_all(&std::fs::read(fixture("odd/peakend.ctf")).unwrap())
            .unwrap();
        let files = || std::fs::read_dir(folder.path()).unwrap().count();
        heapline_testkit::wait("the output file", || files() > 0);
        let kill = format!("kill -{signal} {}", child.id());
        assert!(
            Command::new("sh")
                .args(["-c", &kill])
                .status()
                .unwrap()
                .success()
        );
        let status = child.wait().unwrap();
        assert!(!status.success(), "SIG{signal}: {status}");
        assert_eq!(files(), 0, "SIG{signal}");
    }
}

#[test]
fn a_key_decides_the_pseudonyms() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "secret\n").unwrap();
    let trace = fixture("mix-ocaml53/trace.ctf");
    let cut = |options: &[&str]| {
        let output = run(&[&["cut", text(&trace), "-o", "-", "--hash-names"], options].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        output.stdout
    };
    assert!(cut(&[]) != cut(&["--hash-key", text(&key)]));
    assert!(cut(&["--hash-key", text(&key)]) == cut(&["--hash-key", text(&key)]));
}

#[test]
fn every_command_has_a_manual_page_and_completions() {
    let stdout = |arguments: &[&str]| {
        let output = run(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let help = stdout(&["--help"]);
    let commands: Vec<&str> = help
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|word| word.starts_with(char::is_alphabetic))
        .filter(|word| !["heapline", "help", "man"].contains(word))
        .collect();
    assert!(commands.contains(&"info"), "{commands:?}");
    for command in &commands {
        assert!(
            stdout(&["man", command]).contains(&format!("heapline\\-{command}")),
            "{command}"
        );
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&["completions", shell]);
        assert!(script.contains("HEAPLINE_COMPLETE"), "{shell}");
    }
}

#[test]
fn the_demo_shows_its_trace_and_hands_it_out() {
    let shown = run(&["demo", "--text"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("heapline hotspots demo"), "{shown}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.ctf");
    std::fs::write(&file, run(&["demo", "--trace"]).stdout).unwrap();
    // All commands take it by its name.
    for command in ["hotspots", "leaks", "tree", "info"] {
        let [built_in, written] = ["demo", text(&file)].map(|trace| {
            let output = run(&[command, trace, "--json"]);
            assert!(output.status.success(), "{}", stderr(&output));
            let mut json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let fields = json.as_object_mut().unwrap();
            fields.remove("file");
            fields.remove("file_size");
            json
        });
        assert_eq!(built_in, written, "{command}");
    }
    let leaks = String::from_utf8(run(&["leaks", "demo"]).stdout).unwrap();
    assert!(leaks.contains("Shop.Sessions."), "{leaks}");
}

/// How many sampled blocks of a trace a query selects.
fn sampled_blocks(trace: &Path, query: &str) -> u64 {
    let output = run(&["hotspots", text(trace), "--where", query, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    json["subject"]["sampled_blocks"].as_u64().unwrap()
}

#[test]
fn traces_are_cut_at_the_times_that_queries_know() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.ctf");
    let kept = |trace: &Path, options: &[&str]| {
        let cut = ["cut", text(trace), "-o", text(&out), "--force"];
        let output = run(&[&cut[..], options].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        sampled_blocks(&out, "size >= 0")
    };
    for trace in [
        "mix-ocaml53/trace.ctf",
        "mix-ocaml413/trace.ctf",
        "generated/domains.ctf",
    ] {
        let trace = fixture(trace);
        for (options, query) in [
            (&["--from", "50%"][..], "allocated in 50%.."),
            (&["--from", "25%", "--to", "75%"], "allocated in 25%..75%"),
            (&["--from", "start", "--to", "end"], "size >= 0"),
            (&["--from", "10ms", "--to", "90%"], "allocated in 10ms..90%"),
        ] {
            let expected = sampled_blocks(&trace, query);
            assert!(expected > 0, "{query}");
            assert_eq!(kept(&trace, options), expected, "{query}");
        }
        // Cuts are to the microsecond, the peak is to the event.
        let (before, after) = (
            kept(&trace, &["--to", "peak"]),
            kept(&trace, &["--from", "peak"]),
        );
        assert_eq!(before + after, sampled_blocks(&trace, "size >= 0"));
        let expected = sampled_blocks(&trace, "allocated in ..peak");
        assert!(before.abs_diff(expected) <= 3, "{before}, not {expected}");
    }
}

#[test]
fn a_pipe_is_cut_as_a_file_is() {
    let path = fixture("mix-ocaml53/trace.ctf");
    let trace = std::fs::read(&path).unwrap();
    for time in ["peak", "50%", "10ms", "end"] {
        let cut = |input: &str| {
            let mut child = heapline()
                .args(["cut", input, "-o", "-", "--to", time])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // Who reads the file does not read this.
            let _ = child.stdin.take().unwrap().write_all(&trace);
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{time}: {}", stderr(&output));
            output.stdout
        };
        assert!(cut("-") == cut(path.to_str().unwrap()), "{time}");
    }
}
