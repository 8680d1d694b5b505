//! Formats stacks as text, with a cache.

use hashbrown::HashMap;
use heapline_trace::{LocationId, Locations, Stack};

use crate::text::Out;

/// The longest text of a stack that is remembered. Longer ones are made anew each time: a trace of
/// some kilobytes can hold stacks whose text has gigabytes.
const LONGEST: usize = 1 << 20;

/// Domains whose last stack is remembered.
const MAX_DOMAINS: usize = 16;

/// Stacks as text.
///
/// The text of a location is made once. The text of a stack is that of the domain's last one, up
/// to where they differ, and then that of the new frames.
#[derive(Default)]
pub(super) struct StackText {
    domains: HashMap<u16, StackLine>,
    locations: LocationTexts,
}

#[derive(Default)]
struct StackLine {
    text: Vec<u8>,
    /// The end of the text of each frame.
    ends: Vec<usize>,
}

#[derive(Default)]
struct LocationTexts {
    texts: Vec<u8>,
    /// The range in `texts` of the text of each location.
    spans: Vec<Option<(usize, usize)>>,
    /// The text of a location that has no lasting one.
    passing: Vec<u8>,
}

impl StackText {
    /// Appends the text of a stack, without its first `skip` bytes. `render` makes that of one
    /// location; it is asked once for each.
    #[inline]
    pub(super) fn put(
        &mut self,
        domain: u16,
        stack: &Stack<'_>,
        locations: &Locations,
        skip: usize,
        out: &mut Out<'_>,
        mut render: impl FnMut(LocationId, &mut Vec<u8>),
    ) {
        if self.domains.len() > MAX_DOMAINS {
            self.domains.clear();
        }
        let line = self.domains.entry(domain).or_default();
        // What is not remembered is made again.
        let shared = stack.shared().min(line.ends.len());
        line.ends.truncate(shared);
        line.text.truncate(line.ends.last().copied().unwrap_or(0));
        let mut new = stack.frames()[shared..].iter();
        for &id in new.by_ref() {
            line.text
                .extend_from_slice(self.locations.get(id, locations, &mut render));
            line.ends.push(line.text.len());
            if line.text.len() > LONGEST {
                break;
            }
        }
        out.put(line.text.get(skip..).unwrap_or_default());
        for &id in new {
            out.put(self.locations.get(id, locations, &mut render));
        }
    }
}

impl LocationTexts {
    #[inline]
    fn get(
        &mut self,
        id: LocationId,
        locations: &Locations,
        render: &mut impl FnMut(LocationId, &mut Vec<u8>),
    ) -> &[u8] {
        if let Some(Some((start, end))) = self.spans.get(id.index()) {
            return &self.texts[*start..*end];
        }
        // A location that the trace has not named may get a name later.
        if !locations.is_defined(id) {
            self.passing.clear();
            render(id, &mut self.passing);
            return &self.passing;
        }
        if self.spans.len() <= id.index() {
            self.spans.resize(locations.len().max(id.index() + 1), None);
        }
        let start = self.texts.len();
        render(id, &mut self.texts);
        self.spans[id.index()] = Some((start, self.texts.len()));
        &self.texts[start..]
    }
}
