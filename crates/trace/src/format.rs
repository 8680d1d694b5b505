//! The constants of the format, shared by reader and writer.

/// The first four bytes of every packet.
pub(crate) const MAGIC: u32 = 0xc1fc_1fc1;

/// The newest version of the format, and the one that is written.
pub const VERSION: u16 = 3;

/// The maximum size of a written packet, header included.
///
/// The reference reader has a buffer of this size and refuses anything larger.
pub const MAX_WRITTEN_PACKET: usize = 1 << 15;

/// The maximum size of a packet that is read. The reference never writes more than 32 KiB; a larger
/// value is a damaged size field.
pub(crate) const MAX_READ_PACKET: usize = 1 << 24;

/// The process id of packets that only Heapline reads: what is merged in a [coarse history](crate::CoarseHistory), and the work
/// of the garbage collector. It is none that a system gives, so memtrace's reader skips them like those of a forked child.
pub(crate) const OWN_PID: u64 = u64::from_le_bytes(*b"Heapline");

/// Buckets of the backtrace cache.
pub(crate) const BUCKETS: usize = 1 << 14;

/// Keeps a bucket number below [`BUCKETS`].
pub(crate) const BUCKET_MASK: u16 = 0x3fff;

/// A cache check with this bucket number checks nothing.
pub(crate) const NO_CHECK: u16 = 0xffff;

/// An event's time is given by this many low bits.
pub(crate) const TIME_BITS: u32 = 25;
pub(crate) const TIME_MASK: u32 = (1 << TIME_BITS) - 1;

/// Entries of a move-to-front table; this index announces a new string.
pub(crate) const MTF_LEN: usize = 31;

/// The width of the largest packet header, that of version 3.
pub(crate) const MAX_HEADER: usize = 68;

/// Event codes.
pub(crate) mod code {
    pub(crate) const INFO: u32 = 0;
    pub(crate) const LOCATION: u32 = 1;
    pub(crate) const ALLOC: u32 = 2;
    pub(crate) const PROMOTE: u32 = 3;
    pub(crate) const COLLECT: u32 = 4;
    /// `SHORT + n` is a minor allocation of n words (1 to 16) with one sample.
    pub(crate) const SHORT: u32 = 100;
    pub(crate) const SHORT_FIRST: u32 = SHORT + 1;
    pub(crate) const SHORT_LAST: u32 = SHORT + 16;
}

/// Tags of a backtrace code word, its low two bits.
pub(crate) mod tag {
    pub(crate) const HIT: u16 = 0;
    pub(crate) const HIT_1: u16 = 1;
    pub(crate) const HIT_N: u16 = 2;
    pub(crate) const MISS: u16 = 3;
}

/// Location codes are OCaml integers: of 64 bits written, 63 count.
pub(crate) fn code63(raw: u64) -> u64 {
    (raw.cast_signed() << 1 >> 1).cast_unsigned()
}

/// One entry of the writer's backtrace cache, so that the reader can tell whether it is in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheCheck {
    pub(crate) bucket: u16,
    pub(crate) next: u16,
    pub(crate) code: u64,
}

impl CacheCheck {
    pub(crate) const NONE: Self = Self {
        bucket: NO_CHECK,
        next: 0,
        code: 0,
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketHeader {
    /// In bytes, this header included.
    pub(crate) size: usize,
    pub(crate) time_begin: u64,
    pub(crate) time_end: u64,
    pub(crate) flush_duration: u32,
    pub(crate) version: u16,
    pub(crate) pid: u64,
    pub(crate) domain: u16,
    pub(crate) check: CacheCheck,
    pub(crate) first_id: u64,
    /// One past the last id.
    pub(crate) end_id: u64,
}

/// The reason why some bytes are not a packet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotAHeader {
    NoMagic,
    Version(u16),
    Size(usize),
    /// The available bytes could be the start of one.
    TooShort,
}

impl PacketHeader {
    /// The offsets of header fields that change while the packet is filled: the size in bits, of 4
    /// bytes, the time of the last event, and the id after the last.
    pub(crate) const SIZE: usize = 4;
    pub(crate) const TIME_END: usize = 16;
    pub(crate) const END_ID: usize = 60;

    /// The offsets of fields in a version 3 header that mark an early end.
    pub(crate) const FLUSH_DURATION: u64 = 24;
    pub(crate) const CHECK_NEXT: u64 = 42;

    /// Returns true if the packet is large enough for the allocations it claims to have: each takes
    /// at least six bytes.
    pub(crate) fn ids_are_plausible(&self) -> bool {
        let room = (self.size - self.len()) / 6;
        self.end_id
            .checked_sub(self.first_id)
            .is_some_and(|claimed| claimed <= room as u64)
    }

    /// Allocations in the packet; none if it claims more than it has room for.
    pub(crate) fn allocations(&self) -> u64 {
        if self.ids_are_plausible() {
            self.end_id - self.first_id
        } else {
            0
        }
    }

