//! Finds call stacks at the cost of what has changed since the last one.
//!
//! A walker keeps the last stack it has found. A walk begins at the innermost frame, and finds frames as
//! the runtime does, until it comes to a frame of the last stack: the same return address at the same
//! place. From there on the stack is the same as long as every place of a return address still holds
//! the same one, since a return address determines the size of its frame, and so where the next one is.
//! That takes a few instructions for a frame, and no lookup.
//!
//! In a recursion of a million calls that would still be most of the program's time. So in stacks of more than
//! [`ALL`] frames, those between the innermost and the outermost ones are compared at intervals only.

use heapline_recorder::{DEEPER_CALLS, TaggedCode};

/// The frames of a run that are compared one by one, innermost and outermost, and the number of those between them that
/// are compared too.
const INNERMOST: usize = 4096;
const BETWEEN: usize = 4096;
const OUTERMOST: usize = 4096;

/// Frames of a run that are all compared.
const ALL: usize = INNERMOST + BETWEEN + OUTERMOST;

/// A place in a stack: what is needed to find the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// A return address.
    pub(crate) pc: usize,
    /// The stack pointer in its frame.
    pub(crate) sp: usize,
    /// The fiber's stack, or 0.
    pub(crate) stack: usize,
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The runtime's description of its return address.
    pub(crate) descriptor: usize,
    /// The stack pointer in it.
    pub(crate) sp: usize,
    /// The stack that it is on.
    pub(crate) stack: usize,
}

/// Access to stacks and frame descriptors.
pub(crate) trait Calls {
    /// Finds the frame at a position, and moves to the next one: what the runtime's walk does.
    fn next(&self, at: &mut Position) -> Option<Frame>;
    /// The return address that a descriptor is about.
    fn return_address(&self, descriptor: usize) -> usize;
    /// The size of a descriptor's frames, in bytes.
    fn frame_size(&self, descriptor: usize) -> usize;
    /// The return address that is saved below a stack pointer.
    fn saved_return_address(&self, sp: usize) -> usize;
}

/// The last stack, and the memory to find the next one.
#[derive(Debug, Default)]
pub(crate) struct Walker {
    /// The descriptors of its frames, as codes. Innermost first, at the end of the memory, so that the
    /// inner end can change.
    codes: Vec<TaggedCode>,
    /// Where they are, at the same indices.
    spots: Vec<Spot>,
    /// Where the stack starts in the memory.
    start: usize,
    /// Its frames in runs, the outermost first.
    runs: Vec<Run>,
    /// Frames of the next stack that are not those of the last one, innermost first.
    fresh: Vec<Frame>,
}

/// Where a frame is. (Both could be had from descriptors, but these are all over the memory, and each frame would have to
/// wait for the one inside of it.)
#[derive(Clone, Copy, Debug, Default)]
struct Spot {
    /// The stack pointer in it.
    sp: usize,
    /// The return address that is saved below that.
    return_address: usize,
}

/// Frames that are next to each other on the same stack.
#[derive(Clone, Copy, Debug)]
struct Run {
    stack: usize,
    /// The number of frames outside of it.
    outside: usize,
}

/// A frame of the last stack.
#[derive(Clone, Copy, Debug)]
struct Place {
    frame: usize,
    run: usize,
}

impl Walker {
    /// The last stack, innermost frame first.
    pub(crate) fn codes(&self) -> &[TaggedCode] {
        &self.codes[self.start..]
    }

    fn spots(&self) -> &[Spot] {
        &self.spots[self.start..]
    }

    /// The innermost frame of the last stack.
    pub(crate) fn innermost(&mut self) -> Option<&mut TaggedCode> {
        self.codes.get_mut(self.start)
    }

    /// Forgets the last stack.
    pub(crate) fn clear(&mut self) {
        self.start = self.codes.len();
        self.runs.clear();
    }

    /// Finds a stack. Returns how many of its outermost frames are those of the last one.
    pub(crate) fn walk(&mut self, calls: &impl Calls, mut at: Position) -> usize {
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.clear();
        let mut next = self.innermost_on(at.stack);
        let kept = loop {
            if let Some(found) = self.find(calls, at, &mut next) {
                let Some(last) = self.compare(calls, found, &mut at) else {
                    break Some(found);
                };
                let frames = self.places(found);
                let same = frames.take_while(|place| place.frame <= last.frame);
                fresh.extend(same.map(|place| self.frame(place)));
                next = self.outside_of(last);
            }
            let stack = at.stack;
            let Some(frame) = calls.next(&mut at) else {
                break None;
            };
            fresh.push(frame);
            if at.stack != stack {
                next = self.innermost_on(at.stack);
            }
        };
        let frames = kept.map_or(0, |kept| self.codes().len() - kept.frame);
        self.change(calls, kept, &fresh);
        self.fresh = fresh;
        frames
    }

    /// Finds the innermost frames of a stack, at most so many. If there are more, one stands for them.
    /// Returns how many are those of the last one: none, because nothing is known of the others.
    pub(crate) fn walk_inside(
        &mut self,
        calls: &impl Calls,
        mut at: Position,
        limit: usize,
    ) -> usize {
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.clear();
        let frames = std::iter::from_fn(|| calls.next(&mut at));
        fresh.extend(frames.take(limit.saturating_add(1)));
        self.change(calls, None, &fresh);
        // Nothing that this finds is kept.
        self.runs.clear();
        if fresh.len() > limit
            && let Some(outermost) = self.codes.last_mut()
        {
            *outermost = TaggedCode::new(DEEPER_CALLS);
        }
        self.fresh = fresh;
        0
    }

