//! `heapline record --keep` against the full recording of the same run, and against a reader that is too slow.
//!
//! The recorder in the program writes a file that `heapline record` frees as it reads. While that is stopped, the
//! test copies what was written: all copies together are the full recording.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use heapline_profile::{Estimator, Profile, Query, Scope};

use crate::keep::{REQUESTS, SIZE, blocks, disk_usage, load, raw, wait_for_room};
use crate::killed::{recorded, send};
use crate::run::heapline;
use crate::toolchain::compilers;

/// A server that is recorded within a size.
struct Server {
    folder: tempfile::TempDir,
    recorder: Child,
    program: u32,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    total: u64,
}

impl Server {
    fn start(program: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = heapline()
            .args([
                "record", "--keep", "1MiB", "--rate", "1", "-o", "kept.ctf", "--",
            ])
            .arg(program)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server = Self {
            program: recorded(&recorder, program),
            input: recorder.stdin.take(),
            output: BufReader::new(recorder.stdout.take().unwrap()).lines(),
            folder,
            recorder,
            total: 0,
        };
        server.answer(1);
        server
    }

    /// Has requests answered, and waits for that.
    fn answer(&mut self, requests: u64) {
        writeln!(self.input.as_mut().unwrap(), "{requests}").unwrap();
        self.total += requests;
        let line = self.output.next().unwrap().unwrap();
        assert_eq!(line, self.total.to_string());
    }

    /// Waits until the program reads its input: until then it may allocate, and so write, although it has answered.
    fn wait_for_read(&self) {
        let path = format!("/proc/{}/syscall", self.program);
        // The number of the call and its first argument, the descriptor; a word if it is in none.
        let waits = |call: &str| call.split(' ').nth(1) == Some("0x0");
        heapline_testkit::wait("the program to read its input", || {
            waits(&fs::read_to_string(&path).unwrap())
        });
    }

    /// Stops `heapline record` for a while, and only that.
    fn stop_reader(&self) {
        send("-STOP", self.recorder.id());
        wait_for_state(self.recorder.id(), 'T');
    }

    fn continue_reader(&self) {
        send("-CONT", self.recorder.id());
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("kept.ctf")
    }

    fn raw(&self) -> PathBuf {
        raw(self.folder.path())
    }

    /// Has requests answered so slowly that there are no gaps.
    fn answer_slowly(&mut self) {
        for _ in 0..48 {
            self.answer(REQUESTS);
            wait_for_room(&self.raw());
        }
    }

    /// Ends the input, and waits until the program has recorded everything.
    fn end_program(&mut self) {
        self.input = None;
        wait_for_state(self.program, 'Z');
    }

    /// Waits for the end; returns what was said.
    fn finish(mut self) -> (tempfile::TempDir, String) {
        self.input = None;
        let output = self.recorder.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        (self.folder, said)
    }
}

/// Waits until a process is in a state, as `/proc` names it.
fn wait_for_state(pid: u32, state: char) {
    let status = format!("/proc/{pid}/status");
    let line = format!("State:\t{state}");
    heapline_testkit::wait(&line, || {
        fs::read_to_string(&status).unwrap().contains(&line)
    });
}

/// Appends what was written to a file since the last time to a copy of it.
fn copy_on(from: &Path, copy: &mut File) {
    let mut from = File::open(from).unwrap();
    let copied = copy.seek(SeekFrom::End(0)).unwrap();
    from.seek(SeekFrom::Start(copied)).unwrap();
    std::io::copy(&mut from, copy).unwrap();
}

/// A block: when it was allocated, promoted and freed, the number of the rest that is known of it, and sampled
/// blocks and samples.
struct Row {
    life: (u64, Option<u64>, Option<u64>),
    key: usize,
    counts: [u64; 2],
}

/// Numbers of everything that is known of blocks but their lives.
#[derive(Default)]
struct Keys(HashMap<String, usize>);

impl Keys {
    fn number(&mut self, key: String) -> usize {
        let next = self.0.len();
        *self.0.entry(key).or_insert(next)
    }

    fn rows(&mut self, profile: &Profile) -> Vec<Row> {
        let scope = Scope::new(profile, &Query::default(), Estimator::default());
        let mut rows = Vec::new();
        let mut known = HashMap::new();
        scope.for_each_block(|block| {
            let what = (block.size, block.space, block.lane, block.stack);
            let key = *known.entry(what).or_insert_with(|| {
                let symbols = profile.symbols();
                let frames = profile.stack(block.stack);
                let places = frames.iter().map(|&frame| symbols.place(frame));
                let places: Vec<String> = places.collect();
                let (size, space, lane, _) = what;
                self.number(format!("{size} {space:?} {lane} {places:?}"))
            });
            rows.push(Row {
                life: (block.allocated, block.promoted, block.collected),
                key,
                counts: [block.amount.sampled, block.samples],
            });
        });
        rows
    }

    /// The sums of rows that a condition holds for, by key.
    fn sums(&self, rows: &[Row], is_inside: impl Fn(&Row) -> bool) -> Vec<[u64; 2]> {
        let mut sums = vec![[0; 2]; self.0.len()];
        for row in rows.iter().filter(|row| is_inside(row)) {
            sums[row.key][0] += row.counts[0];
            sums[row.key][1] += row.counts[1];
        }
        sums
    }
}

