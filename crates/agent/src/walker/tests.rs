//! Walks of stacks that change at random, compared with walks that look at every frame.

use std::cell::Cell;

use super::*;

/// Memory in which stacks grow downwards, and descriptors that are numbers.
struct Machine {
    words: Vec<usize>,
    /// Calls of `next`.
    steps: Cell<usize>,
    /// Return addresses that were compared or looked up.
    reads: Cell<usize>,
}

const STACKS: usize = 3;
const STACK_BYTES: usize = 1 << 16;
const DESCRIPTORS: usize = 3;

/// The return address below which C code is; the position of the next OCaml frame follows.
const C_CODE: usize = 1;
const NOWHERE: Position = Position {
    pc: 0,
    sp: 0,
    stack: 0,
};

fn descriptor_of(number: usize) -> usize {
    0x10_0000 + 64 * number
}

impl Calls for Machine {
    fn next(&self, at: &mut Position) -> Option<Frame> {
        self.steps.set(self.steps.get() + 1);
        while at.pc == C_CODE {
            let [pc, sp, stack] = [0, 8, 16].map(|offset| self.words[(at.sp + offset) / 8]);
            *at = Position { pc, sp, stack };
        }
        if *at == NOWHERE {
            return None;
        }
        let frame = Frame {
            descriptor: at.pc - 3,
            sp: at.sp,
            stack: at.stack,
        };
        at.sp += self.frame_size(frame.descriptor);
        at.pc = self.saved_return_address(at.sp);
        Some(frame)
    }

    fn return_address(&self, descriptor: usize) -> usize {
        descriptor + 3
    }

    fn frame_size(&self, descriptor: usize) -> usize {
        16 + 16 * (descriptor / 64 % 4)
    }

    fn saved_return_address(&self, sp: usize) -> usize {
        self.reads.set(self.reads.get() + 1);
        self.words[(sp - 8) / 8]
    }
}

impl Machine {
    fn new() -> Self {
        Self::with(STACKS * STACK_BYTES)
    }

    fn with(bytes: usize) -> Self {
        Self {
            words: vec![usize::MAX; bytes / 8],
            steps: Cell::new(0),
            reads: Cell::new(0),
        }
    }

    /// Calls a function.
    fn call(&mut self, at: &mut Position, descriptor: usize) {
        self.words[(at.sp - 8) / 8] = at.pc;
        at.sp -= self.frame_size(descriptor);
        at.pc = self.return_address(descriptor);
    }

    /// Calls C code, which calls back, on a stack with so much room.
    fn call_back(&mut self, at: &mut Position, stack: usize, top: usize) {
        let sp = top - 24;
        for (offset, word) in [(0, at.pc), (8, at.sp), (16, at.stack)] {
            self.words[(sp + offset) / 8] = word;
        }
        *at = Position {
            pc: C_CODE,
            sp,
            stack,
        };
    }

    fn all(&self, mut at: Position) -> Vec<TaggedCode> {
        let mut codes = Vec::new();
        while let Some(frame) = self.next(&mut at) {
            codes.push(TaggedCode::new(frame.descriptor as u64 >> 1));
        }
        codes
    }
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

#[test]
fn stacks_are_found_whatever_has_changed() {
    for seed in 1..=200 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ seed);
        let mut machine = Machine::new();
        let mut walker = Walker::default();
        // All positions that can be returned to, the innermost last.
        let mut positions = vec![NOWHERE];
        machine.call_back(&mut positions[0], 1, STACK_BYTES);
        for _ in 0..60 {
            let kept = positions.len() - random.below(positions.len());
            positions.truncate(if random.below(20) == 0 { 1 } else { kept });
            for _ in 0..random.below(40) {
                let mut at = positions[positions.len() - 1];
                match random.below(12) {
                    // At places that are the same again and again, though the outer frames differ.
                    0..2 if at.sp % STACK_BYTES > 2000 => {
                        let (stack, top) = (at.stack, (at.sp - 16) & !511);
                        machine.call_back(&mut at, stack, top);
                    }
                    2 if at.stack < STACKS => {
                        let stack = at.stack + 1;
                        machine.call_back(&mut at, stack, stack * STACK_BYTES);
                    }
                    n if at.sp % STACK_BYTES > 1000 || at.sp % STACK_BYTES == 0 => {
                        machine.call(&mut at, descriptor_of(n % DESCRIPTORS));
                    }
                    _ => continue,
                }
                positions.push(at);
            }
            let at = positions[positions.len() - 1];
            let last = walker.codes().to_vec();
            let shared = walker.walk(&machine, at);
            let expected = machine.all(at);
            assert_eq!(walker.codes(), expected, "seed {seed}");
            let outermost = |stack: &[TaggedCode]| stack[stack.len() - shared..].to_vec();
            assert_eq!(outermost(&last), outermost(&expected), "seed {seed}");
        }
    }
}

