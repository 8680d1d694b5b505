//! Recordings that are kept within a size, against the full ones of the same runs.

use crate::common;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use heapline_export::cut::Cut;
use heapline_export::dump::{Format, dump};
use heapline_model::Space;
use heapline_profile::query::Query;
use heapline_profile::{Estimator, Profile, Scope};
use heapline_testkit::{generate, harm, plain};
use heapline_trace::keep::Keeper;
use heapline_trace::{
    Block, Decoder, EarlyEnd, Ending, Frame, FrameSink, Options, Reader, Source, Step, Writer,
};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A server: requests allocate much that dies at once, some that lives for a while, and a little that
/// stays. It changes its ways in the middle.
fn server(requests: u64, domains: u16) -> Vec<u8> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    let resolve = |code: u64, frames: &mut FrameSink<'_>| {
        frames.push(Frame {
            file: b"server.ml",
            name: format!("Server.f{code}").as_bytes(),
            line: u32::try_from(code).unwrap(),
            start_char: 1,
            end_char: 9,
        });
    };
    let mut ends = BinaryHeap::new();
    let mut id = 0;
    for request in 0..requests {
        let time = request * 2000;
        let domain = u16::try_from(request % u64::from(domains)).unwrap();
        while let Some(&Reverse((end, domain, id, is_death))) = ends.peek()
            && end <= time
        {
            ends.pop();
            if is_death {
                writer.collect(domain, end, id).unwrap();
            } else {
                writer.promote(domain, end, id).unwrap();
            }
        }
        let handler = random.random_range(0..4) + if request > requests / 2 { 2 } else { 0 };
        for step in 0..random.random_range(1..6) {
            let stack = [1, 2 + handler, 100 + handler * 3 + step % 3, 200 + step];
            let (length, source) = match random.random_range(0..20) {
                0 => (4000 + 100 * step, Source::Major),
                1 => (500, Source::External),
                n => (1 + n % 4, Source::Minor),
            };
            let samples = 1 + if length > 400 {
                random.random_range(0..5)
            } else {
                0
            };
            let block = Block {
                length,
                samples,
                source,
            };
            writer
                .alloc(domain, time, id, block, &stack, resolve)
                .unwrap();
            let life = match random.random_range(0..1000) {
                0 => None,
                1..50 => Some(random.random_range(1_000_000..60_000_000)),
                50..200 => Some(random.random_range(10_000..1_000_000)),
                _ => Some(random.random_range(100..3000)),
            };
            if let Some(life) = life {
                if source == Source::Minor && life > 10_000 {
                    ends.push(Reverse((time + 1000, domain, id, false)));
                }
                // Another domain may notice the death.
                let other = (domain + u16::from(step == 1)) % domains;
                ends.push(Reverse((time + life, other, id, true)));
            }
            id += 1;
        }
    }
    writer.finish().unwrap()
}

/// The trace that is kept of another one.
fn keep(trace: &[u8], budget: u64) -> (Vec<u8>, Keeper) {
    let mut decoder = Decoder::new(Options::new());
    let mut keeper = Keeper::new(budget);
    let mut kept = Vec::new();
    for (part, bytes) in trace.chunks(1 << 16).enumerate() {
        decoder.push(bytes);
        while let Step::Packet(_) = decoder.visit_packet(&mut keeper).unwrap() {
            keeper.fit();
        }
        // As it is written from time to time.
        if part % 16 == 1 {
            write(&decoder, &mut keeper, budget, &mut kept);
        }
    }
    decoder.finish();
    while decoder.visit_packet(&mut keeper).unwrap() != Step::End {
        keeper.fit();
    }
    write(&decoder, &mut keeper, budget, &mut kept);
    (kept, keeper)
}

fn write(decoder: &Decoder, keeper: &mut Keeper, budget: u64, kept: &mut Vec<u8>) {
    let info = decoder.info().unwrap();
    loop {
        kept.clear();
        let size = keeper.write(info, decoder.locations(), None, kept).unwrap();
        if size <= budget {
            assert_eq!(size, kept.len() as u64);
            return;
        }
        keeper.fit();
        assert!(!keeper.is_full());
    }
}

/// A block of either recording: its life, the stack and heap it counts for, and its amounts.
struct Row {
    birth: u64,
    promotion: Option<u64>,
    death: Option<u64>,
    key: String,
    figures: [f64; 6],
}

