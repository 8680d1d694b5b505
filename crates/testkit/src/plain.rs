//! A simple independent reader of the format: one function per construct, no optimisation, an error at
//! the first doubt. It makes the checks of memtrace's reader, in its order.

use std::collections::HashMap;

use heapline_trace::Source;

use crate::{OwnedEvent, OwnedFrame, OwnedTrace};

/// Reads a trace that must be flawless.
///
/// Packets of other processes are left out, as is a last packet that is cut off.
pub fn read(bytes: &[u8]) -> Result<OwnedTrace, String> {
    let mut trace = OwnedTrace::default();
    let mut domains: HashMap<u16, Domain> = HashMap::new();
    let mut input = Bytes { bytes, pos: 0 };

    let header = Header::read(&mut input)?;
    let mut info = input.sub(header.content)?;
    let (code, time) = event_head(&mut info, &header)?;
    check(code == 0 && time == header.begin, "trace info")?;
    info.take(8 + 1)?;
    for _ in 0..3 {
        info.string()?;
    }
    let pid = info.u64()?;
    if header.version >= 2 {
        info.string()?;
    }
    check(info.is_empty(), "trace info packet done")?;
    let start = header.begin;

    while !input.is_empty() {
        let Ok(header) = Header::read(&mut input) else {
            check(input.left() < 68, "packet header")?;
            break;
        };
        let Ok(mut packet) = input.sub(header.content) else {
            break;
        };
        if header.pid != pid {
            continue;
        }
        check(header.size <= 1 << 15, "packets are at most 32 KiB")?;
        let domain = domains
            .entry(header.domain)
            .or_insert_with(|| Domain::new(start));
        if header.check.0 != 0xffff {
            let (bucket, next, code) = header.check;
            check(usize::from(bucket) < 1 << 14, "cache verification: bucket")?;
            let bucket = usize::from(bucket);
            check(
                domain.next[bucket] == next,
                "cache verification: prediction",
            )?;
            check(domain.codes[bucket] == code, "cache verification: code")?;
        }
        let mut id = header.first_id;
        while !packet.is_empty() {
            let (code, time) = event_head(&mut packet, &header)?;
            check(domain.last_time <= time, "monotone timestamps")?;
            domain.last_time = time;
            let time = time - start;
            match code {
                1 => {
                    let (code, frames) = domain.location(&mut packet)?;
                    let known = trace
                        .locations
                        .entry(code)
                        .or_insert_with(|| frames.clone());
                    check(*known == frames, "consistent location info")?;
                }
                2 | 101..=116 => {
                    let alloc = domain.alloc(&mut packet, code, header.domain, time, id)?;
                    if let OwnedEvent::Alloc { stack, .. } = &alloc {
                        for code in stack {
                            check(trace.locations.contains_key(code), "location before use")?;
                        }
                    }
                    trace.events.push(alloc);
                    id += 1;
                }
                3 | 4 => {
                    let delta = packet.vint()?;
                    check(code == 4 || delta >= 0, "promote id sync")?;
                    let (id, domain) = (
                        id.wrapping_sub(1).wrapping_sub(delta.cast_unsigned()),
                        header.domain,
                    );
                    trace.events.push(if code == 3 {
                        OwnedEvent::Promote { time, id, domain }
                    } else {
                        OwnedEvent::Collect { time, id, domain }
                    });
                }
                _ => return Err(format!("event code {code}")),
            }
        }
        check(id == header.end_id, "alloc id sync")?;
    }
    Ok(trace)
}

struct Header {
    size: usize,
    content: usize,
    begin: u64,
    end: u64,
    version: u16,
    pid: u64,
    domain: u16,
    check: (u16, u16, u64),
    first_id: u64,
    end_id: u64,
}

impl Header {
    fn read(input: &mut Bytes<'_>) -> Result<Self, String> {
        let start = input.pos;
        let magic = input.u32()?;
        let bits = input.u32()?;
        let (begin, end) = (input.u64()?, input.u64()?);
        input.u32()?;
        let version = input.u16()?;
        let pid = input.u64()?;
        let domain = if version >= 3 { input.u16()? } else { 0 };
        let verify = (input.u16()?, input.u16()?, input.u64()?);
        let (first_id, end_id) = (input.u64()?, input.u64()?);
        check(magic == 0xc1fc_1fc1, "not a CTF packet")?;
        check((1..=3).contains(&version), "version")?;
        check(begin <= end, "monotone packet timestamps")?;
        check(first_id <= end_id, "monotone alloc ids")?;
        let size = bits as usize / 8;
        Ok(Self {
            size,
            content: size
                .checked_sub(input.pos - start)
                .ok_or("bad packet size")?,
            begin,
            end,
            version,
            pid,
            domain,
            check: verify,
            first_id,
            end_id,
        })
    }
}

fn event_head(input: &mut Bytes<'_>, header: &Header) -> Result<(u32, u64), String> {
    let head = input.u32()?;
    let mask = (1 << 25) - 1;
    let mut low = u64::from(head) & mask;
    if low < header.begin & mask {
        low += 1 << 25;
    }
    let time = (header.begin & !mask) + low;
    check(
        header.begin <= time && time <= header.end,
        "time in packet bounds",
    )?;
    Ok((head >> 25, time))
}

