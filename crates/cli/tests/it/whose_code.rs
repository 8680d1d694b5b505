//! Reports that tell the program's own code from that of libraries.

use std::path::Path;
use std::process::Command;

use heapline_testkit as testkit;
use heapline_trace::{Block, Frame, FrameSink, Source, TraceInfo, Writer};
use serde_json::Value;

/// The name, the file and the line of a function.
type Function = (&'static str, &'static str, u32);

/// Writes a trace of blocks that stay, each with one of these stacks in turn, outermost caller first.
fn write(path: &Path, word_size: u8, functions: &[Function], stacks: &[&[u64]]) {
    let mut writer = writer(word_size);
    let source = match word_size {
        8 => Source::External,
        _ => Source::Minor,
    };
    let block = Block {
        length: 9,
        samples: 9,
        source,
    };
    for (id, stack) in (0..2000).zip(stacks.iter().cycle()) {
        let named = |code: u64, frames: &mut FrameSink<'_>| {
            push(frames, functions[usize::try_from(code).unwrap()]);
        };
        writer.alloc(0, id * 1000, id, block, stack, named).unwrap();
    }
    std::fs::write(path, writer.finish().unwrap()).unwrap();
}

fn push(frames: &mut FrameSink<'_>, (name, file, line): Function) {
    frames.push(Frame {
        file: file.as_bytes(),
        name: name.as_bytes(),
        line,
        start_char: 2,
        end_char: 9,
    });
}

fn writer(word_size: u8) -> Writer<Vec<u8>> {
    let info = TraceInfo {
        sample_rate: 1.0,
        word_size,
        start_time: 0,
        ..testkit::generate::info()
    };
    Writer::new(Vec::new(), &info).unwrap()
}

fn heapline(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_heapline"))
        .args(arguments)
        .current_dir(folder)
        .env("COLUMNS", "200")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--json"]].concat();
    serde_json::from_str(&heapline(folder, &arguments)).unwrap()
}

/// A program that frees everything when it shuts down.
#[test]
fn growth_can_be_shown_up_to_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = folder.join("t.ctf");
    let mut writer = writer(64);
    let block = Block {
        length: 9,
        samples: 9,
        source: Source::Minor,
    };
    let named = |_: u64, frames: &mut FrameSink<'_>| push(frames, ("Cache.add", "cache.ml", 12));
    for id in 0..1000 {
        writer.alloc(0, id * 1000, id, block, &[1], named).unwrap();
    }
    for id in 0..1000 {
        writer.collect(0, 1_000_000 + id, id).unwrap();
    }
    std::fs::write(&path, writer.finish().unwrap()).unwrap();

    let leaks = json(folder, &["leaks", "t.ctf"]);
    assert_eq!(leaks["rows"].as_array().unwrap().len(), 0, "{leaks:#}");
    let leaks = json(folder, &["leaks", "t.ctf", "--at", "500ms"]);
    let row = &leaks["rows"][0];
    assert_eq!(leaks["at"], 0.5);
    assert_eq!(row["trend"]["state"], "growing", "{leaks:#}");
    // 451 blocks are older than 50 ms then, 201 were at 250 ms.
    assert_eq!(row["retained"]["samples"], 451 * 9, "{leaks:#}");
    assert_eq!(
        row["growth"]["value"],
        f64::from((451 - 201) * 80),
        "{leaks:#}"
    );
    let live = row["live"].as_array().unwrap();
    assert_eq!(live.last().unwrap(), f64::from(501 * 80), "{leaks:#}");
    for at in ["99%", "peak"] {
        let text = heapline(folder, &["leaks", "t.ctf", "--at", at]);
        assert!(
            text.contains("growing") && text.contains("held then"),
            "{text}"
        );
    }
    let text = heapline(folder, &["leaks", "t.ctf", "--at", "500ms"]);
    assert!(
        text.contains("live at 500 ms") && text.contains("--live 0.5s"),
        "{text}"
    );
    // A time after the end is the end.
    let late = json(folder, &["leaks", "t.ctf", "--at", "1h"]);
    assert_eq!(late, json(folder, &["leaks", "t.ctf"]));
}

