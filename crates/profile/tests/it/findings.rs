//! Findings about programs whose truth is known.

use TraceFindingKind::{
    Damage, Garbage, Growth, LargeBlock, Peak, PeakCall, PeakHolder, PromotedGarbage, Resolution,
    SizeClass, TotalGarbage, TotalGrowth,
};
use heapline_formats::{Options, Reader};
use heapline_profile::reports::{Phrase, SummaryOptions, TraceFinding, TraceFindingKind, summary};
use heapline_profile::{Estimator, Profile, Query, Scope, StoreOptions};
use heapline_testkit::lives::{self, Life};

/// The findings on the whole program, which come first.
const OVERALL: [TraceFindingKind; 3] = [Peak, TotalGrowth, TotalGarbage];

fn load(bytes: Vec<u8>) -> Profile {
    let mut reader = Reader::new(std::io::Cursor::new(bytes), Options::default()).unwrap();
    Profile::load(&mut reader, StoreOptions::default()).unwrap()
}

fn findings(bytes: Vec<u8>) -> Vec<TraceFinding> {
    let profile = load(bytes);
    let scope = Scope::new(&profile, &Query::default(), Estimator::default());
    summary(&scope, &SummaryOptions::default()).findings
}

/// What is found of parts of a program; there is always something to say of the whole.
fn kinds(findings: &[TraceFinding]) -> Vec<TraceFindingKind> {
    findings
        .iter()
        .map(|finding| finding.kind)
        .filter(|kind| !OVERALL.contains(kind))
        .collect()
}

/// The name, the first amount and the first share in the finding of a rule.
fn of(findings: &[TraceFinding], kind: TraceFindingKind) -> (Option<&str>, f64, f64) {
    let finding = findings.iter().find(|finding| finding.kind == kind);
    let finding = finding.unwrap_or_else(|| panic!("{kind:?}: {findings:#?}"));
    let phrases = finding.sentence.iter();
    let name = phrases.clone().find_map(|phrase| match phrase {
        Phrase::Name(name) => Some(&**name),
        _ => None,
    });
    let bytes = phrases.clone().find_map(|phrase| match phrase {
        Phrase::Bytes(estimate) => Some(estimate.value),
        _ => None,
    });
    let percent = phrases.clone().find_map(|phrase| match phrase {
        Phrase::Percent(percent) => Some(*percent),
        _ => None,
    });
    (name, bytes.unwrap_or(0.0), percent.unwrap_or(0.0))
}

/// Blocks of many functions and sizes that live throughout the run of a second.
fn background() -> Vec<Life> {
    const STACKS: [&[&str]; 10] = [
        &["Main.run", "A.f"],
        &["Main.run", "B.f"],
        &["Main.run", "C.f"],
        &["Main.run", "D.f"],
        &["Main.run", "E.f"],
        &["Main.run", "F.f"],
        &["Main.run", "G.f"],
        &["Main.run", "H.f"],
        &["Main.run", "I.f"],
        &["Main.run", "J.f"],
    ];
    of_all_sizes(1000, 0, &STACKS).collect()
}

