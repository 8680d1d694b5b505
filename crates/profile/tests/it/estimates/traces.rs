//! Coverage of intervals through everything that lies between a trace and an answer.

use heapline_formats::{Options, Reader};
use heapline_profile::reports::{DiffOptions, diff};
use heapline_profile::{Estimator, Profile, Query, Scope, StoreOptions, Sum};
use heapline_trace::{Block, Frame, TraceInfo, Writer};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::program::{BOTH, Blocks, IsPart, PARTS, Record, Unit, draw, external, minor};

const RATE: f64 = 1e-3;

/// The trace of a run. Blocks that are not alive die at half of it.
fn trace(program: &[Blocks], random: &mut impl RngExt) -> Profile {
    let info = TraceInfo {
        sample_rate: RATE,
        word_size: 64,
        executable_name: "simulated".into(),
        host_name: String::new(),
        ocaml_runtime_params: String::new(),
        seed: None,
        pid: 1,
        start_time: 0,
        initial_domain: 0,
        context: None,
    };
    let mut writer = Writer::new(Vec::new(), &info).unwrap();
    let (mut id, mut dead) = (0, Vec::new());
    for blocks in program {
        let words = blocks.words();
        let seen = -(words as f64 * (-RATE).ln_1p()).exp_m1();
        for _ in 0..draw(blocks.count, seen, random) {
            // Where the first hit is, given that there is one; then the others.
            let chance: f64 = random.random_range(0.0..seen);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "less than the number of words"
            )]
            let first = ((-chance).ln_1p() / (-RATE).ln_1p()) as u64;
            let block = Block {
                length: blocks.length,
                samples: 1 + draw(words.saturating_sub(first + 1), RATE, random),
                source: blocks.source,
            };
            writer
                .alloc(0, id, id, block, &[blocks.site], |site, frames| {
                    frames.push(Frame {
                        file: b"program.ml",
                        name: format!("Program.site{site}").as_bytes(),
                        line: 1,
                        start_char: 0,
                        end_char: 1,
                    });
                })
                .unwrap();
            if !blocks.live {
                dead.push(id);
            }
            id += 1;
        }
    }
    for block in dead {
        writer.collect(0, 1_000_000, block).unwrap();
    }
    let bytes = writer.finish().unwrap();
    let bytes = std::io::Cursor::new(bytes.clone());
    let mut reader = Reader::new(bytes, Options::default()).unwrap();
    Profile::load(&mut reader, StoreOptions::default()).unwrap()
}

#[test]
fn answers_about_traces_are_right() {
    const RUNS: usize = 1000;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let before = [
        minor(3, 20_000, 1, true),
        minor(11, 5000, 1, false),
        external(1500, 40, 2, true),
        minor(257, 200, 2, false),
    ];
    let mut after = before;
    after[1].count = 8000;
    let queries = [
        ("", PARTS[0].1),
        ("live at 2s", PARTS[1].1),
        ("site = Program.site1", PARTS[2].1),
        ("not site = Program.site1", PARTS[3].1),
    ]
    .map(|(text, part)| (Query::parse(text).unwrap(), part));
    let truth = |program: &[Blocks], part: IsPart, unit| -> f64 {
        let blocks = program.iter().filter(|blocks| part(blocks));
        blocks.map(|blocks| blocks.truth(unit)).sum()
    };
    for estimator in BOTH {
        let mut records: [Record; 8] = Default::default();
        let mut changes: [Record; 4] = Default::default();
        for _ in 0..RUNS {
            let (old, new) = (trace(&before, &mut random), trace(&after, &mut random));
            for (i, (query, part)) in queries.iter().enumerate() {
                let total = Scope::new(&old, query, estimator).total();
                for (j, unit) in [Unit::Bytes, Unit::Blocks].into_iter().enumerate() {
                    let sum = unit.of(&total);
                    records[2 * i + j].add(sum, sum.estimate(), truth(&before, *part, unit));
                }
            }
            let scopes = [&old, &new].map(|of| Scope::new(of, &Query::default(), estimator));
            let diff = diff(&scopes[0], &scopes[1], &DiffOptions::default());
            let rows = diff.rows.iter().map(|row| (&*row.label.name, &row.change));
            for (name, change) in rows.chain([("all", &diff.total)]) {
                let (place, part) = match name {
                    "Program.site1" => (0, PARTS[2].1),
                    "Program.site2" => (1, PARTS[3].1),
                    _ => (2, PARTS[0].1),
                };
                let truth = truth(&after, part, Unit::Bytes) - truth(&before, part, Unit::Bytes);
                let sum = Sum {
                    value: change.bytes.value,
                    variance: change.bytes.standard_error().powi(2),
                    ..Sum::default()
                };
                changes[place].add(sum, change.bytes, truth);
            }
        }
        for record in records.iter().chain(&changes[..3]) {
            assert!(record.bias().abs() < 4.0, "{}", record.bias());
            // Three standard errors of a thousand runs.
            let coverage = record.coverage();
            assert!((93.0..97.0).contains(&coverage), "{coverage}");
        }
    }
}

/// Of changes that are called real, one in twenty is not.
#[test]
fn chance_is_not_called_a_change() {
    const RUNS: usize = 500;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(8);
    let options = DiffOptions {
        rows: usize::MAX,
        ..DiffOptions::default()
    };
    let small: Vec<Blocks> = (1..=20).map(|site| minor(4, 10_000, site, true)).collect();
    let mut changed = small.clone();
    changed[6].count = 30_000;
    let mut programs = vec![
        ("nothing changes".to_owned(), small.clone(), small.clone()),
        ("one site changes".to_owned(), small.clone(), changed),
    ];
    for words in [1000, 2000, 2500, 3000, 5000] {
        let mut blocks = small.clone();
        blocks.push(external(words, 1, 21, true));
        let name = format!("nothing changes, with a block of {words} words");
        programs.push((name, blocks.clone(), blocks));
    }
    for (name, before, after) in programs {
        let (mut false_share, mut found) = (0.0, 0);
        for _ in 0..RUNS {
            let profiles = [&before, &after].map(|program| trace(program, &mut random));
            let [old, new] = [&profiles[0], &profiles[1]]
                .map(|profile| Scope::new(profile, &Query::default(), Estimator::default()));
            let diff = diff(&old, &new, &options);
            let real = diff.rows.iter().filter(|row| row.change.is_real);
            let is_true = real.map(|row| row.label.name == "Program.site7" && before != after);
            let (mut all, mut wrong) = (0.0_f64, 0.0);
            for is_true in is_true {
                all += 1.0;
                wrong += f64::from(u8::from(!is_true));
                found += usize::from(is_true);
            }
            false_share += wrong / all.max(1.0);
        }
        let percent = 100.0 * false_share / RUNS as f64;
        println!("{name}: {percent:.1} % of real changes are not");
        // Three standard errors of 500 runs above 5 %.
        assert!(percent < 8.0, "{name}: {percent} %");
        if before != after {
            assert!(found > RUNS * 9 / 10, "{found}");
        }
    }
}
