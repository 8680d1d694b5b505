//! Finds call stacks at the cost of what has changed since the last one.
//!
//! A walker keeps the last stack it has found. A walk begins at the innermost frame, and finds frames as
//! the runtime does, until it comes to a frame of the last stack: the same return address at the same
//! place. From there on the stack is the same as long as every place of a return address still holds
//! the same one, since a return address determines the size of its frame, and so where the next one is.
//! That takes a few instructions for a frame, and no lookup.

use std::ops::Range;

use heapline_recorder::{DEEPER_CALLS, TaggedCode};

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
    /// The stack pointers of its frames, in the same order.
    sps: Vec<usize>,
    /// The return addresses of its frames, in the same order: what the last word of the frame inside
    /// of it holds. [`ELSEWHERE`] if the frame is not next to that one.
    pcs: Vec<usize>,
    /// Where the stack starts in the memory.
    start: usize,
    /// The stacks that its frames are on, the outermost first.
    segments: Vec<Segment>,
    /// Frames of the next stack that are not those of the last one, innermost first.
    fresh: Vec<Frame>,
}

/// Frames on the same stack.
#[derive(Clone, Copy, Debug)]
struct Segment {
    stack: usize,
    /// The number of frames outside of it.
    outside: usize,
}

/// No return address.
const ELSEWHERE: usize = 0;

/// Frames that are compared at a time.
const STRIDE: usize = 4;

impl Walker {
    /// The last stack, innermost frame first.
    pub(crate) fn codes(&self) -> &[TaggedCode] {
        &self.codes[self.start..]
    }

    /// The innermost frame of the last stack.
    pub(crate) fn innermost(&mut self) -> Option<&mut TaggedCode> {
        self.codes.get_mut(self.start)
    }

    /// Forgets the last stack.
    pub(crate) fn clear(&mut self) {
        self.start = self.codes.len();
        self.segments.clear();
    }

    fn sps(&self) -> &[usize] {
        &self.sps[self.start..]
    }

    fn pcs(&self) -> &[usize] {
        &self.pcs[self.start..]
    }

    /// Finds a stack. Returns how many of its outermost frames are those of the last one.
    pub(crate) fn walk(&mut self, calls: &impl Calls, mut at: Position) -> usize {
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.clear();
        let mut candidates = self.candidates(at.stack);
        let kept = loop {
            if let Some(found) = self.find(calls, at, &mut candidates) {
                let Some(last) = self.compare(calls, found, &mut at) else {
                    break self.codes().len() - found;
                };
                fresh.extend((found..=last).map(|frame| self.frame(frame)));
                candidates = self.candidates(at.stack);
                candidates.start = candidates.start.max(last + 1);
            }
            let stack = at.stack;
            let Some(frame) = calls.next(&mut at) else {
                break 0;
            };
            fresh.push(frame);
            if at.stack != stack {
                candidates = self.candidates(at.stack);
            }
        };
        self.change(calls, kept, &fresh);
        self.fresh = fresh;
        kept
    }

    /// Finds the innermost frames of a stack, at most so many. If there are more, one stands for them.
    /// Returns how many are those of the last one: none, because nothing is known of the others.
    pub(crate) fn walk_inside(
        &mut self,
        calls: &impl Calls,
        mut at: Position,
        limit: usize,
    ) -> usize {
        self.clear();
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.clear();
        let frames = std::iter::from_fn(|| calls.next(&mut at));
        fresh.extend(frames.take(limit.saturating_add(1)));
        self.change(calls, 0, &fresh);
        if fresh.len() > limit
            && let Some(outermost) = self.codes.last_mut()
        {
            *outermost = TaggedCode::new(DEEPER_CALLS);
        }
        self.fresh = fresh;
        0
    }

    /// The frames of the last stack that are on a stack.
    fn candidates(&self, stack: usize) -> Range<usize> {
        let depth = self.codes().len();
        let mut end_inside = depth;
        for segment in self.segments.iter().rev() {
            if segment.stack == stack {
                return depth - end_inside..depth - segment.outside;
            }
            end_inside = segment.outside;
        }
        depth..depth
    }

    /// The frame of the last stack that is at a position. Candidates before it are dropped, because the
    /// walk has passed them.
    fn find(
        &self,
        calls: &impl Calls,
        at: Position,
        candidates: &mut Range<usize>,
    ) -> Option<usize> {
        let sps = self.sps();
        while candidates.start < candidates.end && sps[candidates.start] < at.sp {
            candidates.start += 1;
        }
        let frame = candidates.start;
        let is_here = candidates.start < candidates.end
            && sps[frame] == at.sp
            && calls.return_address(descriptor(self.codes()[frame])) == at.pc;
        is_here.then_some(frame)
    }

