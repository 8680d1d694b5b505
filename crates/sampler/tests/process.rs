//! Programs that do more than allocate: forking, loading libraries, signals, being killed.
//!
//! Each test is a process of its own: this program, run again.

use std::alloc::System;
use std::ffi::CStr;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{env, thread};

use heapline::{Options, Profiler, Tracker};
use heapline_trace::{Event, Reader};

#[global_allocator]
static ALLOC: heapline::Alloc<System> = heapline::Alloc::new(System);

/// Says which of these this process is to be.
const PART: &str = "HEAPLINE_TEST_PART";

/// Runs a part of this program, with at most a minute for it.
fn run(test: &str, more: &[(&str, &str)]) -> Output {
    let program = env::current_exe().unwrap();
    Command::new("timeout")
        .args(["-s", "ABRT", "60"])
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .env(PART, test)
        .envs(more.iter().copied())
        .output()
        .unwrap()
}

fn is_part(test: &str) -> bool {
    env::var(PART).is_ok_and(|part| part == test)
}

fn check(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
}

/// Allocates and frees in other threads until it is dropped.
struct Busy(std::sync::Arc<AtomicBool>, Vec<thread::JoinHandle<u64>>);

/// Rounds of all threads that are busy.
static ROUNDS: AtomicU64 = AtomicU64::new(0);

impl Busy {
    fn start() -> Self {
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let threads = (0..3_usize).map(|n| {
            let stop = stop.clone();
            thread::spawn(move || {
                let mut rounds = 0;
                let mut kept = Vec::new();
                loop {
                    rounds += 1;
                    ROUNDS.fetch_add(1, Ordering::Relaxed);
                    kept.push(vec![n; 10 + rounds % 3000]);
                    if kept.len() > 100 {
                        kept.clear();
                    }
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
                rounds as u64
            })
        });
        Self(stop.clone(), threads.collect())
    }

    fn stop(self) {
        self.0.store(true, Ordering::Relaxed);
        for thread in self.1 {
            assert!(thread.join().unwrap() > 0);
        }
    }
}

#[test]
fn a_forked_child_is_not_sampled_and_can_use_all_memory() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let name = "a_forked_child_is_not_sampled_and_can_use_all_memory";
    if !is_part(name) {
        return check(&run(name, &[]));
    }
    let tracker = Tracker::new(|_| {
        CALLS.fetch_add(1, Ordering::Relaxed);
        Some(())
    });
    let tracker = tracker.on_free(|_, ()| {
        CALLS.fetch_add(1, Ordering::Relaxed);
    });
    let profiler = Profiler::start(Options::every(256), tracker).unwrap();
    let busy = Busy::start();
    for round in 0..50_usize {
        let before = vec![round; 1000];
        let large = vec![round; 100_000];
        // SAFETY: the child only allocates, which the locks of ours and of the C library are ready
        // for, and leaves.
        match unsafe { libc::fork() } {
            0 => {
                let calls = CALLS.load(Ordering::Relaxed);
                let mut kept = vec![before.clone(), large.clone()];
                drop((before, large));
                kept.extend((0..200).map(|n| vec![n; 500]));
                drop(kept);
                let same = CALLS.load(Ordering::Relaxed) == calls;
                // SAFETY: it ends this process.
                unsafe { libc::_exit(i32::from(!same)) };
            }
            child => {
                let mut status = 0;
                // SAFETY: the child is ours.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                assert_eq!(status, 0, "the child of round {round}");
            }
        }
    }
    busy.stop();
    let calls = CALLS.load(Ordering::Relaxed);
    drop(vec![0_u8; 1 << 20]);
    assert!(CALLS.load(Ordering::Relaxed) > calls, "the parent goes on");
    drop(profiler);
}

#[test]
fn libraries_can_be_loaded_while_all_threads_are_sampled() {
    let name = "libraries_can_be_loaded_while_all_threads_are_sampled";
    if !is_part(name) {
        return check(&run(name, &[]));
    }
    let profiler = Profiler::watch(Options::every(512)).unwrap();
    let busy = Busy::start();
    let libraries: [&CStr; 3] = [c"libm.so.6", c"libresolv.so.2", c"libutil.so.1"];
    for round in 0..300 {
        let library = libraries[round % libraries.len()];
        // SAFETY: these libraries do nothing when they are loaded.
        unsafe {
            let library = libc::dlopen(library.as_ptr(), libc::RTLD_NOW);
            drop(vec![round; 200]);
            if !library.is_null() {
                libc::dlclose(library);
            }
        }
    }
    busy.stop();
    assert!(
        profiler
            .live()
            .iter()
            .all(|site| site.stack.addresses().len() > 3)
    );
}

