//! Ways to damage a trace, and what must survive them.

use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The ranges of the packets of an intact trace.
#[must_use]
pub fn packets(trace: &[u8]) -> Vec<Range<usize>> {
    let mut packets = Vec::new();
    let mut start = 0;
    while let Some(size) = trace.get(start + 4..start + 8) {
        let bits = u32::from_le_bytes([size[0], size[1], size[2], size[3]]);
        let end = (start + bits as usize / 8).min(trace.len());
        if end <= start {
            break;
        }
        packets.push(start..end);
        start = end;
    }
    packets
}

/// A damaged trace.
#[derive(Clone, Debug)]
pub struct Harmed {
    /// The damaged bytes.
    pub bytes: Vec<u8>,
    /// The part of the original that is not there any more as it was. What lies outside of it is.
    pub touched: Range<usize>,
    /// A description of the damage.
    pub how: &'static str,
}

/// Damages a trace in a way that the seed decides. The first packet is left alone: without it
/// nothing can be read.
#[must_use]
pub fn harm(trace: &[u8], seed: u64) -> Harmed {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let first = packets(trace).first().map_or(0, |packet| packet.end);
    if first >= trace.len() {
        return Harmed {
            bytes: trace.to_vec(),
            touched: 0..0,
            how: "nothing to harm",
        };
    }
    let mut at = |limit: usize| random.random_range(first..limit);
    let start = at(trace.len());
    let mut bytes = trace.to_vec();
    let (touched, how) = match seed % 7 {
        0 => {
            bytes[start] ^= 1 << (seed / 7 % 8);
            (start..start + 1, "one bit flipped")
        }
        1 => {
            let end = (start + 1 + random.random_range(0..64)).min(bytes.len());
            for byte in &mut bytes[start..end] {
                *byte = random.random();
            }
            (start..end, "some bytes overwritten at random")
        }
        2 => {
            let end = (start + 1 + random.random_range(0..4096)).min(bytes.len());
            bytes[start..end].fill(0);
            (start..end, "a hole of zeros")
        }
        3 => {
            bytes.truncate(start);
            (start..trace.len(), "truncated")
        }
        4 => {
            let end = at(trace.len() + 1).max(start);
            bytes.drain(start..end);
            (start..end, "a piece removed")
        }
        5 => {
            let garbage: Vec<u8> = (0..random.random_range(1..300))
                .map(|_| random.random())
                .collect();
            bytes.splice(start..start, garbage);
            (start..start, "garbage inserted")
        }
        _ => {
            let end = (start + 8).min(bytes.len());
            let extreme = [0x00, 0x7f, 0x80, 0xff][random.random_range(0..4)];
            bytes[start..end].fill(extreme);
            (start..end, "a number made extreme")
        }
    };
    Harmed {
        bytes,
        touched,
        how,
    }
}
