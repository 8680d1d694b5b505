//! A profile for the Firefox Profiler: the one format that has times.
//!
//! The blocks of all domains are in one thread there. They may be collected by another domain than the one that
//! allocated them, and what is alive is only known of threads by themselves. The collector's work is in a thread for each
//! domain.

mod markers;

use std::io::{self, BufWriter, Write};

use fxprof_processed_profile::{
    CategoryHandle, CategoryPairHandle, Frame, FrameFlags, FrameInfo, Profile, ReferenceTimestamp,
    SamplingInterval, StackHandle, ThreadHandle, Timestamp,
};
use hashbrown::HashMap;
use heapline_profile::{ContextId, IdVec, Scope};

use crate::curve;
use crate::fold::Leaf;
use crate::names::{or_unknown, program, signed, site};
use crate::provenance;

/// Maximum number of blocks that are written individually. If there are more, blocks with the same stack
/// that are allocated and freed in the same time slots are merged, for the sake of the browser.
const MOST_GROUPS: usize = 2_000_000;

/// Collections that are written. If there are more, the shortest are left out.
const MOST_MARKERS: u64 = 200_000;

/// Blocks with the same stack that are allocated and freed at the same time.
struct Group {
    allocated: u64,
    collected: Option<u64>,
    stack: ContextId,
    bytes: f64,
}

/// Writes a profile for the Firefox Profiler: every sampled block where it is allocated, and where
/// it is collected with the stack of its allocation, so that the profiler can tell what is alive;
/// live memory as a curve; and the work of the garbage collector as markers.
pub fn firefox(scope: &Scope<'_>, leaf: Leaf, out: &mut impl Write) -> io::Result<()> {
    let source = scope.profile();
    let header = source.header();
    let start = header.start_time as f64 / 1000.0;
    let mut profile = Profile::new(
        program(header),
        ReferenceTimestamp::from_millis_since_unix_epoch(start),
        SamplingInterval::from_millis(1),
    );
    // There is nothing that it could look up.
    profile.set_symbolicated(true);
    let pid = u32::try_from(header.pid).unwrap_or(u32::MAX);
    let process = profile.add_process(program(header), pid, timestamp(0));
    let thread = profile.add_thread(process, pid, timestamp(0), true);
    let end = timestamp(source.micros(source.end()));
    profile.set_process_end_time(process, end);
    profile.set_thread_end_time(thread, end);
    profile.add_initial_visible_thread(thread);
    profile.add_initial_selected_thread(thread);

    let groups = groups(scope, MOST_GROUPS);
    add_blocks(&mut profile, thread, scope, leaf, &groups);
    drop(groups);
    let sentence = provenance::sentence(scope);
    let counter = profile.add_counter(process, "malloc", "Memory", &sentence);
    profile.add_counter_sample(counter, timestamp(0), 0.0, 0);
    for (time, bytes, blocks) in curve::changes(scope) {
        profile.add_counter_sample(counter, timestamp(time), bytes, blocks);
    }
    markers::add(&mut profile, process, thread, source, MOST_MARKERS);
    let mut out = BufWriter::new(out);
    serde_json::to_writer(&mut out, &profile)?;
    out.flush()
}

/// The events to show, in trace order: at most `most` groups, if a coarse enough time resolution
/// allows it.
fn groups(scope: &Scope<'_>, most: usize) -> Vec<Group> {
    let profile = scope.profile();
    let end = profile.micros(profile.end());
    let mut slot = 1;
    loop {
        // The whole run is one slot: nothing is left to merge.
        let most = if slot > end { usize::MAX } else { most };
        if let Some(groups) = groups_by(scope, slot, most) {
            return groups;
        }
        slot = if slot == 1 {
            curve::slot(scope).max(2)
        } else {
            slot.saturating_mul(2)
        };
    }
}

/// Groups blocks by stack and time slots, unless there are too many groups.
fn groups_by(scope: &Scope<'_>, slot: u64, most: usize) -> Option<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places = HashMap::new();
    scope.for_each_block(|block| {
        if groups.len() > most {
            return;
        }
        let allocated = block.from / slot * slot;
        let collected = block.until.map(|time| time / slot * slot);
        let place = *places
            .entry((block.stack, allocated, collected))
            .or_insert_with(|| {
                groups.push(Group {
                    allocated,
                    collected,
                    stack: block.stack,
                    bytes: 0.0,
                });
                groups.len() - 1
            });
        groups[place].bytes += block.amount.bytes.value;
    });
    (groups.len() <= most).then_some(groups)
}

