//! Whole answers, as they are in `tests/golden`. A change of the API shows there.
//!
//! `BLESS=1 cargo test -p heapline-server --test golden` writes them anew; look at the difference.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use heapline_engine::{Answer, Cancel, EngineError, Request, Session, SnapshotSession};
use heapline_server::{Progress, SiteSource, Subjects, Trace, load, load_snapshots};
use serde_json::Value;

fn file(name: &str) -> Trace {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name);
    let bytes = fs::read(&path).unwrap();
    Trace {
        path: path.file_name().unwrap().display().to_string(),
        size: Some(bytes.len() as u64),
        strict: false,
        executable: None,
        file: None,
        open: Box::new(move || Ok(Box::new(std::io::Cursor::new(bytes.clone())))),
    }
}

fn session() -> Session {
    let subjects = Subjects::new(file("odd/peakend.ctf"), None);
    load(&subjects, &Progress::default()).unwrap()
}

fn snapshot_session() -> SnapshotSession {
    let sites = SiteSource {
        given: Some(file("generated/domains.ctf")),
        find: Box::new(|_| Err("not needed".to_owned())),
    };
    let [snapshot, against] =
        ["server-later.heap", "server.heap"].map(|name| file(&format!("generated/{name}")));
    let subjects = Subjects::of_snapshots(snapshot, Some(against), sites);
    load_snapshots(&subjects, &Progress::default()).unwrap()
}

/// A name for the file, the report, and its parameters.
type Case = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const REQUESTS: [Case; 14] = [
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
    (
        "diff-tree",
        "diff-tree",
        &[("window", "..25%"), ("window", "25%..")],
    ),
    ("complete", "complete", &[("text", "inside fn")]),
    ("error", "hotspots", &[("where", "sise > 3")]),
    ("unknown", "hotspots", &[("row", "3")]),
];

/// Requests about heap snapshots.
const OF_SNAPSHOTS: [Case; 6] = [
    ("retained", "retained", &[("rows", "2")]),
    (
        "retained-at",
        "retained",
        &[("at", "Cache.table > Hashtbl.t")],
    ),
    ("dominators", "dominators", &[("min", "10%")]),
    ("why", "why", &[("site", "Module2.*"), ("rows", "1")]),
    ("findings", "findings", &[("rows", "1")]),
    ("heap-diff", "diff", &[("rows", "1")]),
];

type Ask<'a> = dyn Fn(&Request) -> Result<Arc<Answer>, EngineError> + 'a;

fn answer(ask: &Ask<'_>, report: &str, pairs: &[(&str, &str)]) -> Result<Value, EngineError> {
    let request = Request::from_pairs(report, pairs.iter().copied())?;
    Ok(serde_json::from_slice(&ask(&request)?.json()?).unwrap())
}

fn check(requests: &[Case], ask: &Ask<'_>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (name, report, pairs) in requests {
        let answer = answer(ask, report, pairs)
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

#[test]
fn answers_are_as_they_were() {
    let session = session();
    check(&REQUESTS, &|request| {
        session.answer(request, &Cancel::default())
    });
}

#[test]
fn answers_about_snapshots_are_as_they_were() {
    let session = snapshot_session();
    check(&OF_SNAPSHOTS, &|request| {
        session.answer(request, &Cancel::default())
    });
}