#[test]
fn signals_do_not_disturb() {
    extern "C" fn handler(_: i32) {
        SIGNALS.fetch_add(1, Ordering::Relaxed);
    }
    static SIGNALS: AtomicU64 = AtomicU64::new(0);
    let name = "signals_do_not_disturb";
    if !is_part(name) {
        return check(&run(name, &[]));
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.ctf");
    let recording = heapline::trace_with(&trace, Options::every(1024)).unwrap();
    // SAFETY: the handler only counts, and the timer is the process's own.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = (handler as extern "C" fn(i32)) as usize;
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
        let every = libc::timeval {
            tv_sec: 0,
            tv_usec: 200,
        };
        let timer = libc::itimerval {
            it_interval: every,
            it_value: every,
        };
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
    let busy = Busy::start();
    let mut rounds = 0;
    while SIGNALS.load(Ordering::Relaxed) < 1000 || rounds < 1000 {
        drop(std::hint::black_box(vec![1_u8; 3000]));
        rounds += 1;
    }
    busy.stop();
    drop(recording);
    assert!(events(&trace).0 > 100);
}

/// Blocks and deaths in a trace, which must be without a flaw.
fn events(trace: &Path) -> (u64, u64) {
    let options = heapline_trace::Options::new().strict(true);
    let mut reader = Reader::open(trace, options).unwrap();
    let (mut blocks, mut deaths) = (0, 0);
    reader
        .for_each(|event, _| match event {
            Event::Alloc(_) => blocks += 1,
            Event::Collect(_) => deaths += 1,
            Event::Promote(_) => panic!("nothing is promoted"),
        })
        .unwrap();
    (blocks, deaths)
}

#[test]
fn deaths_in_other_threads_are_in_the_trace() {
    let name = "deaths_in_other_threads_are_in_the_trace";
    if !is_part(name) {
        return check(&run(name, &[]));
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.ctf");
    let recording = heapline::trace_with(&trace, Options::rate(1.0)).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel::<Vec<u8>>();
    let other = thread::spawn(move || receiver.into_iter().for_each(drop));
    for n in 0..5000 {
        sender.send(vec![1; 4000 + n % 7]).unwrap();
    }
    drop(sender);
    other.join().unwrap();
    drop(recording);
    let options = heapline_trace::Options::new().strict(true);
    let mut reader = Reader::open(&trace, options).unwrap();
    // Packets of different threads are in no order.
    let mut births = std::collections::HashMap::new();
    let mut deaths = Vec::new();
    reader
        .for_each(|event, _| match event {
            Event::Alloc(alloc) => drop(births.insert(alloc.id, (alloc.domain, alloc.time))),
            Event::Collect(mark) => deaths.push((mark.id, mark.domain, mark.time)),
            Event::Promote(_) => panic!("nothing is promoted"),
        })
        .unwrap();
    let mut elsewhere = 0;
    for (id, domain, time) in deaths {
        let (birthplace, born) = births
            .remove(&id)
            .expect("who dies was born, and dies once");
        assert!(born <= time);
        elsewhere += u32::from(birthplace != domain);
    }
    assert!(elsewhere >= 5000, "{elsewhere}");
}

#[test]
fn nothing_is_lost_when_the_program_is_killed() {
    let name = "nothing_is_lost_when_the_program_is_killed";
    if is_part(name) {
        heapline::trace_if_requested();
        let kept: Vec<Vec<u8>> = (0..1000).map(|_| vec![1; 1000]).collect();
        std::hint::black_box(&kept);
        // SAFETY: it ends this process.
        unsafe { libc::raise(libc::SIGKILL) };
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.ctf");
    let more = [
        ("MEMTRACE", trace.to_str().unwrap()),
        ("MEMTRACE_RATE", "1"),
    ];
    let output = run(name, &more);
    assert!(!output.status.success());
    let outcome = heapline_recorder::tail::finish(&trace).unwrap().unwrap();
    assert!(outcome.recovered > 0);
    let (blocks, _) = events(&trace);
    assert!(blocks > 1000, "{blocks}");
}

#[test]
fn a_trace_is_complete_when_the_program_exits_in_the_middle() {
    let name = "a_trace_is_complete_when_the_program_exits_in_the_middle";
    if is_part(name) {
        heapline::trace_if_requested();
        // Names are looked up for the first of these, which takes a while.
        let kept: Vec<Vec<u8>> = (0..300).map(|_| vec![1; 50_000]).collect();
        drop(kept);
        let busy = Busy::start();
        heapline_testkit::wait("work on all threads", || {
            ROUNDS.load(Ordering::Relaxed) > 10_000
        });
        std::mem::forget(busy);
        std::process::exit(0);
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.ctf");
    let more = [
        ("MEMTRACE", trace.to_str().unwrap()),
        ("MEMTRACE_RATE", "1e-3"),
    ];
    check(&run(name, &more));
    assert!(!heapline_recorder::tail::path(&trace).exists());
    let (blocks, deaths) = events(&trace);
    assert!(
        blocks > 100 && deaths > 0 && deaths <= blocks,
        "{blocks}, {deaths}"
    );
}

/// As in a function with `#[tokio::main]`, there are other threads when recording starts.
#[test]
fn child_processes_are_not_recorded_to_the_same_file() {
    let name = "child_processes_are_not_recorded_to_the_same_file";
    if is_part(name) {
        let recorded = || env::var("HEAPLINE_PREFIX").or_else(|_| env::var("MEMTRACE"));
        assert!(recorded().is_ok_and(|path| !path.is_empty()));
        thread::scope(|scope| {
            let (end, ended) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || ended.recv());
            heapline::trace_if_requested();
            drop(end);
        });
        let mut child = Command::new("sh");
        child.args([
            "-c",
            "printf %s \"$MEMTRACE$HEAPLINE_PREFIX$HEAPLINE_TRACE\"",
        ]);
        assert_eq!(child.output().unwrap().stdout, b"");
        assert!(recorded().is_ok_and(|path| path.is_empty()));
        // Empty is not set: this does not complain that the program is recorded already.
        return heapline::trace_if_requested();
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.ctf");
    let path = trace.to_str().unwrap();
    for more in [
        &[("MEMTRACE", path)][..],
        &[("HEAPLINE_PREFIX", path), ("HEAPLINE_TRACE", path)],
    ] {
        let output = run(name, more);
        check(&output);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        std::fs::remove_file(&trace).expect("the program itself is recorded");
    }
}

/// The first sample that it is in must not wait for the next look at the mappings: a location is
/// named once.
#[test]
fn a_library_that_is_loaded_right_after_the_start_has_names() {
    extern "C" fn allocate() {
        KEPT.with_borrow_mut(|kept| *kept = vec![1_u8; 4321]);
    }
    thread_local! {
        static KEPT: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    const LIBRARY: &str = "HEAPLINE_TEST_LIBRARY";
    let name = "a_library_that_is_loaded_right_after_the_start_has_names";
    if !is_part(name) {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("library.c");
        let library = folder.path().join("library.so");
        let code = "int call_back(void (*f)(void)) { f(); return 1; }";
        std::fs::write(&source, code).unwrap();
        // Rust needs a C compiler too, for linking.
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .output()
            .unwrap();
        check(&compiled);
        return check(&run(name, &[(LIBRARY, library.to_str().unwrap())]));
    }
    let path = std::ffi::CString::new(env::var(LIBRARY).unwrap()).unwrap();
    let profiler = Profiler::watch(Options::rate(1.0)).unwrap();
    // SAFETY: the library has the function, and does nothing when it is loaded.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        let function = libc::dlsym(library, c"call_back".as_ptr());
        assert!(!function.is_null());
        let function: extern "C" fn(extern "C" fn()) -> i32 = std::mem::transmute(function);
        assert_eq!(function(allocate), 1);
    }
    let live = profiler.live();
    let site = live.iter().find(|site| site.bytes >= 4321.0);
    let frames = site.unwrap().stack.frames();
    assert!(
        frames.iter().any(|frame| frame.function == "call_back"),
        "{frames:?}"
    );
}

#[test]
fn coroutines_are_sampled_on_stacks_of_their_own() {
    static SEEN: AtomicU64 = AtomicU64::new(0);
    extern "C" fn on_another_stack() {
        drop(std::hint::black_box(vec![1_u8; 5555]));
    }
    let name = "coroutines_are_sampled_on_stacks_of_their_own";
    if !is_part(name) {
        return check(&run(name, &[]));
    }
    let tracker = Tracker::new(|block| {
        if block.size == 5555 {
            let frames = block.stack.frames();
            let is_here = frames[0].function.contains("on_another_stack");
            SEEN.fetch_add(u64::from(is_here), Ordering::Relaxed);
        }
        Some(())
    });
    let profiler = Profiler::start(Options::rate(1.0), tracker).unwrap();
    let mut stack = vec![0_u8; 1 << 16];
    // SAFETY: the stack is as large as said, and stays until the function on it has returned.
    unsafe {
        let mut here: libc::ucontext_t = std::mem::zeroed();
        let mut there: libc::ucontext_t = std::mem::zeroed();
        libc::getcontext(&raw mut there);
        there.uc_stack.ss_sp = stack.as_mut_ptr().cast();
        there.uc_stack.ss_size = stack.len();
        there.uc_link = &raw mut here;
        libc::makecontext(&raw mut there, on_another_stack, 0);
        libc::swapcontext(&raw mut here, &raw const there);
    }
    assert_eq!(SEEN.load(Ordering::Relaxed), 1);
    drop(profiler);
}