    /// The innermost frame of the last stack that is on a stack.
    fn innermost_on(&self, stack: usize) -> Option<Place> {
        let run = self.runs.iter().rposition(|run| run.stack == stack)?;
        Some(self.innermost_of(run))
    }

    /// The innermost frame of a run.
    fn innermost_of(&self, run: usize) -> Place {
        let depth = self.codes().len();
        let end = self.runs.get(run + 1).map_or(depth, |inner| inner.outside);
        Place {
            frame: depth - end,
            run,
        }
    }

    /// The frame of the last stack outside of another.
    fn outside_of(&self, place: Place) -> Option<Place> {
        let frame = place.frame + 1;
        if frame == self.end(place.run) {
            return place.run.checked_sub(1).map(|run| self.innermost_of(run));
        }
        Some(Place { frame, ..place })
    }

    /// The frame after the outermost one of a run.
    fn end(&self, run: usize) -> usize {
        self.codes().len() - self.runs[run].outside
    }

    /// The frames of the last stack from one on, outwards.
    fn places(&self, first: Place) -> impl Iterator<Item = Place> {
        std::iter::successors(Some(first), |&place| self.outside_of(place))
    }

    fn frame(&self, place: Place) -> Frame {
        Frame {
            descriptor: descriptor(self.codes()[place.frame]),
            sp: self.sp(place),
            stack: self.runs[place.run].stack,
        }
    }

    fn sp(&self, place: Place) -> usize {
        self.spots()[place.frame].sp
    }

    /// The frame of the last stack that is at a position. `next` is the first one that can be: the walk
    /// has passed those before it.
    fn find(&self, calls: &impl Calls, at: Position, next: &mut Option<Place>) -> Option<Place> {
        let is_on_stack = |place: &Place| self.runs[place.run].stack == at.stack;
        while let Some(place) = next.filter(|place| is_on_stack(place) && self.sp(*place) < at.sp) {
            *next = self.outside_of(place);
        }
        next.filter(|place| {
            let return_address = || calls.return_address(descriptor(self.codes()[place.frame]));
            is_on_stack(place) && self.sp(*place) == at.sp && return_address() == at.pc
        })
    }

    /// Compares the frames outside of one that is the same as in the last stack. `None` if all are the
    /// same; otherwise the last one that is, and the position is that of the next frame.
    fn compare(&self, calls: &impl Calls, found: Place, at: &mut Position) -> Option<Place> {
        let mut last = found;
        loop {
            let end = self.end(last.run);
            last.frame += same(calls, &self.spots()[last.frame + 1..end]);
            at.sp = self.sp(last) + calls.frame_size(descriptor(self.codes()[last.frame]));
            at.pc = calls.saved_return_address(at.sp);
            if last.frame + 1 < end {
                return Some(last);
            }
            // What is outside of a run has to be looked up.
            let mut after = *at;
            let next = calls.next(&mut after);
            let Some(run) = last.run.checked_sub(1) else {
                return next.map(|_| last);
            };
            let outside = self.innermost_of(run);
            if next != Some(self.frame(outside)) {
                return Some(last);
            }
            at.stack = after.stack;
            last = outside;
        }
    }

    /// Keeps the frames from one on, and puts others inside of them.
    fn change(&mut self, calls: &impl Calls, kept: Option<Place>, fresh: &[Frame]) {
        match kept {
            Some(kept) => {
                self.start += kept.frame;
                self.runs.truncate(kept.run + 1);
            }
            None => self.clear(),
        }
        if self.start < fresh.len() {
            let more = (fresh.len() - self.start).max(self.codes.len()).max(64);
            let none = std::iter::repeat_n(TaggedCode::new(0), more);
            self.codes.splice(..0, none);
            let none = std::iter::repeat_n(Spot::default(), more);
            self.spots.splice(..0, none);
            self.start += more;
        }
        for frame in fresh.iter().rev() {
            let end = frame.sp + calls.frame_size(frame.descriptor);
            let is_next = self.runs.last().is_some_and(|run| run.stack == frame.stack)
                && self.spots[self.start].sp == end;
            if !is_next {
                self.runs.push(Run {
                    stack: frame.stack,
                    outside: self.codes.len() - self.start,
                });
            }
            self.start -= 1;
            let code = u64::try_from(frame.descriptor >> 1).unwrap_or(0);
            self.codes[self.start] = TaggedCode::new(code);
            self.spots[self.start] = Spot {
                sp: frame.sp,
                return_address: calls.return_address(frame.descriptor),
            };
        }
    }
}

/// Counts the frames whose return addresses are where they were, up to the first one that is not. All of these are in one
/// run, and the frame inside of the first is the same as before. This is where the time goes.
fn same(calls: &impl Calls, frames: &[Spot]) -> usize {
    let is_other = |spot: &Spot| calls.saved_return_address(spot.sp) != spot.return_address;
    let Some(between) = frames.len().checked_sub(ALL) else {
        return frames.iter().position(is_other).unwrap_or(frames.len());
    };
    if let Some(other) = frames[..INNERMOST].iter().position(is_other) {
        return other;
    }
    let outermost = frames.len() - OUTERMOST;
    let step = (between + BETWEEN).div_ceil(BETWEEN);
    let found = (INNERMOST..outermost)
        .step_by(step)
        .find(|&at| is_other(&frames[at]));
    // What is before it was not compared.
    let from = found.map_or(outermost, |at| (at + 1).saturating_sub(step));
    let other = frames[from..].iter().position(is_other);
    other.map_or(frames.len(), |other| from + other)
}

/// The descriptor that a code is made of.
#[expect(clippy::cast_possible_truncation, reason = "it is an address")]
fn descriptor(code: TaggedCode) -> usize {
    (code.code() << 1) as usize
}

#[cfg(test)]
mod tests;
