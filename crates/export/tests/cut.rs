//! Smaller traces: what is kept, what is not, and that others can read them.

use heapline_export::cut::{Cut, CutError, Kept, Names, Subsample};
use heapline_testkit::generate::Program;
use heapline_testkit::{OwnedEvent, OwnedTrace, fixtures, plain};
use heapline_trace::{Options, Reader, TraceInfo};

fn cut(bytes: &[u8], cut: &Cut) -> (OwnedTrace, TraceInfo, Kept, Vec<u8>) {
    let mut reader = Reader::new(bytes, Options::new()).unwrap();
    let mut out = Vec::new();
    let kept = cut.apply(&mut reader, &mut out).unwrap();
    let trace = plain::read(&out).unwrap();
    let info = Reader::new(&out[..], Options::new().strict(true))
        .unwrap()
        .info()
        .clone();
    (trace, info, kept, out)
}

fn program() -> Vec<u8> {
    Program {
        allocations: 20_000,
        domains: 3,
        ..Program::default()
    }
    .trace()
}

#[test]
fn nothing_asked_for_nothing_changed() {
    let bytes = program();
    let before = OwnedTrace::read(&bytes, Options::new()).unwrap();
    let (after, info, kept, _) = cut(&bytes, &Cut::default());
    assert_eq!(after.locations, before.locations);
    assert_eq!(after.events.len(), before.events.len());
    assert_eq!(kept.allocations, kept.allocations_before);
    assert_eq!(
        &info,
        Reader::new(&bytes[..], Options::new()).unwrap().info()
    );
}

#[test]
fn a_window_keeps_blocks_with_their_whole_life() {
    let bytes = program();
    let before = OwnedTrace::read(&bytes, Options::new()).unwrap();
    let window = 50_000..100_000;
    let (after, _, kept, _) = cut(
        &bytes,
        &Cut {
            time: window.clone(),
            ..Cut::default()
        },
    );
    let inside: Vec<u64> = before
        .events
        .iter()
        .filter_map(|event| match event {
            OwnedEvent::Alloc { time, id, .. } if window.contains(time) => Some(*id),
            _ => None,
        })
        .collect();
    assert!(inside.len() > 1000);
    assert_eq!(kept.allocations, inside.len() as u64);
    let collected = |trace: &OwnedTrace, of: &dyn Fn(u64) -> bool| -> Vec<u64> {
        let times = trace.events.iter().filter_map(|event| match event {
            OwnedEvent::Collect { time, id, .. } if of(*id) => Some(*time),
            _ => None,
        });
        times.collect()
    };
    let inside: std::collections::HashSet<u64> = inside.into_iter().collect();
    let expected = collected(&before, &|id| inside.contains(&id));
    assert_eq!(collected(&after, &|_| true), expected);
    assert!(
        expected.iter().any(|time| *time >= window.end),
        "some die after the window"
    );
}

#[test]
fn thinning_keeps_its_share_and_lowers_the_rate() {
    let bytes = program();
    let thinned = |seed| {
        cut(
            &bytes,
            &Cut {
                subsample: Some(Subsample { one_in: 4, seed }),
                ..Cut::default()
            },
        )
    };
    let (_, info, kept, out) = thinned(1);
    assert!((info.sample_rate - 1e-3 / 4.0).abs() < 1e-15);
    let expected = kept.samples_before as f64 / 4.0;
    let deviation = (expected * 0.75).sqrt();
    assert!(
        (kept.samples as f64 - expected).abs() < 5.0 * deviation,
        "{} samples instead of {expected} ± {deviation}",
        kept.samples
    );
    assert!(
        kept.allocations < kept.samples,
        "blocks of several samples keep some of them"
    );
    assert_eq!(thinned(1).3, out, "the same seed keeps the same");
    assert_ne!(thinned(2).3, out, "another one keeps others");
}

#[test]
fn one_in_none_is_refused() {
    let bytes = program();
    let mut reader = Reader::new(&bytes[..], Options::new()).unwrap();
    let cut = Cut {
        subsample: Some(Subsample { one_in: 0, seed: 0 }),
        ..Cut::default()
    };
    assert!(matches!(
        cut.apply(&mut reader, Vec::new()),
        Err(CutError::NoSubsample)
    ));
}

