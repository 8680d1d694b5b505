//! Whole answers, as they are in `tests/golden`. A change of the API shows there.
//!
//! `BLESS=1 cargo test -p heapline-server --test golden` writes them anew; look at the difference.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use heapline_server::{Engine, Progress, Request, Subjects, Trace};
use serde_json::Value;

fn engine() -> Engine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/odd/peakend.ctf");
    let bytes = fs::read(path).unwrap();
    let trace = Trace {
        path: "peakend.ctf".to_owned(),
        size: Some(bytes.len() as u64),
        strict: false,
        open: Box::new(move || Ok(Box::new(std::io::Cursor::new(bytes.clone())))),
    };
    let subjects = Subjects {
        trace,
        against: None,
    };
    Engine::load(Arc::new(subjects), &Progress::default()).unwrap()
}

fn requests() -> Vec<(&'static str, Request)> {
    let ask = Request::new;
    vec![
        ("info", ask("info")),
        ("summary", ask("summary").with("rows", "1")),
        ("hotspots", ask("hotspots").with("live", "peak")),
        (
            "tree",
            ask("tree").with("details", "true").with("sites", "true"),
        ),
        ("flame", ask("flame").with("focus", "M1.*")),
        (
            "series",
            ask("series").with("by", "function").with("points", "3"),
        ),
        (
            "stats",
            ask("stats").with("bins", "2").with("segments", "1"),
        ),
        ("heatmap", ask("heatmap").with("times", "2")),
        ("leaks", ask("leaks")),
        (
            "diff",
            ask("diff").with("window", "..50%").with("window", "50%.."),
        ),
        ("complete", ask("complete").with("q", "fn")),
        ("error", ask("hotspots").with("where", "sise > 3")),
        ("unknown", ask("hotspots").with("row", "3")),
    ]
}

#[test]
fn answers_are_as_they_were() {
    let engine = engine();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (name, request) in requests() {
        let answer: Value = match engine.answer(&request) {
            Ok(answer) => serde_json::from_slice(&answer).unwrap(),
            Err(error) => serde_json::to_value(&error).unwrap(),
        };
        let file = folder.join(format!("{name}.json"));
        if std::env::var_os("BLESS").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&file, format!("{answer:#}\n")).unwrap();
        } else {
            let expected: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            assert!(answer == expected, "{name}: found\n{answer:#}");
        }
    }
}
