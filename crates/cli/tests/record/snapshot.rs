//! Heap snapshots of running programs are exact, and do not disturb them.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use heapline_heap::reports::{RetainedOptions, retained};
use heapline_heap::{Field, Graph, Heap, NodeId, Virtual};

use crate::attach::{Running, assert_undisturbed, said};
use crate::killed::{recorded, send};
use crate::run::heapline;
use crate::toolchain::{Compiler, compilers, with_domains};

/// How often snapshots are taken; set it to 500 for a long test.
const TIMES: &str = "HEAPLINE_SNAPSHOT_TIMES";

/// Words that a program may have more or less than it said: what it works with at that moment.
const WORKING: u64 = 4000;

/// Takes a snapshot of a program.
fn snapshot(running: &Running, options: &[&str]) -> (Output, PathBuf) {
    let file = running.folder.path().join("snapshot.heap");
    let output = heapline()
        .args(["snapshot", &running.pid().to_string(), "--force", "-o"])
        .arg(&file)
        .args(options)
        .output()
        .unwrap();
    (output, file)
}

fn take(running: &Running, options: &[&str]) -> Graph {
    let (output, file) = snapshot(running, options);
    assert!(output.status.success(), "{}", said(&output));
    read(&file)
}

pub(crate) fn read(file: &Path) -> Graph {
    Graph::read(BufReader::new(File::open(file).unwrap())).unwrap()
}

/// Starts the program that says what it reaches, and waits until it has said so.
fn start(program: &Path, cells: u32) -> Running {
    start_with(program, &[&cells.to_string()])
}

fn start_with(program: &Path, arguments: &[&str]) -> Running {
    let running = Running::start(program, arguments);
    heapline_testkit::wait("the program to say what it reaches", || {
        assert!(Path::new(&format!("/proc/{}", running.pid())).exists());
        running.folder.path().join("stop.ready").exists()
    });
    running
}

/// The values of toplevel definitions, by their place in the source.
fn definitions(graph: &Graph) -> HashMap<String, NodeId> {
    let nodes = graph.virtual_nodes().filter_map(|(node, kind)| {
        let Virtual::Definition { module, field } = kind else {
            return None;
        };
        let (_, place) = graph.definition(*module, *field);
        let place = place?.rsplit('/').next()?.to_owned();
        let (_, value) = graph.edges(node).next()?;
        Some((place, value))
    });
    nodes.collect()
}

/// Words of a block and those that are folded into it, with their headers.
fn words_of(graph: &Graph, node: NodeId) -> u64 {
    let folded = graph.folded(node);
    graph.words(node) + 1 + folded.words + folded.cells + folded.others
}

/// Words that a block reaches, as `Obj.reachable_words` counts them: in OCaml 5 with static data.
fn reachable_words(graph: &Graph, from: NodeId, with_static: bool) -> u64 {
    let mut seen = vec![false; graph.blocks() as usize];
    let mut pending = vec![from];
    let mut words = 0;
    while let Some(node) = pending.pop() {
        let Some(seen) = seen.get_mut(node as usize) else {
            continue;
        };
        if std::mem::replace(seen, true) || !with_static && graph.is_static(node) {
            continue;
        }
        words += words_of(graph, node);
        let edges = graph.edges(node);
        pending.extend(
            edges.filter_map(|(field, target)| matches!(field, Field::Number(_)).then_some(target)),
        );
    }
    words
}

#[test]
fn snapshots_have_what_the_program_reaches() {
    for compiler in compilers("snapshots_have_what_the_program_reaches") {
        let running = start(&compiler.program("heap"), 100_000);
        check_words(running, compiler, &[]);
    }
}

#[test]
fn definitions_of_packed_modules_hold_what_they_reach() {
    for compiler in compilers("definitions_of_packed_modules_hold_what_they_reach") {
        let plain = compiler.program_with("heap", "heap_packed", &["-for-pack", "All"]);
        let folder = plain.parent().unwrap();
        let program = folder.join("packed.exe");
        let run = |arguments: &[&str]| {
            let command = Command::new(&compiler.path)
                .args(["-g", "-I", "+unix"])
                .args(arguments)
                .current_dir(folder)
                .output()
                .unwrap();
            assert!(command.status.success(), "{}", said(&command));
        };
        run(&["-pack", "heap.cmx", "-o", "all.cmx"]);
        run(&["unix.cmxa", "all.cmx", "-o", "packed.exe"]);
        check_words(start(&program, 1000), compiler, &[]);
    }
}