fn rows(profile: &Profile, estimator: Estimator) -> Vec<Row> {
    let scope = Scope::new(profile, &Query::default(), estimator);
    let mut rows = Vec::new();
    let mut names = HashMap::new();
    scope.for_each_block(|block| {
        let amount = block.amount;
        let names = names
            .entry(block.stack)
            .or_insert_with(|| common::functions(profile, block.stack).join(" "));
        rows.push(Row {
            birth: block.allocated,
            promotion: block.promoted,
            death: block.collected,
            key: format!("{:?} {} {names}", block.space, block.lane),
            figures: [
                amount.bytes.value,
                amount.bytes.variance,
                amount.bytes.skew,
                amount.blocks.value,
                amount.samples as f64,
                amount.sampled as f64,
            ],
        });
    });
    rows
}

type Condition<'a> = &'a dyn Fn(&Row) -> bool;

/// The sums of the rows that a condition is true of.
fn totals(rows: &[Row], is_inside: impl Fn(&Row) -> bool) -> BTreeMap<&str, [f64; 6]> {
    let mut totals = HashMap::new();
    for row in rows.iter().filter(|row| is_inside(row)) {
        let sums: &mut [f64; 6] = totals.entry(row.key.as_str()).or_default();
        for (sum, figure) in sums.iter_mut().zip(row.figures) {
            *sum += figure;
        }
    }
    totals.into_iter().collect()
}

/// The blocks that are alive at the end, with everything that is known of them.
fn alive(profile: &Profile) -> Vec<String> {
    let scope = Scope::new(profile, &Query::default(), Estimator::default());
    let mut blocks = Vec::new();
    scope.at_end().for_each_block(|block| {
        let names = common::functions(profile, block.stack);
        blocks.push(format!(
            "{} {:?} {:?} {} {} {:?} {} {}",
            block.allocated,
            block.promoted,
            block.collected,
            block.size,
            block.samples,
            block.space,
            block.lane,
            names.join(" ")
        ));
    });
    blocks.sort();
    blocks
}