/// Adds allocations and collections in the order of their times.
fn add_blocks(
    profile: &mut Profile,
    thread: ThreadHandle,
    scope: &Scope<'_>,
    leaf: Leaf,
    groups: &[Group],
) {
    // (time, whether it is a collection, number of the group)
    let mut events: Vec<(u64, bool, usize)> = Vec::with_capacity(2 * groups.len());
    for (i, group) in groups.iter().enumerate() {
        events.push((group.allocated, false, i));
        events.extend(group.collected.map(|time| (time, true, i)));
    }
    events.sort_unstable();
    let mut stacks = Stacks::new(scope, thread, leaf);
    for (time, collected, i) in events {
        let group = &groups[i];
        let bytes = signed(group.bytes);
        let stack = stacks.get(group.stack, profile);
        profile.add_allocation_sample(
            thread,
            timestamp(time),
            stack,
            // Not where it was, but no other block has it.
            (i as u64 + 1) * 16,
            if collected { -bytes } else { bytes },
        );
    }
}

/// The stacks of the profile that is made, each made once.
struct Stacks<'a> {
    scope: &'a Scope<'a>,
    thread: ThreadHandle,
    leaf: Leaf,
    category: CategoryPairHandle,
    handles: IdVec<ContextId, Option<StackHandle>>,
}

impl<'a> Stacks<'a> {
    fn new(scope: &'a Scope<'a>, thread: ThreadHandle, leaf: Leaf) -> Self {
        Self {
            scope,
            thread,
            leaf,
            category: CategoryHandle::OTHER.into(),
            handles: vec![None; scope.profile().stack_count()].into(),
        }
    }

    fn get(&mut self, stack: ContextId, profile: &mut Profile) -> Option<StackHandle> {
        if self.handles[stack].is_none() {
            self.handles[stack] = self.make(stack, profile);
        }
        self.handles[stack]
    }

    fn make(&self, stack: ContextId, profile: &mut Profile) -> Option<StackHandle> {
        let symbols = self.scope.profile().symbols();
        let frames = self.scope.stack(stack);
        let mut handle = None;
        let mut push = |name: &str| {
            let info = FrameInfo {
                frame: Frame::Label(profile.intern_string(name)),
                category_pair: self.category,
                flags: FrameFlags::empty(),
            };
            let frame = profile.intern_frame(self.thread, info);
            handle = Some(profile.intern_stack(self.thread, handle, frame));
        };
        for &frame in frames.iter().rev() {
            push(or_unknown(&symbols.function(frame).name));
        }
        match frames.first() {
            None => push(self.scope.unknown_name()),
            Some(&frame) if self.leaf == Leaf::Site => {
                push(&site(symbols, symbols.frames()[frame]));
            }
            Some(_) => (),
        }
        handle
    }
}

/// A time in microseconds.
fn timestamp(micros: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(micros.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use heapline_formats::{Options, Reader};
    use heapline_profile::{Estimator, Query, StoreOptions};
    use heapline_testkit::generate::Program;

    use super::*;

    #[test]
    fn time_is_no_coarser_than_it_has_to_be() {
        let program = Program {
            allocations: 2000,
            locations: 4,
            depth: 1,
            ..Program::default()
        };
        let trace = program.trace();
        let bytes = io::Cursor::new(trace.clone());
        let mut reader = Reader::new(bytes, Options::default()).unwrap();
        let profile =
            heapline_profile::Profile::load(&mut reader, StoreOptions::default()).unwrap();
        let scope = Scope::new(&profile, &Query::default(), Estimator::default());
        let mut last = usize::MAX;
        for most in [5000, 1000, 200, 1] {
            let groups = groups(&scope, most);
            let bytes: f64 = groups.iter().map(|group| group.bytes).sum();
            assert!((bytes / scope.total().bytes.value - 1.0).abs() < 1e-9);
            assert!(groups.len() <= most || most == 1, "{}", groups.len());
            assert!(groups.len() > most / 10);
            assert!(groups.len() < last);
            last = groups.len();
        }
    }
}