struct Domain {
    codes: Vec<u64>,
    next: Vec<u16>,
    last_stack: Vec<u64>,
    last_time: u64,
    files: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
}

impl Domain {
    fn new(start: u64) -> Self {
        Self {
            codes: vec![0; 1 << 14],
            next: vec![0; 1 << 14],
            last_stack: Vec::new(),
            last_time: start,
            files: Vec::new(),
        }
    }

    fn alloc(
        &mut self,
        input: &mut Bytes<'_>,
        code: u32,
        domain: u16,
        time: u64,
        id: u64,
    ) -> Result<OwnedEvent, String> {
        let (length, samples, source) = if code == 2 {
            let (length, samples) = (input.vint()?, input.vint()?);
            let source = match input.take(1)?[0] {
                0 => Source::Minor,
                1 => Source::Major,
                2 => Source::External,
                _ => return Err("source".into()),
            };
            (length, samples, source)
        } else {
            (i64::from(code) - 100, 1, Source::Minor)
        };
        let common_prefix = input.vint()?;
        let words = if code == 2 {
            input.u16()?
        } else {
            u16::from(input.take(1)?[0])
        };
        let prefix = usize::try_from(common_prefix).map_err(|_| "common prefix")?;
        let suffix = self.suffix(input, words)?;
        if prefix <= self.last_stack.len() {
            self.last_stack.truncate(prefix);
            self.last_stack.extend(suffix);
        }
        Ok(OwnedEvent::Alloc {
            time,
            id,
            domain,
            length: length.cast_unsigned(),
            samples: samples.cast_unsigned(),
            source,
            stack: self.last_stack.clone(),
            common_prefix: common_prefix.cast_unsigned(),
        })
    }

    fn suffix(&mut self, input: &mut Bytes<'_>, words: u16) -> Result<Vec<u64>, String> {
        let mut frames = Vec::new();
        let mut previous = 0;
        for _ in 0..words {
            let word = input.u16()?;
            let mut bucket = usize::from(word >> 2);
            self.next[previous] = word >> 2;
            let predictions = match word & 3 {
                3 => {
                    self.codes[bucket] = input.u64()?;
                    0
                }
                2 => input.take(1)?[0],
                1 => 1,
                _ => 0,
            };
            frames.push(self.codes[bucket]);
            for _ in 0..predictions {
                bucket = usize::from(self.next[bucket]);
                frames.push(self.codes[bucket]);
            }
            previous = bucket;
        }
        Ok(frames)
    }

    fn location(&mut self, input: &mut Bytes<'_>) -> Result<(u64, Vec<OwnedFrame>), String> {
        let code = input.u64()?;
        let count = input.take(1)?[0];
        let mut frames = Vec::new();
        for _ in 0..count {
            let packed = u64::from(input.u32()?) | u64::from(input.u16()?) << 32;
            let file_index = (packed >> 38 & 31) as usize;
            let name_index = (packed >> 43 & 31) as usize;
            if file_index == 31 {
                let file = input.string()?.to_vec();
                let names = if self.files.len() == 31 {
                    self.files.pop().map(|(_, names)| names).unwrap_or_default()
                } else {
                    Vec::new()
                };
                self.files.insert(0, (file, names));
            } else {
                check(file_index < self.files.len(), "file index")?;
                self.files[..=file_index].rotate_right(1);
            }
            let (file, names) = &mut self.files[0];
            if name_index == 31 {
                names.truncate(30);
                names.insert(0, input.string()?.to_vec());
            } else {
                check(name_index < names.len(), "name index")?;
                names[..=name_index].rotate_right(1);
            }
            frames.push(OwnedFrame {
                file: file.clone(),
                name: names[0].clone(),
                line: (packed & 0xf_ffff) as u32,
                start_char: (packed >> 20 & 0xff) as u16,
                end_char: (packed >> 28 & 0x3ff) as u16,
            });
        }
        Ok((code, frames))
    }
}

struct Bytes<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Bytes<'a> {
    fn left(&self) -> usize {
        self.bytes.len() - self.pos
    }

    fn is_empty(&self) -> bool {
        self.left() == 0
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], String> {
        check(n <= self.left(), "underflow")?;
        self.pos += n;
        Ok(&self.bytes[self.pos - n..self.pos])
    }

    fn sub(&mut self, n: usize) -> Result<Bytes<'a>, String> {
        let bytes = self.take(n)?;
        Ok(Bytes { bytes, pos: 0 })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.take(N)?.try_into().map_err(|_| "underflow".to_owned())
    }

    fn u16(&mut self) -> Result<u16, String> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_le_bytes)
    }

    fn string(&mut self) -> Result<&'a [u8], String> {
        let len = self.bytes[self.pos..]
            .iter()
            .position(|&byte| byte == 0)
            .ok_or("string")?;
        let string = self.take(len)?;
        self.take(1)?;
        Ok(string)
    }

    fn vint(&mut self) -> Result<i64, String> {
        Ok(match self.take(1)?[0] {
            253 => i64::from(self.u16()?),
            254 => i64::from(self.u32()?.cast_signed()),
            255 => self.u64()?.cast_signed(),
            byte => i64::from(byte),
        })
    }
}

fn check(ok: bool, what: &str) -> Result<(), String> {
    if ok {
        Ok(())
    } else {
        Err(format!("malformed trace: {what}"))
    }
}