/// Blocks of five sizes, with as many bytes of each size and stack.
fn of_all_sizes(
    n: usize,
    start: u64,
    stacks: &'static [&'static [&'static str]],
) -> impl Iterator<Item = Life> {
    (0..n).flat_map(move |i| {
        let class = i / stacks.len() % 5;
        let life = Life::new(16 << class, start + i as u64, stacks[i % stacks.len()]);
        std::iter::repeat_n(life.until(1_000_000), 16 >> class)
    })
}

/// The bytes of the background.
const BACKGROUND: f64 = 256_000.0;

#[test]
fn nothing_is_found_in_a_balanced_program() {
    assert_eq!(kinds(&findings(lives::trace(&background(), 1.0, 0))), []);
}

/// The sentence of a rule, without the errors of its amounts.
fn sentence(findings: &[TraceFinding], kind: TraceFindingKind) -> String {
    let finding = findings.iter().find(|finding| finding.kind == kind);
    let finding = finding.unwrap_or_else(|| panic!("{kind:?}: {findings:#?}"));
    let text = |phrase: &Phrase| match phrase {
        Phrase::Text(text) | Phrase::Name(text) => text.clone(),
        Phrase::Bytes(bytes) => format!("{} B", bytes.value),
        Phrase::Percent(percent) => format!("{percent:.1} %"),
        Phrase::Seconds(time) => format!("{time:.2} s"),
        Phrase::Count(n) => n.to_string(),
        Phrase::AtEnd(_) => "at the end".to_owned(),
        other => panic!("{other:?}"),
    };
    finding.sentence.iter().map(text).collect()
}

#[test]
fn the_whole_program_comes_first() {
    let steady = (0..1000).map(|i| Life::new(16, i, &["Main.run", "A.f"]));
    let mut program: Vec<Life> = steady.collect();
    for i in 0..5000 {
        program.push(Life::new(16, i * 200, &["Main.run", "Log.append"]));
    }
    for i in 0..1000 {
        let garbage = Life::new(80, i * 900, &["Main.run", "Text.concat"]);
        program.push(garbage.until(i * 900 + 100));
    }
    let found = findings(lives::trace(&program, 1.0, 0));
    let first: Vec<_> = found.iter().take(3).map(|finding| finding.kind).collect();
    assert_eq!(first, OVERALL);
    let of_garbage = 80_000.0;
    let all = 6000.0 * 16.0 + of_garbage;
    let share = 100.0 * of_garbage / all;
    let duration = load(lives::trace(&program, 1.0, 0)).duration();
    assert_eq!(
        sentence(&found, TotalGarbage),
        format!(
            "{of_garbage} B of {all} B allocated ({share:.1} %) is freed within {:.2} s.",
            0.01 * duration
        )
    );
    let grows = sentence(&found, TotalGrowth);
    assert!(grows.starts_with("Memory grows: "), "{grows}");
    let peak = sentence(&found, Peak);
    assert!(
        peak.ends_with(", 96000 B is live: Log.append has 83.3 %, A.f 16.7 %."),
        "{peak}"
    );
}

#[test]
fn a_program_that_frees_all_does_not_grow() {
    let early = (0..500).map(|i| Life::new(16, i, &["Main.run", "A.f"]).until(600_000));
    let late = (0..500).map(|i| Life::new(16, 950_000 + i, &["Main.run", "B.f"]));
    let program: Vec<Life> = early.chain(late).collect();
    let found = findings(lives::trace(&program, 1.0, 0));
    let growth = sentence(&found, TotalGrowth);
    assert!(
        growth.starts_with("Memory does not grow: none that is older than "),
        "{growth}"
    );
}

#[test]
fn steady_memory_does_not_grow() {
    let lives = |start, end| (start..end).map(|i| Life::new(16, i, &["Main.run", "A.f"]));
    let last = Life::new(16, 999_999, &["Main.run", "B.f"]);
    for (end_of_half, expected) in [
        (None, "within the error as much as half-way"),
        (Some(600_000), "less than half-way"),
    ] {
        let half = lives(500, 1000).map(|life| match end_of_half {
            Some(end) => life.until(end),
            None => life,
        });
        let program: Vec<Life> = lives(0, 500).chain(half).chain([last.clone()]).collect();
        let found = findings(lives::trace(&program, 1.0, 0));
        let growth = sentence(&found, TotalGrowth);
        assert!(growth.starts_with("Memory does not grow: "), "{growth}");
        assert!(growth.contains(expected), "{growth}");
    }
}

#[test]
fn a_function_that_holds_much_of_the_peak_is_found() {
    let mut program = background();
    for i in 0..1000 {
        let stack = [
            "Main.run",
            "Stdlib__List.iter",
            "Cache.add",
            "Stdlib__Bytes.create",
        ];
        let bytes = [80, 40, 24, 160][i % 4];
        program.push(Life::new(bytes, 1000 + i as u64, &stack).until(900_000));
    }
    let held = 250.0 * (80.0 + 40.0 + 24.0 + 160.0);
    let found = findings(lives::trace(&program, 1.0, 0));
    let (name, bytes, percent) = of(&found, PeakHolder);
    assert_eq!((name, bytes), (Some("Cache.add"), held));
    assert!((percent - 100.0 * held / (held + BACKGROUND)).abs() < 1e-9);
    // What is under the call is what it holds itself.
    assert_eq!(kinds(&found), [PeakHolder]);
}

#[test]
fn a_call_under_which_most_was_allocated_is_found() {
    const STACKS: [&[&str]; 8] = [
        &["Main.run", "Parser.file", "Parser.a"],
        &["Main.run", "Parser.file", "Parser.b"],
        &["Main.run", "Parser.file", "Parser.c"],
        &["Main.run", "Parser.file", "Parser.d"],
        &["Main.run", "Parser.file", "Parser.e"],
        &["Main.run", "Parser.file", "Parser.f"],
        &["Main.run", "Parser.file", "Parser.g"],
        &["Main.run", "Parser.file", "Parser.h"],
    ];
    let mut program = background();
    program.extend(of_all_sizes(1600, 1000, &STACKS));
    let found = findings(lives::trace(&program, 1.0, 0));
    assert_eq!(kinds(&found), [PeakCall]);
    let (name, bytes, _) = of(&found, PeakCall);
    assert_eq!((name, bytes), (Some("Parser.file"), 1.6 * BACKGROUND));
    let call = found
        .iter()
        .find(|finding| finding.kind == PeakCall)
        .unwrap();
    assert_eq!(call.report, "tree");
    let parameters = &call.parameters;
    assert!(
        parameters.contains(&("focus".into(), "Parser.file".to_owned())),
        "{parameters:?}"
    );
}

#[test]
fn growth_is_found() {
    let mut program = background();
    for i in 0..5000 {
        program.push(Life::new(
            16,
            i * 200,
            &["Main.run", "Log.append", "Stdlib__Buffer.add"],
        ));
    }
    let found = findings(lives::trace(&program, 1.0, 0));
    // Old are the blocks of the first 90 % at the end, and of 40 % half-way.
    let (name, bytes, _) = of(&found, Growth);
    assert_eq!(name, Some("Log.append"));
    assert!((bytes - 2500.0 * 16.0).abs() <= 32.0, "{bytes}");
}

#[test]
fn memory_that_goes_up_and_down_is_not_said_to_grow() {
    let mut program = background();
    // Built again each 200 ms, a little larger each time, and gone in between.
    for round in 0..5 {
        let start = round * 200_000;
        for birth in (start..start + 150_000 + 10_000 * round).step_by(500) {
            let life = Life::new(80, birth, &["Main.run", "Cache.add"]);
            program.push(if round < 4 {
                life.until(start + 195_000)
            } else {
                life
            });
        }
    }
    let found = kinds(&findings(lives::trace(&program, 1.0, 0)));
    assert!(!found.contains(&Growth), "{found:?}");
}

#[test]
fn large_blocks_and_dominating_sizes_are_found() {
    let mut program = background();
    program.push(Life::new(80_000, 2000, &["Main.run", "Image.load"]).until(900_000));
    let found = findings(lives::trace(&program, 1.0, 0));
    let (name, bytes, percent) = of(&found, LargeBlock);
    assert_eq!((name, bytes), (Some("Image.load"), 80_000.0 - 8.0));
    assert!((percent - 100.0 * 80_000.0 / (80_000.0 + BACKGROUND)).abs() < 1e-9);

    let mut program = background();
    let sites = background();
    for i in 0..4000_usize {
        let stack = &sites[i * 13 % sites.len()].stack;
        program.push(Life::new(48, 1000 + i as u64, stack).until(900_000));
    }
    let found = findings(lives::trace(&program, 1.0, 0));
    assert_eq!(kinds(&found), [SizeClass]);
    // 48 bytes are five words and a header, and 64 bytes are seven.
    let (name, bytes, _) = of(&found, SizeClass);
    assert_eq!((bytes, name), (4000.0 * 48.0 + BACKGROUND / 5.0, None));
}

#[test]
fn garbage_is_found_and_what_was_promoted_first() {
    let mut program = background();
    for i in 0..9000 {
        let birth = 2000 + i * 100;
        let life = Life::new(
            64,
            birth,
            &["Main.run", "Lexer.token", "Stdlib__String.sub"],
        );
        let life = life.until(birth + 5000);
        program.push(if i % 2 == 0 {
            life.promoted(birth + 50)
        } else {
            life
        });
    }
    let found = findings(lives::trace(&program, 1.0, 0));
    let (name, bytes, percent) = of(&found, Garbage);
    assert_eq!((name, bytes), (Some("Lexer.token"), 9000.0 * 64.0));
    assert!((percent - 100.0 * bytes / (bytes + BACKGROUND)).abs() < 1e-9);
    let (_, bytes, percent) = of(&found, PromotedGarbage);
    assert_eq!((bytes, percent), (4500.0 * 64.0, 100.0));
}

#[test]
fn damage_and_too_few_samples_are_found() {
    let bytes = lives::trace(&background(), 0.005, 0);
    let found = findings(bytes.clone());
    let (name, resolved, _) = of(&found, Resolution);
    assert_eq!((resolved, name), (4.0 * 8.0 / 0.005, None));
    // That is less than 2 % of the peak at a higher rate.
    let found = findings(lives::trace(&background(), 0.1, 0));
    assert!(!kinds(&found).contains(&Resolution), "{found:#?}");
    let found = findings(bytes[..bytes.len() - 100].to_vec());
    assert_eq!(found[0].kind, Damage);
}

/// Of many equal functions, none is found because chance made it large.
#[test]
fn noise_is_not_a_finding() {
    const RUNS: u64 = 200;
    const NAMES: [&str; 20] = [
        "A.f", "B.f", "C.f", "D.f", "E.f", "F.f", "G.f", "H.f", "I.f", "J.f", "K.f", "L.f", "M.f",
        "N.f", "O.f", "P.f", "Q.f", "R.f", "S.f", "T.f",
    ];
    let program: Vec<Life> = (0..20_000_usize)
        .map(|i| {
            let bytes = 16 << (i / 20 % 6);
            // Half of the blocks are replaced again and again.
            let birth = i as u64 * 50;
            let life = Life::new(bytes, birth, &["Main.run", NAMES[i % 20]]);
            if i < 2000 {
                life
            } else {
                life.until(birth + 100_000)
            }
        })
        .collect();
    let mut found = 0;
    for seed in 0..RUNS {
        let findings = findings(lives::trace(&program, 0.001, seed));
        let of_functions = kinds(&findings).into_iter();
        found += of_functions.filter(|kind| *kind != Resolution).count();
    }
    assert!(found <= 2, "{found} in {RUNS} runs");
}