#[test]
fn frames_that_have_not_changed_are_not_looked_up() {
    let mut machine = Machine::new();
    let mut walker = Walker::default();
    let mut at = NOWHERE;
    machine.call_back(&mut at, 1, STACK_BYTES);
    for n in 0..500 {
        machine.call(&mut at, descriptor_of(n % DESCRIPTORS));
    }
    walker.walk(&machine, at);
    for n in 0..50 {
        let mut inner = at;
        for m in 0..=n % 3 {
            machine.call(&mut inner, descriptor_of((n + m) % DESCRIPTORS));
        }
        machine.steps.set(0);
        assert!(walker.walk(&machine, inner) >= 500);
        // The new ones, and one to see that the end is the end.
        assert!(machine.steps.get() <= 4, "{}", machine.steps.get());
        assert_eq!(walker.codes(), machine.all(inner));
    }
}

/// A callback looks the same as before, but has another caller, while the caller of before is still in
/// memory.
#[test]
fn callers_beyond_c_code_are_not_taken_for_those_of_before() {
    let mut machine = Machine::new();
    let mut walker = Walker::default();
    let mut base = NOWHERE;
    machine.call_back(&mut base, 1, STACK_BYTES);
    machine.call(&mut base, descriptor_of(0));
    let mut caller = base;
    machine.call(&mut caller, descriptor_of(1));
    // The caller calls a function, so that its return address is on the stack.
    let mut inner = caller;
    machine.call(&mut inner, descriptor_of(2));
    walker.walk(&machine, inner);
    // Then C code, which calls back; and so does its own caller.
    for from in [caller, base] {
        let mut at = from;
        machine.call_back(&mut at, 1, STACK_BYTES - 1024);
        machine.call(&mut at, descriptor_of(2));
        machine.call(&mut at, descriptor_of(2));
        walker.walk(&machine, at);
        assert_eq!(walker.codes(), machine.all(at));
    }
}

/// A recursion that calls another function in its middle, or at one end.
fn recurse(machine: &mut Machine, depth: usize, other: usize) -> Position {
    let mut at = NOWHERE;
    machine.call_back(&mut at, 1, 64 * depth);
    for n in 0..depth {
        // Frames of the same size.
        let called = if n == other { 0 } else { 4 };
        machine.call(&mut at, descriptor_of(called));
    }
    at
}

#[test]
fn a_stack_of_a_million_frames_is_compared_in_parts() {
    let depth = 1_000_000;
    let mut machine = Machine::with(64 * depth);
    let mut walker = Walker::default();
    let at = recurse(&mut machine, depth, depth);
    walker.walk(&machine, at);
    assert_eq!(walker.codes().len(), depth);
    machine.reads.set(0);
    for _ in 0..10 {
        assert_eq!(walker.walk(&machine, at), depth);
    }
    assert!(machine.reads.get() <= 11 * ALL, "{}", machine.reads.get());
}

#[test]
fn changes_of_a_deep_stack_are_found() {
    let depth = 100_000;
    let mut machine = Machine::with(64 * depth);
    let mut walker = Walker::default();
    let step = (depth - INNERMOST - OUTERMOST).div_ceil(BETWEEN);
    // Anywhere among the outermost and the innermost ones. Between them, those that are compared, and those inside of them:
    // a whole interval has changed.
    for other in [0, 1, OUTERMOST - 1, depth - INNERMOST, depth - 2, depth - 1] {
        let at = recurse(&mut machine, depth, depth);
        walker.walk(&machine, at);
        let at = recurse(&mut machine, depth, other);
        walker.walk(&machine, at);
        assert_eq!(walker.codes(), machine.all(at), "{other}");
    }
    for first in [OUTERMOST, depth / 2, depth - INNERMOST - 2 * step] {
        let at = recurse(&mut machine, depth, depth);
        walker.walk(&machine, at);
        let mut changed = NOWHERE;
        machine.call_back(&mut changed, 1, 64 * depth);
        for n in 0..depth {
            let is_other = (first..first + step).contains(&n);
            machine.call(&mut changed, descriptor_of(if is_other { 0 } else { 4 }));
        }
        assert_eq!(changed, at);
        walker.walk(&machine, changed);
        assert_eq!(walker.codes(), machine.all(changed), "{first}");
    }
}