    /// Bytes that the header itself takes.
    pub(crate) fn len(&self) -> usize {
        header_len(self.version)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, NotAHeader> {
        if !could_be_magic(bytes) {
            return Err(NotAHeader::NoMagic);
        }
        let mut at = Fields { bytes, pos: 4 };
        let size_in_bits = at.u32()?;
        let time_begin = at.u64()?;
        let time_end = at.u64()?;
        let flush_duration = at.u32()?;
        let version = at.u16()?;
        if !(1..=VERSION).contains(&version) {
            return Err(NotAHeader::Version(version));
        }
        let size = (size_in_bits / 8) as usize;
        if size_in_bits % 8 != 0 || !(header_len(version)..=MAX_READ_PACKET).contains(&size) {
            return Err(NotAHeader::Size(size));
        }
        Ok(Self {
            size,
            time_begin,
            time_end,
            flush_duration,
            version,
            pid: at.u64()?,
            domain: if version >= 3 { at.u16()? } else { 0 },
            check: CacheCheck {
                bucket: at.u16()?,
                next: at.u16()?,
                code: code63(at.u64()?),
            },
            first_id: at.u64()?,
            end_id: at.u64()?,
        })
    }

    /// The size of a packet in bytes, by its first eight; `None` if it is not a packet.
    pub(crate) fn sealed_size(bytes: &[u8]) -> Option<usize> {
        let bytes = bytes.first_chunk::<8>()?;
        let size = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        (could_be_magic(bytes) && size % 8 == 0).then_some((size / 8) as usize)
    }

    /// The header as version 3 writes it.
    pub(crate) fn encode(&self) -> [u8; MAX_HEADER] {
        let mut out = [0; MAX_HEADER];
        let mut pos = 0;
        let mut put = |bytes: &[u8]| {
            out[pos..pos + bytes.len()].copy_from_slice(bytes);
            pos += bytes.len();
        };
        let size_in_bits = u32::try_from(self.size * 8).unwrap_or(u32::MAX);
        put(&MAGIC.to_le_bytes());
        put(&size_in_bits.to_le_bytes());
        put(&self.time_begin.to_le_bytes());
        put(&self.time_end.to_le_bytes());
        put(&self.flush_duration.to_le_bytes());
        put(&VERSION.to_le_bytes());
        put(&self.pid.to_le_bytes());
        put(&self.domain.to_le_bytes());
        put(&self.check.bucket.to_le_bytes());
        put(&self.check.next.to_le_bytes());
        put(&self.check.code.to_le_bytes());
        put(&self.first_id.to_le_bytes());
        put(&self.end_id.to_le_bytes());
        out
    }
}

fn header_len(version: u16) -> usize {
    if version >= 3 {
        MAX_HEADER
    } else {
        MAX_HEADER - 2
    }
}

/// Returns true if `bytes` begin with the magic number, or with a prefix of it if they are shorter.
pub(crate) fn could_be_magic(bytes: &[u8]) -> bool {
    let magic = MAGIC.to_le_bytes();
    let n = bytes.len().min(magic.len());
    bytes[..n] == magic[..n]
}

struct Fields<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], NotAHeader> {
        let field = self
            .bytes
            .get(self.pos..)
            .and_then(<[u8]>::first_chunk::<N>)
            .ok_or(NotAHeader::TooShort)?;
        self.pos += N;
        Ok(*field)
    }

    fn u16(&mut self) -> Result<u16, NotAHeader> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, NotAHeader> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, NotAHeader> {
        self.take().map(u64::from_le_bytes)
    }
}

/// The most that an allocation event takes without its stack: head, three numbers of variable
/// width, source, count.
pub(crate) const MAX_ALLOC: usize = 4 + 3 * MAX_VINT + 1 + 2;

/// The most that a promotion or collection takes.
pub(crate) const MAX_MARK: usize = 4 + MAX_VINT;

/// The most that a number of variable width takes.
const MAX_VINT: usize = 9;

/// The greatest number of variable width that takes one byte; greater ones begin with one that
/// says how wide they are.
const MAX_VINT_BYTE: u8 = 252;
const VINT_U16: u8 = 253;
const VINT_I32: u8 = 254;
const VINT_U64: u8 = 255;

/// An event without its stack.
pub(crate) struct EventBytes {
    bytes: [u8; MAX_ALLOC],
    len: usize,
}

impl EventBytes {
    pub(crate) fn new(code: u32, time: u64) -> Self {
        let mut event = Self {
            bytes: [0; MAX_ALLOC],
            len: 0,
        };
        event.put(event_head(code, time));
        event
    }

    #[inline]
    pub(crate) fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.bytes[self.len..][..N].copy_from_slice(&bytes);
        self.len += N;
    }

    /// Appends a number of variable width.
    pub(crate) fn put_vint(&mut self, value: i64) {
        if let Ok(byte @ ..=MAX_VINT_BYTE) = u8::try_from(value) {
            self.put([byte]);
        } else if let Ok(v) = u16::try_from(value) {
            self.put([VINT_U16]);
            self.put(v.to_le_bytes());
        } else if let Ok(v) = i32::try_from(value) {
            self.put([VINT_I32]);
            self.put(v.to_le_bytes());
        } else {
            self.put([VINT_U64]);
            self.put(value.to_le_bytes());
        }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The most that a number of variable width takes if it is not large.
pub(crate) const MAX_SMALL_VINT: usize = 3;

/// Writes a number of variable width unless it is large; returns how many bytes it has.
#[inline]
pub(crate) fn put_small_vint(out: &mut [u8], value: u64) -> Option<usize> {
    let [low, high, ..] = value.to_le_bytes();
    if value <= u64::from(MAX_VINT_BYTE) {
        out[0] = low;
        return Some(1);
    }
    if value > u64::from(u16::MAX) {
        return None;
    }
    out[..MAX_SMALL_VINT].copy_from_slice(&[VINT_U16, low, high]);
    Some(MAX_SMALL_VINT)
}

/// The length in bytes of a number that was [written](put_small_vint) and begins with this byte.
pub(crate) fn small_vint_len(first: u8) -> usize {
    if first == VINT_U16 { MAX_SMALL_VINT } else { 1 }
}

/// The first four bytes of an event.
#[inline]
pub(crate) fn event_head(code: u32, time: u64) -> [u8; 4] {
    let [a, b, c, d, ..] = time.to_le_bytes();
    (code << TIME_BITS | u32::from_le_bytes([a, b, c, d]) & TIME_MASK).to_le_bytes()
}
