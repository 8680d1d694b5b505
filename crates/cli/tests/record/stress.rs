//! Attaches and snapshots at random moments, of a program with four domains that allocate all the time.
//!
//! `cargo xtask stress` does hundreds of them with each OCaml 5; the ordinary tests do a few.

use std::fs::File;
use std::io::{BufReader, Write};
use std::time::Duration;

use heapline_heap::Graph;

use crate::attach::{Running, assert_undisturbed, attach_until, is_any, said};
use crate::run::heapline;
use crate::toolchain::{Compiler, with_domains};

/// How many attaches and snapshots: `500,200`.
const TIMES: &str = "HEAPLINE_STRESS";
/// The number that the moments are made from.
const SEED: &str = "HEAPLINE_STRESS_SEED";

/// Attaches and snapshots after which the program ends, and its result is checked.
const LIFE: usize = 50;

/// Random numbers (`SplitMix64`).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

#[test]
fn attaches_and_snapshots_at_random_moments_harm_nobody() {
    let times = std::env::var(TIMES).unwrap_or_else(|_| "6,4".to_owned());
    let (attaches, snapshots) = times.split_once(',').unwrap();
    let times = [attaches, snapshots].map(|number| number.parse().unwrap());
    let seed = std::env::var(SEED).map_or(1, |seed| seed.parse().unwrap());
    for compiler in with_domains("attaches_and_snapshots_at_random_moments_harm_nobody") {
        stress(compiler, times, seed);
    }
}

fn stress(compiler: &Compiler, [mut attaches, mut snapshots]: [usize; 2], seed: u64) {
    let version = &compiler.version;
    let program = compiler.program("ocaml5/steady_domains");
    let mut random = Random(seed);
    let (all, mut blocks, mut longer) = ([attaches, snapshots], 0, 0);
    while attaches + snapshots > 0 {
        let running = Running::start(&program, &[]);
        for _ in 0..LIFE.min(attaches + snapshots) {
            heapline_testkit::pass_time(Duration::from_micros(random.below(20_000)));
            // Both kinds are used up at about the same time.
            if random.below((attaches + snapshots) as u64) < attaches as u64 {
                attaches -= 1;
                let first = format!("{}ms", 1 + random.below(40));
                let (sampled, tries) = attach(&running, &first);
                blocks += sampled;
                longer += usize::from(tries > 1);
            } else {
                snapshots -= 1;
                snapshot(&running, version);
            }
        }
        assert_undisturbed(&program, &running.finish(), 4);
    }
    let [attaches, snapshots] = all;
    let text = format!(
        "OCaml {version}, seed {seed}: {attaches} attaches with {blocks} sampled blocks, {longer} of them again because \
         nothing was allocated in the first milliseconds; {snapshots} snapshots\n"
    );
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

/// Attaches for some milliseconds, or for longer if nothing is sampled in them. Returns the sampled blocks, and how often that
/// was tried.
fn attach(running: &Running, first: &str) -> (usize, usize) {
    let trace = running.folder.path().join("trace.ctf");
    let options = ["--rate", "1e-3", "--force", "-o", trace.to_str().unwrap()];
    let mut tries = 0;
    let (_, trace) = attach_until(&trace, is_any, |period| {
        let period = if tries == 0 { first } else { period };
        tries += 1;
        running.attach(&[&["--for", period], &options[..]].concat())
    });
    (trace.allocations.len(), tries)
}

fn snapshot(running: &Running, version: &str) {
    let path = running.folder.path().join("snapshot.heap");
    let output = heapline()
        .args(["snapshot", &running.pid().to_string(), "--force", "-o"])
        .arg(&path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{version}: {}", said(&output));
    let graph = Graph::read(BufReader::new(File::open(path).unwrap())).unwrap();
    assert_eq!(graph.damage().total(), 0, "{version}");
    assert!(graph.blocks() > 100, "{version}");
}
