//! The bytes that were pushed in and not yet decoded.

/// Zero bytes that always follow the data, so that the event decoder can load eight bytes wherever
/// an event may start.
pub(super) const PADDING: usize = 16;

/// The minimum size of [`Input::space`].
const CHUNK: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Input {
    /// The data is `buffer[start..end]`; [`PADDING`] bytes or more follow.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The number of bytes that were consumed before `start`.
    offset: u64,
    finished: bool,
}

impl Input {
    pub(super) fn new() -> Self {
        Self {
            buffer: vec![0; CHUNK + PADDING],
            start: 0,
            end: 0,
            offset: 0,
            finished: false,
        }
    }

    /// Room for more data, at least one byte. A buffer that is full grows with the data that it
    /// holds, never by what that data claims.
    pub(super) fn space(&mut self) -> &mut [u8] {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let capacity = self.buffer.len() - PADDING;
        if capacity - self.end < CHUNK / 2 {
            self.buffer.resize(capacity * 2 + PADDING, 0);
        }
        let limit = self.buffer.len() - PADDING;
        &mut self.buffer[self.end..limit]
    }

    /// Says that the first `n` bytes of [`space`](Self::space) are data now.
    pub(super) fn filled(&mut self, n: usize) {
        self.end = (self.end + n).min(self.buffer.len() - PADDING);
    }

    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    /// Returns true if no more data will come.
    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    pub(super) fn unread(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The unread bytes from `from` on, and what follows in the buffer: the decoder must not take
    /// anything beyond its packet's end for data, but it may look at it.
    pub(super) fn padded(&self, from: usize, to: usize) -> &[u8] {
        &self.buffer[self.start + from..(self.start + to + PADDING).min(self.buffer.len())]
    }

    pub(super) fn consume(&mut self, n: usize) {
        let n = n.min(self.end - self.start);
        self.start += n;
        self.offset += n as u64;
    }

    /// Drops what is unread and what may still come.
    pub(super) fn abandon(&mut self) {
        self.start = self.end;
        self.finished = true;
    }

    /// Position of the first unread byte in all that was pushed in.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }
}
