//! Numbers and stacks as text, fast.

use std::io::{self, Write};

use hashbrown::HashMap;
use heapline_trace::{LocationId, Locations, Stack};

/// How much text is collected before it is written.
const CHUNK: usize = 256 << 10;

/// The longest text of a stack that is remembered. Longer ones are made anew each time: a trace of
/// some kilobytes can hold stacks whose text has gigabytes.
const LONGEST: usize = 1 << 20;

/// Domains whose last stack is remembered.
const MAX_DOMAINS: usize = 16;

/// Text on its way out, collected so that it is written in large pieces.
pub(super) struct Out<'a> {
    text: Vec<u8>,
    sink: &'a mut dyn Write,
    result: io::Result<()>,
}

impl<'a> Out<'a> {
    pub(super) fn new(sink: &'a mut dyn Write) -> Self {
        Self {
            text: Vec::with_capacity(2 * CHUNK),
            sink,
            result: Ok(()),
        }
    }

    /// Appends bytes.
    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
        if self.text.len() >= CHUNK {
            self.write();
        }
    }

    /// Appends a number.
    #[inline]
    pub(super) fn number(&mut self, n: u64) {
        put_number(&mut self.text, n);
    }

    /// Appends a number as C's `%010d` has it.
    #[inline]
    pub(super) fn padded(&mut self, n: u64) {
        put_padded(&mut self.text, n);
    }

    /// Whether all that was written could be.
    pub(super) fn check(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.result, Ok(()))
    }

    /// Writes what is left.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.write();
        self.result?;
        self.sink.flush()
    }

    fn write(&mut self) {
        if self.result.is_ok() {
            self.result = self.sink.write_all(&self.text);
        }
        self.text.clear();
    }
}

/// Appends a number.
#[inline]
pub(super) fn put_number(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

fn put_padded(out: &mut Vec<u8>, n: u64) {
    const WIDTH: usize = 10;
    let n = n.cast_signed();
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(n.unsigned_abs());
    let sign = usize::from(n < 0);
    let zeros = WIDTH.saturating_sub(digits.len() + sign);
    if sign > 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&b"0000000000"[..zeros]);
    out.extend_from_slice(digits.as_bytes());
}

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
    /// Where the text of each frame ends.
    ends: Vec<usize>,
}

#[derive(Default)]
struct LocationTexts {
    texts: Vec<u8>,
    /// Where in `texts` the text of a location is.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padded_as_c_pads() {
        let padded = |n: i64| {
            let mut out = Vec::new();
            put_padded(&mut out, n.cast_unsigned());
            String::from_utf8(out).unwrap()
        };
        assert_eq!(padded(0), "0000000000");
        assert_eq!(padded(42), "0000000042");
        assert_eq!(padded(12_345_678_901), "12345678901");
        assert_eq!(padded(-7), "-000000007");
    }
}