#[test]
fn deep_lists_are_walked_and_folded() {
    const CELLS: u64 = 2_000_000;
    for compiler in compilers("deep_lists_are_walked_and_folded") {
        let running = start_with(&compiler.program("heap"), &[&CELLS.to_string()]);
        let folded = take(&running, &["--fold", "always"]);
        let plain = check_words(running, compiler, &["--fold", "never"]);
        assert_eq!(plain.folded_blocks(), 0);
        // All but every 4096th cell.
        assert!(folded.folded_blocks() > CELLS - CELLS / 4000);
        assert!(plain.blocks() > 100 * folded.blocks());
        let (stated, found) = folded.totals();
        assert_eq!(stated, found);

        // Definitions retain the same.
        let (plain, folded) = (Heap::new(plain), Heap::new(folded));
        let of = |heap: &Heap| {
            let definitions = definitions(heap.graph()).into_iter();
            let amounts = definitions.map(|(place, value)| (place, heap.retained(value)));
            amounts.collect::<BTreeMap<_, _>>()
        };
        assert_eq!(of(&plain), of(&folded), "{}", compiler.version);
        let names = |heap: &Heap| {
            let report = retained(heap, &RetainedOptions::default()).unwrap();
            report
                .rows
                .into_iter()
                .map(|row| row.name)
                .take(3)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&plain), names(&folded));
    }
}

#[test]
fn modules_that_were_loaded_later_hold_what_they_reach() {
    let all = compilers("modules_that_were_loaded_later_hold_what_they_reach");
    // The compilers that are built for tests do not have it.
    let with_dynlink: Vec<_> = all
        .iter()
        .filter(|compiler| compiler.has_dynlink())
        .collect();
    assert_eq!(with_dynlink.is_empty(), all.is_empty(), "none has Dynlink");
    for compiler in with_dynlink {
        let flags = ["-I", "+dynlink", "dynlink.cmxa", "-linkall"];
        let program = compiler.program_with("loads", "loads", &flags);
        let module = compiler.program_with("heap", "heap_module", &["-shared"]);
        let running = start_with(&program, &["1000", module.to_str().unwrap()]);
        check_words(running, compiler, &[]);
    }
}

/// Checks the words that each definition of `heap.ml` reaches in a snapshot with these options.
fn check_words(running: Running, compiler: &Compiler, options: &[&str]) -> Graph {
    let graph = take(&running, options);
    let output = running.finish();
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    check_graph(&graph, &said, compiler);
    graph
}

/// Checks a snapshot of `heap.ml`, given what that said.
pub(crate) fn check_graph(graph: &Graph, said: &str, compiler: &Compiler) {
    let version = &compiler.version;
    check_definitions(graph, said, compiler);
    let live = said.lines().find_map(|line| line.strip_prefix("live "));
    let live: u64 = live.unwrap().parse().unwrap();
    let in_heap = (0..graph.blocks()).filter(|node| !graph.is_static(*node));
    let found: u64 = in_heap.map(|node| words_of(graph, node)).sum();
    assert!(
        found.abs_diff(live) < WORKING,
        "{version}: {found} of {live}"
    );
}

/// Checks the words that each definition of `heap.ml` reaches against what the program has said.
fn check_definitions(graph: &Graph, said: &str, compiler: &Compiler) {
    let version = &compiler.version;
    assert_eq!(graph.damage().total(), 0);
    let definitions = definitions(graph);
    let mut count = 0;
    for line in said.lines() {
        let [line, name, words] = line.split(' ').collect::<Vec<_>>()[..] else {
            continue;
        };
        let value = definitions
            .get(&format!("heap.ml:{line}"))
            .unwrap_or_else(|| panic!("{version}: no definition of {name} in line {line}"));
        let found = reachable_words(graph, *value, compiler.is_5()).to_string();
        assert_eq!(found, words, "{version}: {name}");
        count += 1;
    }
    assert_eq!(count, 16, "{said}");
}

/// A snapshot of a program that runs has what the program says.
pub(crate) fn check_running(compiler: &Compiler) {
    check_words(start(&compiler.program("heap"), 1000), compiler, &[]);
}

/// The snapshot of the end of a program has what the program says.
pub(crate) fn check_end(compiler: &Compiler) {
    let folder = tempfile::tempdir().unwrap();
    // It need not wait for this.
    let stop = folder.path().join("stop");
    fs::write(&stop, "").unwrap();
    let output = heapline()
        .current_dir(&folder)
        .args(["record", "-o", "run.ctf", "--snapshot", "end", "--"])
        .arg(compiler.program("heap"))
        .arg(&stop)
        .arg("1000")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let graph = read(&folder.path().join("run.end.heap"));
    check_definitions(&graph, str::from_utf8(&output.stdout).unwrap(), compiler);
}

#[test]
fn snapshots_of_the_end_have_what_the_program_reaches() {
    for compiler in compilers("snapshots_of_the_end_have_what_the_program_reaches") {
        check_end(compiler);
    }
}