/// A run of 20 times the size: what is alive is the same block by block, and at every boundary what was
/// alive, allocated, promoted and freed is the same for every stack, with its errors.
#[test]
fn a_kept_recording_agrees_with_the_full_one() {
    for domains in [1, 3] {
        let trace = server(60_000, domains);
        let budget = trace.len() as u64 / 20;
        let (bytes, keeper) = keep(&trace, budget);
        assert!(bytes.len() as u64 <= budget);
        let (full, kept) = (common::parse(&trace), common::parse(&bytes));
        assert!(kept.damage().is_empty(), "{:?}", kept.damage());
        assert_eq!(kept.boundaries(), keeper.boundaries());
        assert!(kept.boundaries().len() >= 6, "{:?}", kept.boundaries());
        assert!(alive(&full).len() > 100);
        assert_eq!(alive(&full), alive(&kept));
        assert!((full.duration() - kept.duration()).abs() < 1e-9);

        for estimator in [Estimator::HorvitzThompson, Estimator::Count] {
            let (full_rows, kept_rows) = (rows(&full, estimator), rows(&kept, estimator));
            for boundary in kept.boundaries().iter().copied().chain([u64::MAX]) {
                let before = |time: u64| time < boundary;
                let conditions: [(&str, Condition<'_>); 4] = [
                    ("allocated", &|row| before(row.birth)),
                    ("promoted", &|row| row.promotion.is_some_and(before)),
                    ("freed", &|row| row.death.is_some_and(before)),
                    ("alive", &|row| {
                        before(row.birth) && !row.death.is_some_and(before)
                    }),
                ];
                for (what, condition) in conditions {
                    let full = totals(&full_rows, condition);
                    let kept = totals(&kept_rows, condition);
                    assert!(full.keys().eq(kept.keys()), "{what} at {boundary}");
                    for ((key, full), kept) in full.iter().zip(kept.values()) {
                        for (a, b) in full.iter().zip(kept) {
                            let is_same = (a - b).abs() <= a.abs() * 1e-9;
                            assert!(is_same, "{what} at {boundary}: {key}: {a} {b}");
                        }
                    }
                }
            }
        }

        // Peaks and curves are of moments that are known.
        let [full_scope, kept_scope] = [&full, &kept]
            .map(|profile| Scope::new(profile, &Query::default(), Estimator::default()));
        let bytes = |scope: &Scope<'_>| scope.total().bytes.value;
        let (full_peak, kept_peak) = (bytes(&full_scope.at_peak()), bytes(&kept_scope.at_peak()));
        assert!(
            kept_peak <= full_peak * (1.0 + 1e-9),
            "{full_peak} {kept_peak}"
        );
        assert!(kept_peak > full_peak * 0.9, "{full_peak} {kept_peak}");
        for pair in kept.boundaries().windows(2) {
            let before = bytes(&full_scope.live_at(full.before(pair[0])));
            for time in [pair[0], u64::midpoint(pair[0], pair[1]), pair[1] - 1] {
                for moment in [kept.before(time), kept.after(time)] {
                    let found = bytes(&kept_scope.live_at(moment));
                    assert!((found - before).abs() <= before * 1e-9, "{found} {before}");
                }
            }
        }

        // Behind the last boundary every block is there.
        let last = *kept.boundaries().last().unwrap();
        let latest = |profile: &Profile| {
            let mut blocks = Vec::new();
            let scope = Scope::new(profile, &Query::default(), Estimator::default());
            scope.for_each_block(|block| {
                if block.collected.is_some_and(|time| time >= last) {
                    let life = (block.allocated, block.promoted, block.collected);
                    blocks.push((life, block.size, block.samples, block.space, block.lane));
                }
            });
            blocks.sort();
            blocks
        };
        assert!(latest(&full).len() > 100);
        assert_eq!(latest(&full), latest(&kept));
    }
}

/// Older intervals are longer, and mean lifetimes are kept.
#[test]
fn resolution_falls_with_age_and_means_stay() {
    let trace = server(60_000, 1);
    let (bytes, keeper) = keep(&trace, trace.len() as u64 / 20);
    let boundaries = keeper.boundaries();
    let lengths: Vec<u64> = boundaries
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .collect();
    assert!(lengths[0] > 2 * lengths[lengths.len() - 1], "{lengths:?}");
    let mean_life = |bytes: &[u8]| {
        let profile = common::parse(bytes);
        let scope = Scope::new(&profile, &Query::default(), Estimator::default());
        let (mut sum, mut weight) = (0.0, 0.0);
        scope.for_each_block(|block| {
            if let Some(end) = block.collected {
                sum += (end - block.allocated) as f64 * block.amount.blocks.value;
                weight += block.amount.blocks.value;
            }
        });
        sum / weight
    };
    let (full, kept) = (mean_life(&trace), mean_life(&bytes));
    assert!((full - kept).abs() < 2.0, "{full} {kept}");
}

/// Every row of a table and every dumped block says how many it stands for.
#[test]
fn rows_tell_how_many_blocks_were_merged() {
    let trace = server(20_000, 1);
    let (bytes, keeper) = keep(&trace, trace.len() as u64 / 10);
    let blocks = common::parse(&trace).len() as u64;
    // Stacks are last, and quoted; promotions and collections have none.
    let sum = |text: Vec<u8>| -> u64 {
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.lines()
                .next()
                .unwrap()
                .ends_with(",sampled_blocks,stack")
        );
        let rows = text.lines().filter_map(|line| line.split_once(",\""));
        let blocks = rows.map(|(row, _)| row.rsplit(',').next().unwrap().parse::<u64>().unwrap());
        blocks.sum()
    };
    assert!((keeper.len() as u64) < blocks / 2);
    for trace in [&trace, &bytes] {
        let profile = common::parse(trace);
        let mut exported = Vec::new();
        heapline_export::csv(&common::whole(&profile), &mut exported).unwrap();
        assert_eq!(sum(exported), blocks);
        let mut reader = Reader::new(&trace[..], Options::new()).unwrap();
        let mut dumped = Vec::new();
        dump(&mut reader, Format::Csv, &mut dumped).unwrap();
        assert_eq!(sum(dumped), blocks);
    }
}

/// Part of a merged block is nothing that could be told.
#[test]
fn a_kept_recording_is_not_cut() {
    let trace = server(20_000, 1);
    let (bytes, _) = keep(&trace, trace.len() as u64 / 10);
    let mut reader = Reader::new(&bytes[..], Options::new()).unwrap();
    let error = Cut::default().scan(&mut reader).unwrap_err();
    assert!(error.to_string().contains("merged"), "{error}");
}

/// memtrace's own reader makes the checks that this independent one makes.
#[test]
fn memtrace_can_read_a_kept_recording() {
    let trace = server(20_000, 2);
    let (bytes, _) = keep(&trace, trace.len() as u64 / 20);
    let samples = |bytes: &[u8]| -> u64 {
        let trace = plain::read(bytes).unwrap();
        let samples = trace.events.iter().map(|event| match event {
            heapline_testkit::OwnedEvent::Alloc { samples, .. } => *samples,
            _ => 0,
        });
        samples.sum()
    };
    assert_eq!(samples(&trace), samples(&bytes));
}

