//! Smaller traces: what is kept, what is not, and that others can read them.

use std::collections::{HashMap, VecDeque};

use heapline_export::cut::{Cut, CutError, Kept, Names, Subsample};
use heapline_testkit::generate::{self, Program};
use heapline_testkit::{OwnedEvent, OwnedTrace, fixtures, plain, property_config};
use heapline_trace::{Block, Options, Reader, Source, TraceInfo, Writer};
use proptest::prelude::*;

fn cut(bytes: &[u8], cut: &Cut) -> (OwnedTrace, TraceInfo, Kept, Vec<u8>) {
    let read = || Reader::new(bytes, Options::new()).unwrap();
    let mut out = Vec::new();
    let early = cut.scan(&mut read()).unwrap();
    let kept = cut.apply(&early, &mut read(), &mut out).unwrap();
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
    assert!(matches!(cut.scan(&mut reader), Err(CutError::NoSubsample)));
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

#[test]
fn runtime_parameters_that_are_text_are_not_kept() {
    let bytes = program();
    let mut info = Reader::new(&bytes[..], Options::new())
        .unwrap()
        .info()
        .clone();
    info.ocaml_runtime_params =
        "s=262144,for alice@example.org,o=120,host=5,x=secret,v=,Xname=1".into();
    let bytes = Writer::new(Vec::new(), &info).unwrap().finish().unwrap();
    let names = [Names::Strip, Names::Hash { key: Vec::new() }];
    for names in names {
        let without = Cut {
            names,
            ..Cut::default()
        };
        assert_eq!(
            cut(&bytes, &without).1.ocaml_runtime_params,
            "s=262144,o=120"
        );
    }
    let kept = cut(&bytes, &Cut::default()).1.ocaml_runtime_params;
    assert_eq!(kept, info.ocaml_runtime_params);
}

/// It was more memory mappings than a process may have, and the process was aborted.
#[test]
fn a_trace_with_too_many_domains_is_an_error() {
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    let mark = |writer: &mut Writer<Vec<u8>>, domain| writer.promote(domain, 1, 0);
    for domain in 0..1 << 14 {
        mark(&mut writer, domain).unwrap();
    }
    let error = mark(&mut writer, 1 << 14).unwrap_err();
    assert_eq!(error.to_string(), "the trace has more than 16384 domains");
    mark(&mut writer, 7).unwrap();
    let bytes = writer.finish().unwrap();
    let trace = plain::read(&bytes).unwrap();
    assert_eq!(trace.events.len(), (1 << 14) + 1);
}

/// Names that memtrace has stripped stay as they are.
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

/// One thing that a thread does.
#[derive(Clone, Debug)]
enum Action {
    Alloc { samples: u64, stack: Vec<u64> },
    Promote(usize),
    Collect(usize),
}

/// Events of threads in their order, each with its thread.
fn actions() -> impl Strategy<Value = Vec<(u16, Action)>> {
    let action = prop_oneof![
        4 => (1..4_u64, prop::collection::vec(1..50_u64, 0..5))
            .prop_map(|(samples, stack)| Action::Alloc { samples, stack }),
        1 => any::<usize>().prop_map(Action::Promote),
        3 => any::<usize>().prop_map(Action::Collect),
    ];
    prop::collection::vec((0..4_u16, action), 1..150)
}

/// A trace of these actions, with the threads' events in the order in which `turns` takes them. Any
/// two blocks have different lengths.
fn exchanging(actions: &[(u16, Action)], turns: &[u16]) -> Vec<u8> {
    let mut lanes: Vec<VecDeque<(u64, u64, &Action)>> = vec![VecDeque::new(); 4];
    let (mut live, mut next_id) = (Vec::new(), 0);
    for (time, (domain, action)) in (0..).zip(actions) {
        let id = match action {
            Action::Alloc { .. } => {
                // Each thread takes several ids at once.
                let id = next_id * 4 + u64::from(*domain);
                next_id += 1;
                live.push(id);
                id
            }
            Action::Promote(of) if !live.is_empty() => live[of % live.len()],
            Action::Collect(of) if !live.is_empty() => live.swap_remove(of % live.len()),
            Action::Promote(_) | Action::Collect(_) => continue,
        };
        lanes[usize::from(*domain)].push_back((time, id, action));
    }
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    for domain in turns.iter().copied().chain((0..4).cycle()) {
        if let Some((time, id, action)) = lanes[usize::from(domain)].pop_front() {
            let written = match action {
                Action::Alloc { samples, stack } => {
                    let block = Block {
                        length: id + 1,
                        samples: *samples,
                        source: Source::Minor,
                    };
                    writer.alloc(domain, time, id, block, stack, |_, _| ())
                }
                Action::Promote(_) => writer.promote(domain, time, id),
                Action::Collect(_) => writer.collect(domain, time, id),
            };
            written.unwrap();
        } else if lanes.iter().all(VecDeque::is_empty) {
            break;
        }
    }
    writer.finish().unwrap()
}

/// The events with blocks named after their lengths; only of blocks for which `keep` is true.
fn by_length(trace: &OwnedTrace, keep: impl Fn(u64) -> bool) -> Vec<OwnedEvent> {
    let mut events = trace.comparable();
    let lengths: HashMap<u64, u64> = events
        .iter()
        .filter_map(|event| match event {
            OwnedEvent::Alloc { id, length, .. } => Some((*id, *length)),
            _ => None,
        })
        .collect();
    events.retain_mut(|event| {
        let (OwnedEvent::Alloc { id, .. }
        | OwnedEvent::Promote { id, .. }
        | OwnedEvent::Collect { id, .. }) = event;
        *id = lengths[id];
        keep(*id)
    });
    events
}

proptest! {
    #![proptest_config(property_config(256))]

    /// Threads that exchange blocks write deaths before births.
    #[test]
    fn a_cut_of_everything_is_the_original_in_any_order_of_events(
        actions in actions(),
        turns in prop::collection::vec(0..4_u16, 0..150),
    ) {
        let bytes = exchanging(&actions, &turns);
        let before = OwnedTrace::read(&bytes, Options::new()).unwrap();
        let (after, ..) = cut(&bytes, &Cut::default());
        prop_assert_eq!(by_length(&after, |_| true), by_length(&before, |_| true));
    }

    #[test]
    fn kept_blocks_have_their_whole_life_in_any_order_of_events(
        actions in actions(),
        turns in prop::collection::vec(0..4_u16, 0..150),
        from in 0..100_u64,
        one_in in 1..4_u64,
    ) {
        let bytes = exchanging(&actions, &turns);
        let before = OwnedTrace::read(&bytes, Options::new()).unwrap();
        let (after, ..) = cut(&bytes, &Cut {
            time: from..u64::MAX,
            subsample: Some(Subsample { one_in, seed: 1 }),
            ..Cut::default()
        });
        let after = by_length(&after, |_| true);
        let kept: std::collections::HashSet<u64> = after
            .iter()
            .filter_map(|event| match event {
                OwnedEvent::Alloc { length, .. } => Some(*length),
                _ => None,
            })
            .collect();
        let marks = |events: Vec<OwnedEvent>| -> Vec<OwnedEvent> {
            let marks = events.into_iter();
            marks.filter(|event| !matches!(event, OwnedEvent::Alloc { .. })).collect()
        };
        prop_assert_eq!(marks(after), marks(by_length(&before, |length| kept.contains(&length))));
    }
}
