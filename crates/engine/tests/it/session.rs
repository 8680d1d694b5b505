//! Sessions: answers, completion, the cache and cancellation.

use std::sync::Arc;

use heapline_engine::{Cancel, EngineError, ErrorKind, LoadedTrace, Request, Session};
use heapline_formats::{Options, Reader};
use heapline_model::{Damage, InputSize};
use heapline_profile::{Profile, Recursion, Store, StoreOptions};
use heapline_testkit::fixtures;
use serde_json::Value;

fn profile(name: &str) -> Profile {
    let path = fixtures::folder().join(name);
    let mut reader = Reader::open(path, Options::default()).unwrap();
    Profile::load(
        &mut reader,
        StoreOptions {
            recursion: Recursion::OnDemand,
        },
    )
    .unwrap()
}

fn trace(name: &str) -> LoadedTrace {
    LoadedTrace {
        path: name.to_owned(),
        size: None,
        profile: profile(name),
    }
}

const MIX: &str = "mix-ocaml53/trace.ctf";

fn try_answer(session: &Session, text: &str) -> Result<Value, EngineError> {
    let mut words = text.split(" | ");
    let report = words.next().unwrap();
    let pairs = words.map(|word| word.split_once('=').unwrap_or((word, "true")));
    let request = Request::from_pairs(report, pairs)?;
    let answer = session.answer(&request, &Cancel::default())?;
    Ok(serde_json::from_slice(&answer.json()?).unwrap())
}