#[test]
fn stripped_traces_tell_nothing_of_the_program() {
    let bytes = std::fs::read(fixtures::folder().join("mix-ocaml53/trace.ctf")).unwrap();
    let strip = Cut {
        names: Names::Strip,
        ..Cut::default()
    };
    let (trace, info, _, out) = cut(&bytes, &strip);
    assert!(trace.locations.is_empty());
    assert_eq!((info.pid, info.start_time, info.context), (0, 0, None));
    assert_eq!(
        (info.host_name, info.executable_name),
        ("<anonymous>".into(), "<anonymous>".into())
    );
    for secret in ["mix", "Mix", "demo", "Stdlib"] {
        let found = out
            .windows(secret.len())
            .any(|window| window == secret.as_bytes());
        assert!(!found, "{secret:?} is still there");
    }
    assert_eq!(info.ocaml_runtime_params.split(',').count(), 14);
}

/// What memtrace has stripped, we leave as it is.
#[test]
fn stripped_traces_stay_as_memtrace_writes_them() {
    let stripped = std::fs::read(fixtures::folder().join("odd/stripped.ctf")).unwrap();
    assert_stripped(&stripped, &stripped);
}

#[test]
#[ignore = "needs the reference traces"]
fn stripped_traces_are_those_of_memtrace() {
    let original = std::fs::read(fixtures::reference("public/lists_and_sets/trace.ctf")).unwrap();
    let expected = std::fs::read(fixtures::folder().join("odd/stripped.ctf")).unwrap();
    assert_stripped(&original, &expected);
}

fn assert_stripped(original: &[u8], expected: &[u8]) {
    let strip = Cut {
        names: Names::Strip,
        ..Cut::default()
    };
    let (trace, info, ..) = cut(original, &strip);
    assert_eq!(trace, plain::read(expected).unwrap());
    assert_eq!(&info, Reader::new(expected, Options::new()).unwrap().info());
}

#[test]
fn pseudonyms_are_consistent_and_depend_on_the_key() {
    let read =
        |version: &str| std::fs::read(fixtures::folder().join(version).join("trace.ctf")).unwrap();
    let (new, old) = (read("mix-ocaml53"), read("mix-ocaml413"));
    let hash = |key: &str| Cut {
        names: Names::Hash {
            key: key.as_bytes().to_vec(),
        },
        ..Cut::default()
    };
    let names = |bytes: &[u8], cut_by: &Cut| -> std::collections::BTreeSet<String> {
        let (trace, ..) = cut(bytes, cut_by);
        let frames = trace.locations.values().flatten();
        frames
            .map(|frame| String::from_utf8_lossy(&frame.name).into_owned())
            .collect()
    };
    let plain_names = names(&new, &Cut::default());
    let hashed = names(&new, &hash("key"));
    assert_eq!(
        hashed.len(),
        plain_names.len(),
        "different names have different pseudonyms"
    );
    assert!(hashed.iter().all(|name| !plain_names.contains(name)));
    assert!(hashed.is_disjoint(&names(&new, &hash("other key"))));
    // Both programs have Mix.tree, and it is called the same in both.
    let common = plain_names
        .intersection(&names(&old, &Cut::default()))
        .count();
    assert_eq!(
        hashed.intersection(&names(&old, &hash("key"))).count(),
        common
    );
    // Functions of one module are still seen to belong together.
    let modules: std::collections::BTreeSet<&str> = hashed
        .iter()
        .filter_map(|name| name.split('.').next())
        .collect();
    let plain_modules: std::collections::BTreeSet<&str> = plain_names
        .iter()
        .filter_map(|name| name.split('.').next())
        .collect();
    assert_eq!(modules.len(), plain_modules.len());
    // The structure is untouched, but return addresses, which tell functions apart, are gone.
    let (plain_trace, ..) = cut(&new, &Cut::default());
    let (hashed_trace, ..) = cut(&new, &hash("key"));
    let shape = |trace: &OwnedTrace| -> Vec<(usize, u64)> {
        let allocations = trace.events.iter().filter_map(|event| match event {
            OwnedEvent::Alloc {
                stack,
                common_prefix,
                ..
            } => Some((stack.len(), *common_prefix)),
            _ => None,
        });
        allocations.collect()
    };
    assert_eq!(shape(&hashed_trace), shape(&plain_trace));
    let codes = plain_trace.locations.keys();
    assert!(
        codes
            .into_iter()
            .all(|code| !hashed_trace.locations.contains_key(code))
    );
}