/// The definitions of the module `Heap` that have a place: the place and the name.
fn names(graph: &Graph) -> HashMap<String, String> {
    let definitions = graph.virtual_nodes().filter_map(|(_, kind)| {
        let Virtual::Definition { module, field } = kind else {
            return None;
        };
        let (name, place) = graph.definition(*module, *field);
        let place = place?.strip_prefix("heap.ml:")?.to_owned();
        Some((place, name))
    });
    definitions.collect()
}

#[test]
fn definitions_have_names_where_cmt_files_or_sources_are() {
    for compiler in compilers("definitions_have_names_where_cmt_files_or_sources_are") {
        let version = &compiler.version;
        let program = compiler.program_with("heap", "heap_annotated", &["-bin-annot"]);
        let built = program.parent().unwrap();
        let source = fs::read_to_string(built.join("heap.ml")).unwrap();
        // Definitions that compute something: their lines and names.
        let lines = (1..).zip(source.lines());
        let expected: Vec<(String, String)> = lines
            .filter(|(_, text)| text.contains("def __LINE__") || text.trim() == "let numbers =")
            .map(|(line, text): (usize, &str)| {
                let name = text.trim().strip_prefix("let ").unwrap();
                let name = name.split([' ', ':']).next().unwrap();
                let module = if name == "numbers" {
                    "Heap.Nested"
                } else {
                    "Heap"
                };
                (line.to_string(), format!("{module}.{name}"))
            })
            .collect();
        assert_eq!(expected.len(), 17);
        let all: &[&[&str]] = &[
            &["heap.cmt"],
            &["heap.ml"],
            &[".heap.eobjs/byte/heap.cmt"],
            &[],
        ];
        for files in all {
            let folder = tempfile::tempdir().unwrap();
            for file in *files {
                let copy = folder.path().join(file);
                fs::create_dir_all(copy.parent().unwrap()).unwrap();
                fs::copy(built.join(copy.file_name().unwrap()), copy).unwrap();
            }
            // Last, since newer files are not taken.
            let copy = folder.path().join("bin/heap.exe");
            fs::create_dir(folder.path().join("bin")).unwrap();
            heapline_testkit::copy_program(&program, &copy);
            let running = start(&copy, 100);
            let found = names(&take(&running, &[]));
            for (line, name) in &expected {
                match (found.get(line), files.is_empty()) {
                    (found, false) => assert_eq!(found, Some(name), "{version} {files:?}"),
                    (Some(found), true) => assert!(found.starts_with("Heap field "), "{found}"),
                    // Its last call is some lines below.
                    (None, true) => assert_eq!(name, "Heap.Nested.numbers"),
                }
            }

            // A file that was changed since.
            if let Some(file) = files.first() {
                let built = fs::metadata(&copy).unwrap().modified().unwrap();
                let file = File::options().append(true).open(folder.path().join(file));
                let later = built + Duration::from_secs(1);
                file.unwrap().set_modified(later).unwrap();
                let found = names(&take(&running, &[]));
                let found = &found[&expected[0].0];
                assert!(found.starts_with("Heap field "), "{found}");
            }
            assert!(running.finish().status.success());
        }
    }
}

/// Memory that only parked continuations, and stacks of domains, hold.
#[test]
fn continuations_and_domains_hold_memory() {
    for compiler in with_domains("continuations_and_domains_hold_memory") {
        let running = start(&compiler.program("ocaml5/heap_effects"), 0);
        let graph = take(&running, &[]);
        let output = running.finish();
        assert!(output.status.success());
        assert_eq!(graph.damage().total(), 0);
        let blocks = || 0..graph.blocks();
        let sizes = |words| blocks().filter(|node| graph.words(*node) == words).count();
        // 8,000 bytes and the end of a string.
        assert_eq!(sizes(1001), 50);
        for words in [10_001, 20_001, 30_001, 40_001] {
            assert_eq!(sizes(words), 1, "{words}");
        }
        let parked = blocks().filter(|node| graph.tag(*node) == Some(245));
        let holds = |node: &NodeId| {
            graph
                .edges(*node)
                .any(|(_, target)| graph.words(target) == 1001)
        };
        assert_eq!(parked.filter(holds).count(), 50);
        let stacks = ["domain 0", "domain 1", "domain 2", "domain 3"];
        for stack in stacks {
            let is_it = |kind: &Virtual| matches!(kind, Virtual::Group(group) if group.name.contains(stack));
            assert!(
                graph.virtual_nodes().any(|(_, kind)| is_it(kind)),
                "{stack}"
            );
        }
    }
}

