//! The reader against the plainest one: on every intact trace at hand both must return the same.

use heapline_testkit::generate::Program;
use heapline_testkit::{OwnedTrace, fixtures, plain};
use heapline_trace::Options;

#[test]
fn both_readers_return_the_same() {
    let mut traces = 0;
    for path in fixtures::traces() {
        if fixtures::is_damaged(&path) {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let name = path.display();
        let plain = plain::read(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let strict = OwnedTrace::read(&bytes, Options::new().strict(true))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(plain == strict, "{name}: the readers disagree");
        traces += 1;
    }
    assert!(traces >= 8, "only {traces} traces were found");
}

#[test]
fn both_readers_return_the_same_for_generated_programs() {
    for (seed, depth) in (0..20).zip([3, 40, 600].into_iter().cycle()) {
        let program = Program {
            allocations: 3000,
            domains: 1 + u16::try_from(seed % 4).unwrap(),
            depth,
            seed,
            ..Program::default()
        };
        let bytes = program.trace();
        let plain = plain::read(&bytes).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let strict = OwnedTrace::read(&bytes, Options::new().strict(true)).unwrap();
        assert!(plain == strict, "seed {seed}: the readers disagree");
    }
}

#[test]
fn without_stacks_everything_else_is_the_same() {
    let bytes = Program::default().trace();
    let with = OwnedTrace::read(&bytes, Options::new()).unwrap();
    let mut without = OwnedTrace::read(&bytes, Options::new().stacks(false)).unwrap();
    assert_eq!(with.events.len(), without.events.len());
    for (with, without) in with.events.iter().zip(&mut without.events) {
        use heapline_testkit::OwnedEvent::Alloc;
        if let (Alloc { stack: full, .. }, Alloc { stack, .. }) = (with, &mut *without) {
            assert!(stack.is_empty());
            stack.clone_from(full);
        }
        assert_eq!(with, without);
    }
}