fn answer(session: &Session, text: &str) -> Value {
    try_answer(session, text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_flame_graph_is_the_tree_in_columns() {
    let session = Session::new(trace(MIX), None);
    for options in [
        "min=0.1%",
        "min=0% | bottom-up",
        "focus=Mix.words",
        "by=module | sites",
    ] {
        let flame = answer(&session, &format!("flame | {options}"));
        let tree = answer(&session, &format!("tree | details | {options}"));
        assert_eq!(flame["total"], tree["total"]);
        for part in ["nodes", "callers"] {
            let (columns, nodes) = (&flame[part], tree[part].as_array().unwrap());
            assert_eq!(columns["parent"].as_array().unwrap().len(), nodes.len());
            for (i, node) in nodes.iter().enumerate() {
                let is_other = node["kind"] == "other";
                let label = columns["label"][i].as_i64().unwrap();
                match usize::try_from(label) {
                    Ok(label) => assert_eq!(flame["labels"][label], node["label"]),
                    Err(_) => assert!(is_other),
                }
                assert_eq!(
                    columns["parent"][i].as_i64(),
                    node["parent"].as_i64().or(Some(-1))
                );
                assert_eq!(columns["bytes"][i], node["total"]["bytes"]["value"]);
                assert_eq!(columns["error"][i], node["total"]["bytes"]["error"]);
                assert_eq!(columns["own"][i], node["own"]["bytes"]["value"]);
                assert_eq!(columns["blocks"][i], node["total"]["blocks"]["value"]);
                assert_eq!(columns["samples"][i], node["total"]["samples"]);
                assert_eq!(columns["at_end"][i], node["details"]["live_at_end"]);
                assert_eq!(columns["promoted"][i], node["details"]["promoted"]);
            }
        }
    }
    let few = answer(&session, "flame | min=0% | max-nodes=5");
    assert!(few["nodes"]["parent"].as_array().unwrap().len() <= 5);
    assert!(few["min"].as_f64().unwrap() > 0.0);
}

#[test]
fn names_are_completed_by_what_is_allocated_in_them() {
    let session = Session::new(trace(MIX), None);
    let texts = |text: &str| -> Vec<String> {
        let answer = answer(&session, text);
        let items = answer["items"].as_array().unwrap().iter();
        items
            .map(|item| item["text"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        texts("complete | text=inside MAP.make"),
        [
            "\"Stdlib.Map.Make.add\"",
            "\"Stdlib.Map.Make.bal\"",
            "\"Stdlib.Map.Make.create\""
        ]
    );
    assert_eq!(texts("complete | text=module = | rows=1"), ["\"Mix\""]);
    assert_eq!(texts("complete | text=file = mix"), ["\"mix.ml\""]);
    assert!(texts("complete | text=site = nothing").is_empty());
}

#[test]
fn names_that_the_trace_does_not_have_are_listed_with_similar_ones() {
    let session = Session::new(trace(MIX), None);
    let unmatched = |text: &str| answer(&session, text)["unmatched"].clone();
    assert_eq!(
        unmatched("complete | text=promoted and inside Mix.wrods | check=true"),
        serde_json::json!(["function \"Mix.wrods\"; did you mean \"Mix.words\"?"])
    );
    for there in [
        "complete | text=inside Mix.words | check=true",
        "complete | text=inside Mix.words and | check=true",
        "complete | text=inside Mix.wrods",
    ] {
        assert_eq!(unmatched(there), serde_json::json!([]), "{there}");
    }
}

#[test]
fn queries_are_completed_at_the_cursor() {
    let session = Session::new(trace(MIX), None);
    // 𝕏 takes two units of UTF-16.
    let found = answer(
        &session,
        "complete | text=site = 𝕏 and lifet > 2s | cursor=17",
    );
    assert_eq!(found["replace"], serde_json::json!([14, 19]));
    let lifetime = serde_json::json!({
        "text": "lifetime",
        "hint": "in time, or in bytes allocated meanwhile",
        "name": null,
    });
    assert_eq!(found["items"], serde_json::json!([lifetime]));
    let found = answer(&session, "complete");
    assert_eq!(found["replace"], serde_json::json!([0, 0]));
    assert!(found["items"].as_array().unwrap().len() > 20);
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let session = Session::new(trace(MIX), None);
    for text in [
        "series | points=100000 | top=1000 | by=site",
        "series | callers-of=f | by=size",
        "tree | focus=a | bottom-up",
        "diff | window=1s..2s",
        "diff | window=2s..1s | window=..",
        "diff | window=..50% | window=50%.. | of=peak",
    ] {
        let error = try_answer(&session, text).unwrap_err();
        assert_eq!(error.kind, ErrorKind::BadParameter, "{text}: {error}");
        assert!(error.place.is_some(), "{text}");
    }
    let focus = " | focus=a".repeat(65);
    assert!(try_answer(&session, &format!("tree{focus}")).is_err());
    let error = try_answer(&session, "diff").unwrap_err();
    assert_eq!(error.kind, ErrorKind::NoOtherTrace);
}

#[test]
fn answers_have_their_command() {
    let session = Session::new(trace(MIX), Some(trace("odd/peakend.ctf")));
    let command = |report, pairs: &[(&str, &str)]| {
        let request = Request::from_pairs(report, pairs.iter().copied()).unwrap();
        let answer = session.answer(&request, &Cancel::default()).unwrap();
        answer.command.clone()
    };
    assert_eq!(
        command("flame", &[("where", "size > 1k"), ("max-nodes", "5")]).unwrap(),
        "heapline tree mix-ocaml53/trace.ctf --where 'size > 1k'"
    );
    assert_eq!(
        command("diff", &[("of", "end")]).unwrap(),
        "heapline diff odd/peakend.ctf mix-ocaml53/trace.ctf --of end"
    );
    assert_eq!(command("complete", &[("text", "map")]), None);
}

#[test]
fn answers_are_kept_until_the_trace_grows() {
    let mut session = Session::new(trace(MIX), None).with_cache(1 << 20);
    let request = Request::from_pairs("summary", [("rows", "1")]).unwrap();
    let ask = |session: &Session| session.answer(&request, &Cancel::default()).unwrap();
    let first = ask(&session);
    assert!(Arc::ptr_eq(&first, &ask(&session)));
    assert_eq!((first.epoch, &first.identity), (0, session.identity()));
    session.advance(profile("odd/peakend.ctf"), 1);
    let second = ask(&session);
    assert_eq!((second.epoch, &second.identity), (1, &first.identity));
    assert!(first.json() != second.json());
    // Who still asks about the state before gets it, from the same cache.
    let third = session.successor(profile(MIX), 2, Some(7));
    assert_eq!(ask(&third).epoch, 2);
    assert!(Arc::ptr_eq(&second, &ask(&session)));
    assert_eq!(third.info().file_size, Some(7));
    let uncached = Session::new(trace(MIX), None);
    assert!(!Arc::ptr_eq(&ask(&uncached), &ask(&uncached)));
}

#[test]
fn traces_are_told_apart() {
    let identity = |name, against: Option<&str>| {
        Session::new(trace(name), against.map(trace))
            .identity()
            .clone()
    };
    let other = "mix-ocaml413/trace.ctf";
    assert_eq!(identity(MIX, None), identity(MIX, None));
    assert_ne!(identity(MIX, None), identity(other, None));
    assert_ne!(identity(MIX, None), identity(MIX, Some(other)));
}

#[test]
fn a_cancelled_request_has_no_answer() {
    let session = Session::new(trace(MIX), None).with_cache(1 << 20);
    let cancel = Cancel::default();
    cancel.cancel();
    let request = Request::from_pairs::<&str, &str>("summary", []).unwrap();
    let error = session.answer(&request, &cancel).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cancelled);
    assert!(session.answer(&request, &Cancel::default()).is_ok());
}

/// Recursion is a view of the loaded profile: no second pass, and the same totals.
#[test]
fn recursion_is_kept_without_reading_again() {
    let session = Session::new(trace(MIX), None);
    let [collapsed, kept] = ["tree", "tree | keep-recursion=true"]
        .map(|request| try_answer(&session, request).unwrap());
    let bytes = |tree: &Value| tree["total"]["bytes"]["value"].as_f64().unwrap();
    assert!((bytes(&collapsed) / bytes(&kept) - 1.0).abs() < 1e-9);
    let depth = |tree: &Value| {
        let nodes = tree["nodes"].as_array().unwrap().iter();
        nodes.map(|node| node["depth"].as_u64().unwrap()).max()
    };
    assert!(depth(&kept) > depth(&collapsed));
}

#[test]
fn a_trace_without_collections_says_so() {
    let session = Session::new(trace(MIX), None);
    let error = try_answer(&session, "gc").unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotTold);
    assert_eq!(
        error.message,
        "cannot show the garbage collector: this trace has no collections: it was recorded by memtrace or an older heapline"
    );
}

#[test]
fn the_collector_of_a_window_is_a_report() {
    let run = heapline_testkit::collections::Collected {
        seconds: 2,
        ..Default::default()
    };
    let mut store = Store::new(run.header(), StoreOptions::default());
    store.append(&run.batch());
    let trace = LoadedTrace {
        path: "generated".to_owned(),
        size: None,
        profile: store.finish(Damage::default(), InputSize::default()),
    };
    let session = Session::new(trace, None);
    let whole = answer(&session, "gc | points=10");
    assert_eq!(whole["series"]["times"].as_array().unwrap().len(), 10);
    assert_eq!(whole["audit"]["disagrees"], false);
    assert_eq!(whole["words"]["is_complete"], true);
    let half = answer(&session, "gc | window=0s..1s | rows=3");
    assert_eq!(half["worst"].as_array().unwrap().len(), 3);
    let count = |report: &Value| report["pauses"]["count"].as_u64().unwrap();
    assert!(count(&half) < count(&whole), "{half}");
    // A filter is about the blocks that were promoted, and not about collections.
    let filtered = answer(&session, "gc | where=site = Nobody");
    assert_eq!(filtered["pauses"], whole["pauses"]);
    assert_eq!(filtered["audit"], Value::Null);
    let error = try_answer(&session, "gc | window=20s..30s").unwrap_err();
    assert!(error.message.contains("the run lasts"), "{error}");
}
