//! Whole answers, as they are in `tests/golden`. A change of the API shows there.
//!
//! `BLESS=1 cargo test -p heapline-server --test golden` writes them anew; look at the difference.

use std::fs;
use std::path::Path;

use heapline_engine::{Cancel, EngineError, Request, Session};
use heapline_server::{Progress, Subjects, Trace, load};
use serde_json::Value;

fn session() -> Session {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/odd/peakend.ctf");
    let bytes = fs::read(path).unwrap();
    let trace = Trace {
        path: "peakend.ctf".to_owned(),
        size: Some(bytes.len() as u64),
        strict: false,
        executable: None,
        open: Box::new(move || Ok(Box::new(std::io::Cursor::new(bytes.clone())))),
    };
    load(&Subjects::new(trace, None), &Progress::default()).unwrap()
}

/// The name of the file, and a report with its parameters.
/// A name for the file, the report, and its parameters.
type Case = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const REQUESTS: [Case; 13] = [
    ("info", "info", &[]),
    ("summary", "summary", &[("rows", "1")]),
    ("hotspots", "hotspots", &[("live", "peak")]),
    ("tree", "tree", &[("details", "true"), ("sites", "true")]),
    ("flame", "flame", &[("focus", "M1.*")]),
    ("series", "series", &[("by", "function"), ("points", "3")]),
    ("stats", "stats", &[("bins", "2"), ("segments", "1")]),
    ("heatmap", "heatmap", &[("times", "2")]),
    ("leaks", "leaks", &[]),
    ("diff", "diff", &[("window", "..50%"), ("window", "50%..")]),
    ("complete", "complete", &[("text", "inside fn")]),
    ("error", "hotspots", &[("where", "sise > 3")]),
    ("unknown", "hotspots", &[("row", "3")]),
];

fn answer(session: &Session, report: &str, pairs: &[(&str, &str)]) -> Result<Value, EngineError> {
    let request = Request::from_pairs(report, pairs.iter().copied())?;
    let answer = session.answer(&request, &Cancel::default())?;
    Ok(serde_json::from_slice(&answer.json()?).unwrap())
}

#[test]
fn answers_are_as_they_were() {
    let session = session();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (name, report, pairs) in REQUESTS {
        let answer = answer(&session, report, pairs)
            .unwrap_or_else(|error| serde_json::to_value(&error).unwrap());
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
