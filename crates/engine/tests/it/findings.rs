//! The report that a finding names has its figure.

use heapline_engine::{Cancel, LoadedTrace, Report, Request, Session};
use heapline_formats::{Options, Reader};
use heapline_profile::reports::{Phrase, TraceFindingKind};
use heapline_profile::{Profile, StoreOptions};
use heapline_testkit::fixtures;
use serde_json::Value;

fn session(trace: &str) -> Session {
    let bytes = std::fs::read(fixtures::folder().join(trace)).unwrap();
    let mut reader = Reader::new(std::io::Cursor::new(bytes), Options::default()).unwrap();
    let profile = Profile::load(&mut reader, StoreOptions::default()).unwrap();
    Session::new(
        LoadedTrace {
            path: trace.to_owned(),
            size: None,
            profile,
        },
        None,
    )
}

/// Returns true if a number occurs anywhere in a report.
fn has(report: &Value, number: f64) -> bool {
    match report {
        Value::Number(found) => {
            let found = found.as_f64().unwrap();
            (found - number).abs() <= 1e-9 * number.abs()
        }
        Value::Array(parts) => parts.iter().any(|part| has(part, number)),
        Value::Object(fields) => fields.values().any(|part| has(part, number)),
        _ => false,
    }
}

#[test]
fn findings_are_shown_by_their_reports() {
    let mut seen = 0;
    for trace in [
        "mix-ocaml413/trace.ctf",
        "mix-ocaml53/trace.ctf",
        "odd/peakend.ctf",
        "generated/domains.ctf",
    ] {
        let session = session(trace);
        let summary = Request::from_pairs("summary", [("mine", "M*"), ("mine", "Mix.*")]).unwrap();
        for request in [
            Request::from_pairs::<&str, &str>("summary", []).unwrap(),
            summary,
        ] {
            let answer = session.answer(&request, &Cancel::default()).unwrap();
            let Report::Summary(summary) = &answer.report else {
                panic!("{answer:?}");
            };
            for finding in &summary.findings {
                if finding.kind == TraceFindingKind::Resolution {
                    continue;
                }
                let request = Request::from_pairs(&finding.report, finding.parameters.clone());
                let answer = session
                    .answer(&request.unwrap(), &Cancel::default())
                    .unwrap();
                let report = serde_json::to_value(&answer.report).unwrap();
                for phrase in &finding.sentence {
                    if let Phrase::Bytes(estimate) = phrase {
                        assert!(has(&report, estimate.value), "{trace}: {finding:#?}");
                        seen += 1;
                    }
                }
            }
        }
    }
    assert!(seen > 10, "{seen}");
}