/// Snapshots of a recorded program: at times, and when it exits.
#[test]
fn recorded_programs_have_snapshots_with_sampled_blocks() {
    for compiler in compilers("recorded_programs_have_snapshots_with_sampled_blocks") {
        let version = &compiler.version;
        let folder = tempfile::tempdir().unwrap();
        let stop = folder.path().join("stop");
        let mut command = heapline();
        command
            .current_dir(&folder)
            .args(["record", "-o", "run.ctf", "--rate", "1e-2"])
            .args(["--snapshot", "end", "--snapshot", "every 200ms"])
            .args(["--snapshot", "live > 1KiB", "--"])
            .arg(compiler.program("heap"))
            .arg(&stop)
            .arg("100000");
        let recording = thread::spawn(move || command.output().unwrap());
        let third = folder.path().join("run.3.heap");
        heapline_testkit::wait("the third snapshot", || {
            assert!(!recording.is_finished(), "{version}");
            third.exists()
        });
        fs::write(&stop, "").unwrap();
        let output = recording.join().unwrap();
        let text = said(&output);
        assert!(output.status.success(), "{version}: {text}");
        assert!(
            text.contains(" heap snapshots, run.1.heap to run.end.heap; "),
            "{text}"
        );

        // The first one is taken while the program still allocates.
        for (name, least) in [("run.1.heap", 0), ("run.end.heap", 2000)] {
            let graph = read(&folder.path().join(name));
            // A sample for 100 words, of about 350,000; some are of blocks that are dead.
            let sites = graph.sites().count();
            assert!(sites > least, "{version}: {sites} sites in {name}");
            let why = heapline()
                .current_dir(&folder)
                .args(["why", name, "--site", "Heap.*", "--json"])
                .output()
                .unwrap();
            assert!(why.status.success(), "{}", said(&why));
        }
        // What lives to the end is held as the last snapshot says.
        let leaks = heapline()
            .current_dir(&folder)
            .args([
                "leaks", "run.ctf", "--by", "module", "--tail", "0", "--json",
            ])
            .output()
            .unwrap();
        let leaks: Leaks = serde_json::from_slice(&leaks.stdout).unwrap();
        assert_eq!(leaks.snapshot, "run.end.heap", "{version}");
    }
}

#[derive(serde::Deserialize)]
struct Leaks {
    snapshot: String,
}

#[test]
fn signals_ask_for_snapshots() {
    for compiler in compilers("signals_ask_for_snapshots") {
        let version = &compiler.version;
        let folder = tempfile::tempdir().unwrap();
        let stop = folder.path().join("stop");
        let program = compiler.program("heap");
        let recorder = heapline()
            .current_dir(&folder)
            .args(["record", "-o", "run.ctf", "--snapshot", "signal USR2", "--"])
            .arg(&program)
            .args([stop.as_os_str(), "100".as_ref()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = recorded(&recorder, &program);
        // Once the program runs its own code, the signal is counted.
        heapline_testkit::wait("the program to run", || {
            folder.path().join("stop.ready").exists()
        });
        for name in ["run.1.heap", "run.2.heap"] {
            let file = folder.path().join(name);
            assert!(!file.exists(), "{version}: nobody has asked for {name}");
            send("-USR2", pid);
            let is_complete = || File::open(&file).is_ok_and(|file| Graph::read(file).is_ok());
            heapline_testkit::wait(name, is_complete);
        }
        fs::write(&stop, "").unwrap();
        let output = recorder.wait_with_output().unwrap();
        let text = said(&output);
        assert!(output.status.success(), "{version}: {text}");
        assert!(text.contains("run.1.heap"), "{text}");
        assert!(read(&folder.path().join("run.1.heap")).blocks() > 0);
    }
}

#[test]
fn programs_run_on_as_if_no_snapshot_had_been_taken() {
    let times: usize = std::env::var(TIMES).map_or(5, |times| times.parse().unwrap());
    let test = "programs_run_on_as_if_no_snapshot_had_been_taken";
    let one = compilers(test)
        .iter()
        .map(|compiler| (compiler, "steady", 1));
    let four = with_domains(test).map(|compiler| (compiler, "ocaml5/steady_domains", 4));
    for (compiler, name, lines) in one.chain(four) {
        let version = &compiler.version;
        let program = compiler.program(name);
        let running = Running::start(&program, &[]);
        take(&running, &[]);
        let before = running.resources();
        for n in 0..times {
            let fold = ["always", "never"][n % 2];
            take(&running, &["--fold", fold]);
        }
        take(&running, &["--in-place"]);
        assert_eq!(running.resources(), before, "{version} {name}");
        let children = format!("/proc/{0}/task/{0}/children", running.pid());
        assert_eq!(fs::read_to_string(children).unwrap(), "", "{name}");
        assert_undisturbed(&program, &running.finish(), lines);
    }
}