    /// Compares the frames outside of one that is the same as in the last stack. `None` if all are the
    /// same; otherwise the last one that is, and the position is that of the next frame.
    fn compare(&self, calls: &impl Calls, found: usize, at: &mut Position) -> Option<usize> {
        let (codes, sps, pcs) = (self.codes(), self.sps(), self.pcs());
        let mut last = found;
        loop {
            last += same(calls, &sps[last + 1..], &pcs[last + 1..]);
            at.sp = sps[last] + calls.frame_size(descriptor(codes[last]));
            at.pc = calls.saved_return_address(at.sp);
            let mut after = *at;
            match pcs.get(last + 1) {
                Some(&pc) if pc != ELSEWHERE => return Some(last),
                Some(_) => {
                    let next = calls.next(&mut after);
                    if next != Some(self.frame(last + 1)) {
                        return Some(last);
                    }
                    at.stack = after.stack;
                    last += 1;
                }
                None if calls.next(&mut after).is_none() => return None,
                None => return Some(last),
            }
        }
    }

    fn frame(&self, frame: usize) -> Frame {
        let outside = self.codes().len() - 1 - frame;
        let mut segments = self.segments.iter().rev();
        let segment = segments.find(|segment| segment.outside <= outside);
        Frame {
            descriptor: descriptor(self.codes()[frame]),
            sp: self.sps()[frame],
            stack: segment.map_or(0, |segment| segment.stack),
        }
    }

    /// Keeps so many of the outermost frames, and puts others inside of them.
    fn change(&mut self, calls: &impl Calls, kept: usize, fresh: &[Frame]) {
        self.start = self.codes.len() - kept;
        self.segments.retain(|segment| segment.outside < kept);
        if self.start < fresh.len() {
            let more = (fresh.len() - self.start).max(self.codes.len()).max(64);
            let none = std::iter::repeat_n(TaggedCode::new(0), more);
            self.codes.splice(..0, none);
            self.sps.splice(..0, std::iter::repeat_n(0, more));
            self.pcs.splice(..0, std::iter::repeat_n(ELSEWHERE, more));
            self.start += more;
        }
        for (inside, frame) in fresh.iter().enumerate().rev() {
            let outside = self.codes.len() - self.start;
            let is_on = |segment: &Segment| segment.stack == frame.stack;
            if !self.segments.last().is_some_and(is_on) {
                self.segments.push(Segment {
                    stack: frame.stack,
                    outside,
                });
            }
            self.start -= 1;
            let code = u64::try_from(frame.descriptor >> 1).unwrap_or(0);
            self.codes[self.start] = TaggedCode::new(code);
            self.sps[self.start] = frame.sp;
            let inner = inside.checked_sub(1).map(|inner| &fresh[inner]);
            self.set_pc(calls, self.start, inner);
        }
        // The innermost frame that is kept has another one inside of it now, which it is next to.
        self.set_pc(calls, self.codes.len() - kept, fresh.last());
    }

    /// Sets the return address of a frame, given the one inside of it.
    fn set_pc(&mut self, calls: &impl Calls, place: usize, inner: Option<&Frame>) {
        if let (Some(inner), Some(&sp)) = (inner, self.sps.get(place)) {
            let is_next = inner.sp + calls.frame_size(inner.descriptor) == sp;
            self.pcs[place] = if is_next {
                calls.return_address(descriptor(self.codes[place]))
            } else {
                ELSEWHERE
            };
        }
    }
}

/// The number of frames, from the first of these on, whose return addresses are where they were. This
/// is where the time goes.
fn same(calls: &impl Calls, sps: &[usize], pcs: &[usize]) -> usize {
    let is_same =
        |(&sp, &pc): (&usize, &usize)| pc != ELSEWHERE && calls.saved_return_address(sp) == pc;
    let (sp_strides, _) = sps.as_chunks::<STRIDE>();
    let (pc_strides, _) = pcs.as_chunks::<STRIDE>();
    let strides = sp_strides.iter().zip(pc_strides);
    let strides = strides.take_while(|(sps, pcs)| sps.iter().zip(*pcs).all(is_same));
    let whole = STRIDE * strides.count();
    let rest = sps[whole..].iter().zip(&pcs[whole..]);
    whole + rest.take_while(|&frame| is_same(frame)).count()
}

/// The descriptor that a code is made of.
#[expect(clippy::cast_possible_truncation, reason = "it is an address")]
fn descriptor(code: TaggedCode) -> usize {
    (code.code() << 1) as usize
}

#[cfg(test)]
mod tests;