/// A function of the standard library is called from a line that leaks, twice as much from
/// another one, and from a third one by way of another function of the library.
#[test]
fn leaks_are_attributed_to_the_callers_of_the_standard_library() {
    const FUNCTIONS: [Function; 6] = [
        ("Main.entry", "main.ml", 1),
        ("Cache.add", "cache.ml", 12),
        ("Log.line", "log.ml", 34),
        ("Stdlib__Bytes.sub", "bytes.ml", 92),
        ("Stdlib__Bytes.sub_string", "bytes.ml", 98),
        ("Log.plain", "log.ml", 56),
    ];
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let stacks: [&[u64]; 5] = [&[0, 1, 3], &[0, 2, 3], &[0, 2, 3], &[0, 2, 4, 3], &[0, 5]];
    write(&folder.join("t.ctf"), 64, &FUNCTIONS, &stacks);

    let leaks = json(folder, &["leaks", "t.ctf"]);
    let mut rows: Vec<(&str, &str, Option<&str>, u64)> = Vec::new();
    for row in leaks["rows"].as_array().unwrap() {
        let label = &row["label"];
        rows.push((
            label["name"].as_str().unwrap(),
            label["place"].as_str().unwrap(),
            label["via"].as_str(),
            row["retained"]["samples"].as_u64().unwrap(),
        ));
    }
    let samples = |blocks: u64| 9 * blocks;
    // Old are the blocks of the first 90 % of the run.
    assert_eq!(
        rows[0],
        (
            "Log.line",
            "log.ml:34:2-9",
            Some("Stdlib.Bytes.sub"),
            samples(1080)
        )
    );
    assert!(rows.contains(&(
        "Cache.add",
        "cache.ml:12:2-9",
        Some("Stdlib.Bytes.sub"),
        samples(360)
    )));
    assert!(rows.contains(&("Log.plain", "log.ml:56:2-9", None, samples(360))));
    assert_eq!(rows.len(), 3, "{leaks:#}");

    let text = heapline(folder, &["leaks", "t.ctf"]);
    let lines: Vec<&str> = text.lines().collect();
    let first = lines
        .iter()
        .position(|line| line.contains("Log.line (log.ml:34:2-9)"));
    assert_eq!(
        lines[first.unwrap() + 1].trim(),
        "in Stdlib.Bytes.sub",
        "{text}"
    );
    // The suggested command selects the blocks of the first row.
    assert!(
        text.contains(r#"--where 'inside "Log.line" and site = "Stdlib.Bytes.sub"'"#),
        "{text}"
    );

    // Other groupings are what they are called.
    let modules = heapline(folder, &["leaks", "t.ctf", "--by", "module"]);
    assert!(modules.contains("Stdlib.Bytes"), "{modules}");
    let whole = ["hotspots", "t.ctf", "--by", "site", "--all-code"];
    let sites = heapline(folder, &whole);
    assert!(
        sites.contains("Stdlib.Bytes.sub (bytes.ml:92:2-9)"),
        "{sites}"
    );
}

#[test]
fn a_program_that_is_all_standard_library_has_leaks_too() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let functions = [
        ("Stdlib.at_exit", "stdlib.ml", 5),
        ("Stdlib__List.map", "list.ml", 7),
    ];
    write(&folder.join("t.ctf"), 64, &functions, &[&[0, 1]]);
    let leaks = json(folder, &["leaks", "t.ctf"]);
    let label = &leaks["rows"][0]["label"];
    assert_eq!(label["name"], "Stdlib.List.map");
    assert!(label["via"].is_null(), "{label:#}");
}

#[test]
fn functions_are_grouped_by_crate() {
    const FUNCTIONS: [Function; 5] = [
        ("app::main", "src/main.rs", 3),
        ("app::load::{{closure}}", "src/load.rs", 9),
        (
            "<serde_json::value::Value as serde::de::Deserialize>::deserialize",
            "serde_json-1.0.140/src/value/de.rs",
            31,
        ),
        (
            "serde_json::from_str<app::Config>",
            "serde_json-1.0.140/src/de.rs",
            7,
        ),
        ("main", "", 0),
    ];
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let stacks: [&[u64]; 4] = [&[0], &[0, 1], &[0, 1, 3, 2], &[4]];
    write(&folder.join("t.ctf"), 8, &FUNCTIONS, &stacks);

    let hotspots = json(folder, &["hotspots", "t.ctf", "--by", "crate"]);
    let samples = |name: &str| {
        let mut rows = hotspots["rows"].as_array().unwrap().iter();
        let row = rows.find(|row| row["label"]["name"] == name).unwrap();
        (&row["allocated"]["samples"], &row["inclusive"]["samples"])
    };
    assert_eq!(samples("app"), (&9000.into(), &13500.into()));
    assert_eq!(samples("serde_json"), (&4500.into(), &4500.into()));
    assert_eq!(samples("(no crate)"), (&4500.into(), &4500.into()));
    assert_eq!(
        hotspots["rows"].as_array().unwrap().len(),
        3,
        "{hotspots:#}"
    );

    // Queries know the same names.
    for (query, blocks) in [
        ("crate = app", 1000),
        ("inside crate \"app\"", 1500),
        ("crate = serde_json and inside crate \"app\"", 500),
        ("not inside crate \"serde_json\"", 1500),
    ] {
        let summary = json(folder, &["summary", "t.ctf", "--where", query]);
        assert_eq!(summary["subject"]["sampled_blocks"], blocks, "{query}");
    }
    // Calls within a crate are one node.
    let tree = json(folder, &["tree", "t.ctf", "--by", "crate"]);
    let nodes = tree["nodes"].as_array().unwrap().iter();
    let nodes: Vec<(&Value, &Value)> = nodes
        .map(|node| (&node["depth"], &node["label"]["name"]))
        .collect();
    assert_eq!(nodes.len(), 3, "{tree:#}");
    assert!(
        nodes.contains(&(&1.into(), &"serde_json".into())),
        "{tree:#}"
    );
}

/// Lists of functions and lines are of own code in every report, stacks and other groups of all code.
#[test]
fn lists_are_of_own_code_by_default_and_stacks_are_not() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/mix-ocaml53");
    let names = |command: &str, options: &[&str]| {
        let trace: &[&str] = match command {
            "diff" => &["diff", "trace.ctf", "../mix-ocaml413/trace.ctf"],
            command => &[command, "trace.ctf"],
        };
        json(&folder, &[trace, options].concat()).to_string()
    };
    let lists = ["hotspots", "peak", "diff", "leaks", "temporary", "series"];
    for command in lists {
        for by in ["function", "site"] {
            let is_of_libraries = |more: &[&str]| {
                names(command, &[&["--by", by], more].concat()).contains("\"name\":\"Stdlib.")
            };
            assert!(!is_of_libraries(&[]), "{command} --by {by}");
            if !["leaks", "temporary"].contains(&command) {
                assert!(is_of_libraries(&["--all-code"]), "{command} --by {by}");
            }
        }
    }
    for (command, options) in [
        ("tree", &[][..]),
        ("hotspots", &["--by", "module"]),
        ("series", &["--callers-of", "Stdlib.Map.Make.bal"]),
    ] {
        assert!(
            names(command, options).contains("Stdlib.Map.Make"),
            "{command}"
        );
    }
}
