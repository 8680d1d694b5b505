//! `heapline record --keep`: a run that would write 20 times as much.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use heapline_formats::{Options, Reader};
use heapline_profile::{Estimator, Profile, Query, Scope, StoreOptions};

use crate::run::heapline;
use crate::toolchain::compilers;

/// The size to keep, in bytes.
pub(crate) const SIZE: u64 = 1 << 20;

/// Requests that a line of input asks for. New blocks are refused when the file takes 3/16 of [`SIZE`]: what is
/// left in it (see [`wait_for_room`]), a packet of 32 KiB that is not written yet, and these requests with some
/// 17 bytes each are well below that, whatever the machine does meanwhile.
pub(crate) const REQUESTS: u64 = 1_000;

pub(crate) fn load(trace: &Path) -> Profile {
    let mut reader = Reader::open(trace, Options::default()).unwrap();
    let profile = Profile::load(&mut reader, StoreOptions::default()).unwrap();
    assert!(profile.damage().is_empty(), "{:?}", profile.damage());
    profile
}

/// The sampled blocks of some words, and those of them that are alive at the end.
pub(crate) fn blocks(profile: &Profile, words: u64) -> [u64; 2] {
    let mut found = [0; 2];
    let scope = Scope::new(profile, &Query::default(), Estimator::default());
    scope.for_each_block(|block| {
        if block.size == words * 8 {
            found[0] += block.amount.sampled;
            if block.collected.is_none() {
                found[1] += block.amount.sampled;
                assert_eq!(block.amount.sampled, 1, "what is alive is not merged");
                assert_eq!(block.samples, words + 1);
            }
        }
    });
    found
}

/// Bytes that the files of a folder take on disk.
pub(crate) fn disk_usage(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap();
    // Files come and go.
    let data = entries.filter_map(|entry| entry.unwrap().metadata().ok());
    data.map(|data| data.blocks() * 512).sum()
}

/// The file that the program writes.
pub(crate) fn raw(folder: &Path) -> PathBuf {
    let mut entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let raw = entries.find(|entry| entry.file_name().to_string_lossy().ends_with(".raw"));
    raw.unwrap().path()
}

/// Waits until the reader has freed what it has read, so that there is room for [`REQUESTS`].
pub(crate) fn wait_for_room(raw: &Path) {
    heapline_testkit::wait("the reader to free what it has read", || {
        fs::metadata(raw).unwrap().blocks() * 512 <= SIZE / 12
    });
}

#[test]
fn a_long_recording_stays_within_its_size() {
    for compiler in compilers("a_long_recording_stays_within_its_size") {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("kept.ctf");
        let mut child = heapline()
            .args(["record", "--keep", "1MiB", "--rate", "1", "-o"])
            .arg(&trace)
            .arg("--")
            .arg(compiler.program("requests"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut total = 0;
        let mut most = 0;
        while total == 0 || fs::metadata(raw(folder.path())).unwrap().len() < 20 * SIZE {
            writeln!(input, "{REQUESTS}").unwrap();
            total += REQUESTS;
            let line = output.next().unwrap().unwrap();
            assert_eq!(line, total.to_string(), "the output is the program's");
            most = most.max(disk_usage(folder.path()));
            wait_for_room(&raw(folder.path()));
            if trace.exists() && total % (64 * REQUESTS) == 0 {
                // A reader sees a whole trace at any time.
                let [seen, _] = blocks(&load(&trace), 33);
                assert!(seen <= total);
            }
        }
        drop(input);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert!(!said.contains("gaps"), "{said}");
        assert!(most <= SIZE, "{most}");
        let files: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(files.len(), 1, "{files:?}");
        assert!(fs::metadata(&trace).unwrap().len() <= SIZE / 4);

        // The truth is known: every block is recorded.
        let profile = load(&trace);
        assert!(!profile.boundaries().is_empty());
        assert_eq!(blocks(&profile, 77), [total / 1000; 2]);
        assert_eq!(blocks(&profile, 33)[0], total);
        assert!(blocks(&profile, 33)[1] <= 1, "garbage is collected");

        let info = heapline().arg("info").arg(&trace).output().unwrap();
        let info = String::from_utf8(info.stdout).unwrap();
        assert!(info.contains("are summed up in"), "{info}");
    }
}

#[test]
fn a_short_run_is_kept_whole() {
    for compiler in compilers("a_short_run_is_kept_whole") {
        let folder = tempfile::tempdir().unwrap();
        let output = heapline()
            .args(["record", "--keep", "4MiB", "--rate", "1", "-o", "kept.ctf"])
            .arg("--")
            .arg(compiler.program("requests"))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert!(said.contains("next: heapline summary kept.ctf"), "{said}");
        let profile = load(&folder.path().join("kept.ctf"));
        assert!(profile.boundaries().is_empty());
        assert_eq!(blocks(&profile, 33), [0; 2]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn sizes_that_are_too_small_are_refused() {
    for compiler in compilers("sizes_that_are_too_small_are_refused") {
        let folder = tempfile::tempdir().unwrap();
        let output = heapline()
            .args(["record", "--keep", "100KiB", "--"])
            .arg(compiler.program("requests"))
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("--keep must be at least 1MiB"), "{said}");
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