#[test]
fn a_kept_recording_is_the_full_one_of_the_same_run() {
    for compiler in compilers("a_kept_recording_is_the_full_one_of_the_same_run") {
        let mut server = Server::start(&compiler.program("requests"));
        let raw = server.raw();
        let copy_path = server.folder.path().join("copy.ctf");
        let mut copy = File::create_new(&copy_path).unwrap();
        while fs::metadata(&copy_path).unwrap().len() < 20 * SIZE {
            server.stop_reader();
            server.answer(REQUESTS);
            server.wait_for_read();
            copy_on(&raw, &mut copy);
            server.continue_reader();
            wait_for_room(&raw);
        }
        server.stop_reader();
        server.end_program();
        copy_on(&raw, &mut copy);
        server.continue_reader();
        let (folder, said) = server.finish();
        let kept_path = folder.path().join("kept.ctf");
        assert!(fs::metadata(&kept_path).unwrap().len() <= SIZE / 4);

        let (full, kept) = (load(&copy_path), load(&kept_path));
        let boundaries = kept.boundaries();
        assert!(kept.gaps().is_empty(), "{said}");
        assert!(boundaries.len() > 2, "{boundaries:?}");
        let mut keys = Keys::default();
        let (full_rows, kept_rows) = (keys.rows(&full), keys.rows(&kept));
        let alive = |rows: &[Row]| {
            let alive = rows.iter().filter(|row| row.life.2.is_none());
            let mut alive: Vec<_> = alive.map(|row| (row.life, row.key, row.counts)).collect();
            alive.sort();
            alive
        };
        assert!(alive(&full_rows).len() > 100);
        assert_eq!(alive(&full_rows), alive(&kept_rows));
        // Some of them are enough.
        let some = boundaries.iter().step_by(boundaries.len() / 16 + 1);
        for &boundary in some.chain([&u64::MAX]) {
            let before = |time: u64| time < boundary;
            let conditions: [&dyn Fn(&Row) -> bool; 3] = [
                &|row| before(row.life.0),
                &|row| row.life.1.is_some_and(before),
                &|row| row.life.2.is_some_and(before),
            ];
            for (what, condition) in ["allocated", "promoted", "freed"].iter().zip(conditions) {
                let full = keys.sums(&full_rows, condition);
                let kept = keys.sums(&kept_rows, condition);
                assert_eq!(full, kept, "{what} before {boundary}");
            }
        }
    }
}

/// The program is answering while nobody reads: if it waited for the reader, it would wait for ever.
#[test]
fn a_program_does_not_wait_for_the_reader() {
    for compiler in compilers("a_program_does_not_wait_for_the_reader") {
        let mut server = Server::start(&compiler.program("requests"));
        server.answer(1000);
        server.stop_reader();
        // Several times as much as there is room for.
        for _ in 0..20 {
            server.answer(20_000);
        }
        assert!(disk_usage(server.folder.path()) <= SIZE);
        let stopped_at = fs::metadata(server.raw()).unwrap().len();
        server.continue_reader();
        // It goes on when there is room again.
        while fs::metadata(server.raw()).unwrap().len() < stopped_at + SIZE {
            server.answer(2_000);
        }
        let (folder, said) = server.finish();
        assert!(
            said.contains("kept.ctf has gaps: new blocks were not recorded for"),
            "{said}"
        );
        assert!(!said.contains("incomplete"), "{said}");
        let kept = folder.path().join("kept.ctf");
        let profile = load(&kept);
        assert!(!profile.gaps().is_empty());
        for report in ["info", "summary", "stats"] {
            let output = heapline().arg(report).arg(&kept).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(text.contains("new blocks were not recorded"), "{text}");
        }
    }
}

#[test]
fn a_kept_recording_survives_that_processes_are_killed() {
    for compiler in compilers("a_kept_recording_survives_that_processes_are_killed") {
        let program = compiler.program("requests");
        for signal in ["-TERM", "-KILL"] {
            // The program: as in a full recording, but a moment.
            let mut server = Server::start(&program);
            server.answer_slowly();
            send(signal, server.program);
            server.output.by_ref().for_each(drop);
            let (trace, total) = (server.trace(), server.total);
            let output = server.recorder.wait_with_output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(
                output.status.code(),
                Some(if signal == "-TERM" { 143 } else { 137 })
            );
            assert!(!said.contains("gaps"), "{said}");
            let kept = load(&trace);
            assert_eq!(blocks(&kept, 33)[0], total, "{said}");
            let files = fs::read_dir(server.folder.path()).unwrap();
            assert_eq!(files.count(), 1);
        }
        // `heapline record` gives the signal to the program, and finishes the trace.
        let mut server = Server::start(&program);
        server.answer_slowly();
        send("-TERM", server.recorder.id());
        server.output.by_ref().for_each(drop);
        let (trace, total) = (server.trace(), server.total);
        assert_eq!(server.recorder.wait().unwrap().code(), Some(143));
        assert_eq!(blocks(&load(&trace), 33)[0], total);

        // If it is killed itself, the trace is that of some moment before, and the program goes on.
        let mut server = Server::start(&program);
        while !server.trace().exists() {
            server.answer_slowly();
        }
        send("-KILL", server.recorder.id());
        server.recorder.wait().unwrap();
        let kept = load(&server.trace());
        assert!((1..=server.total).contains(&blocks(&kept, 33)[0]));
        for _ in 0..20 {
            server.answer(20_000);
        }
        assert!(disk_usage(server.folder.path()) <= SIZE);
        server.input = None;
        server.output.for_each(drop);
        let later = load(&server.folder.path().join("kept.ctf"));
        assert_eq!(blocks(&later, 33), blocks(&kept, 33));
    }
}