/// Different stacks without end: they are cut, the sums stay.
#[test]
fn stacks_are_cut_if_there_are_too_many() {
    let program = generate::Program {
        allocations: 200_000,
        locations: 200,
        depth: 20,
        ..Default::default()
    };
    let trace = program.trace();
    let budget = trace.len() as u64 / 20;
    let (bytes, _) = keep(&trace, budget);
    assert!(bytes.len() as u64 <= budget);
    let (full, kept) = (common::parse(&trace), common::parse(&bytes));
    assert!(kept.damage().is_empty(), "{:?}", kept.damage());
    assert_eq!(alive(&full), alive(&kept));
    for space in [Space::Minor, Space::Major, Space::External] {
        let total = |profile: &Profile| {
            let scope = Scope::new(profile, &Query::default(), Estimator::default());
            let mut total = [0.0; 2];
            scope.for_each_block(|block| {
                if block.space == space {
                    total[0] += block.amount.bytes.value;
                    total[1] += block.amount.bytes.variance;
                }
            });
            total
        };
        for (a, b) in total(&full).into_iter().zip(total(&kept)) {
            // Lengths that are nearly the same are merged too.
            assert!((a - b).abs() <= a * 1e-3, "{space:?} {a} {b}");
        }
    }
}

/// If what is alive does not fit, that is said, and nothing is lost before.
#[test]
fn what_is_alive_may_be_too_much() {
    let trace = generate::random_stacks(20_000, 3);
    let mut decoder = Decoder::new(Options::new());
    decoder.push(&trace);
    decoder.finish();
    let budget = trace.len() as u64 / 4;
    let mut keeper = Keeper::new(budget);
    let mut kept = Vec::new();
    while !keeper.is_full() && decoder.visit_packet(&mut keeper).unwrap() != Step::End {
        kept.clear();
        let end = EarlyEnd {
            reason: Ending::Full,
            errno: 0,
            after_ms: 3,
        };
        let info = decoder.info().unwrap();
        let size = keeper
            .write(info, decoder.locations(), Some(end), &mut kept)
            .unwrap();
        keeper.fit();
        if size <= budget {
            let profile = common::parse(&kept);
            assert_eq!(profile.damage().count, 1, "it ended early");
            assert_eq!(profile.len(), keeper.len());
        }
    }
    assert!(keeper.is_full());
}

/// A few blocks whose names alone are more than the size: it ends, though their number says that they fit.
#[test]
fn names_may_be_too_much() {
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    for id in 0..300 {
        let block = Block {
            length: 3,
            samples: 1,
            source: Source::Minor,
        };
        let name = |code: u64, frames: &mut FrameSink<'_>| {
            frames.push(Frame {
                file: b"names.rs",
                name: format!("{code:01000}").as_bytes(),
                line: 1,
                start_char: 1,
                end_char: 2,
            });
        };
        let stack = [2 * id, 2 * id + 1];
        writer.alloc(0, 10 * id, id, block, &stack, name).unwrap();
        if id % 2 == 0 {
            writer.collect(0, 10 * id + 5, id).unwrap();
        }
    }
    let trace = writer.finish().unwrap();
    let budget = trace.len() as u64 / 2;
    assert!(300 * 512 < budget);
    let mut decoder = Decoder::new(Options::new());
    decoder.push(&trace);
    decoder.finish();
    let mut keeper = Keeper::new(budget);
    while decoder.visit_packet(&mut keeper).unwrap() != Step::End {
        keeper.fit();
    }
    let info = decoder.info().unwrap();
    let has_ended = (0..50).any(|_| {
        let mut kept = Vec::new();
        let size = keeper.write(info, decoder.locations(), None, &mut kept);
        keeper.fit();
        size.unwrap() <= budget || keeper.is_full()
    });
    assert!(has_ended);
}

/// The file that is followed comes from the program, which may write anything.
#[test]
fn damaged_recordings_are_kept_as_far_as_they_go() {
    let trace = server(3000, 2);
    let budget = trace.len() as u64 / 5;
    for seed in 0..60 {
        let harmed = harm::harm(&trace, seed);
        let mut decoder = Decoder::new(Options::new());
        decoder.push(&harmed.bytes);
        decoder.finish();
        let mut keeper = Keeper::new(budget);
        while decoder.visit_packet(&mut keeper).unwrap() != Step::End {
            keeper.fit();
        }
        let mut kept = Vec::new();
        let info = decoder.info().unwrap();
        loop {
            kept.clear();
            let size = keeper.write(info, decoder.locations(), None, &mut kept);
            if size.unwrap() <= budget || keeper.is_full() {
                break;
            }
            keeper.fit();
        }
        let profile = common::parse(&kept);
        assert!(
            profile.damage().is_empty(),
            "{seed}: {:?}",
            profile.damage()
        );
    }
}
