//! Eight threads that allocate, free, and free each other's blocks: none is lost, none is freed twice,
//! and each sampled one's death is matched with its birth.
//!
//! For a second; `HEAPLINE_STRESS=60` is for a minute.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use heapline::{Options, Profiler, Tracker};

#[global_allocator]
static ALLOC: heapline::Alloc = heapline::Alloc::system();

const THREADS: usize = 8;

/// A block that knows what is in it.
struct Marked(Vec<u8>);

impl Marked {
    fn new(random: u64) -> Self {
        let size = match random % 100 {
            0 => 70_000 + random % 200_000,
            1..10 => 1000 + random % 20_000,
            _ => 1 + random % 500,
        };
        let mark = random.to_le_bytes()[3];
        Self(vec![mark; usize::try_from(size).unwrap()])
    }

    fn check(&self) {
        let mark = self.0[0];
        assert!(
            self.0.iter().all(|byte| *byte == mark),
            "somebody else wrote to a block"
        );
    }
}

/// One thread's work: returns what it has left.
fn work(number: u64, others: &[SyncSender<Marked>], inbox: &Inbox, stop: &AtomicBool) -> u64 {
    let mut state = number + 1;
    let mut held: Vec<Marked> = Vec::new();
    let mut rounds = 0;
    while !stop.load(Ordering::Relaxed) {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let random = state >> 20;
        let mut block = Marked::new(random);
        match random % 7 {
            0 => drop(block),
            1 => {
                // Another size, by realloc.
                let mark = block.0[0];
                block.0.resize(block.0.len() * 2 + 1, mark);
                held.push(block);
            }
            2 | 3 => {
                let other = usize::try_from(random >> 8).unwrap() % others.len();
                // If its inbox is full, the block is dropped here.
                let _ = others[other].try_send(block);
            }
            _ => held.push(block),
        }
        while let Ok(block) = inbox.lock().unwrap().try_recv() {
            block.check();
        }
        if held.len() > 200 {
            let dead = held.swap_remove(usize::try_from(random >> 16).unwrap() % held.len());
            dead.check();
        }
        rounds += 1;
    }
    held.iter().for_each(Marked::check);
    rounds
}

type Inbox = Mutex<std::sync::mpsc::Receiver<Marked>>;

#[test]
fn no_block_is_lost_or_freed_twice_and_every_death_has_its_birth() {
    let seconds = std::env::var("HEAPLINE_STRESS").ok();
    let seconds = seconds.map_or(1, |seconds| seconds.parse().unwrap());
    let alive: Arc<Mutex<HashSet<u64>>> = Arc::default();
    let births = Arc::new(AtomicU64::new(0));
    let mistakes = Arc::new(AtomicU64::new(0));
    let tracker = {
        let (alive, births) = (alive.clone(), births.clone());
        Tracker::new(move |_| {
            let number = births.fetch_add(1, Ordering::Relaxed);
            alive.lock().unwrap().insert(number);
            Some(number)
        })
    };
    let tracker = {
        let (alive, mistakes) = (alive.clone(), mistakes.clone());
        tracker.on_free(move |_, number| {
            if !alive.lock().unwrap().remove(&number) {
                mistakes.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let profiler = Profiler::start(Options::every(1024).seed(1), tracker).unwrap();
    let stop = AtomicBool::new(false);
    let (senders, inboxes): (Vec<_>, Vec<Inbox>) = (0..THREADS)
        .map(|_| sync_channel(50))
        .map(|(sender, receiver)| (sender, Mutex::new(receiver)))
        .unzip();
    let rounds: u64 = thread::scope(|scope| {
        let (senders, stop) = (&senders, &stop);
        let threads: Vec<_> = inboxes
            .iter()
            .zip(0..)
            .map(|(inbox, number)| scope.spawn(move || work(number, senders, inbox, stop)))
            .collect();
        // Threads that come and go, meanwhile.
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(seconds) {
            let blocks = scope.spawn(|| (0..50).map(Marked::new).collect::<Vec<_>>());
            blocks.join().unwrap().iter().for_each(Marked::check);
        }
        stop.store(true, Ordering::Relaxed);
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    drop((senders, inboxes));
    assert!(rounds > 1000);
    assert_eq!(mistakes.load(Ordering::Relaxed), 0);
    // What the program has freed is dead; the standard library keeps little.
    let mut live = 0;
    profiler.for_each_live(|_, number| {
        assert!(alive.lock().unwrap().contains(number));
        live += 1;
    });
    assert_eq!(
        alive.lock().unwrap().len(),
        live,
        "what is alive is known, and the other way round"
    );
    let births = births.load(Ordering::Relaxed);
    assert!(
        births > 500 && live < 200,
        "{live} alive of {births} sampled"
    );
}
