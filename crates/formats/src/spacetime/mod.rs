//! The profiles of OCaml's Spacetime, which was part of OCaml 4.04 to 4.11.
//!
//! A profile has snapshots: how much was alive of each allocation point at some moments, and how much
//! had been allocated there by then. It tells nothing of single blocks. `rows.rs` says how that
//! becomes events.

mod emit;
#[cfg(test)]
mod golden;
mod names;
mod print;
mod processed;
mod raw;
mod rows;
mod series;
mod tables;
mod trie;

use std::io::{self, Read, Write};

use heapline_model::{
    Batch, Capabilities, Damage, Decoder, Error, Flaw, Header, InputSize, Runtime, Scheme, Step,
};

use crate::marshal::{self, Heap};
use crate::{Format, Options};
use emit::Emission;
pub use print::PrintMode;
use raw::Raw;
use series::{Contents, WORD};

/// The name of the format.
pub const NAME: &str = "spacetime";

pub(crate) const FORMAT: Format = Format {
    name: NAME,
    matches: |head| is_raw(head) || is_processed(head),
    decoder: |options| Box::new(Spacetime::new(options)),
};

/// A Spacetime profile, for what `prof_spacetime` printed.
#[derive(Debug)]
pub struct Series {
    contents: Contents,
    damage: Damage,
}

impl Series {
    /// Reads a raw or processed profile, plain or compressed.
    pub fn read(bytes: impl Read + Send + 'static, options: Options) -> Result<Self, Error> {
        let (mut bytes, _) =
            heapline_trace::decompressed(Box::new(bytes)).map_err(Error::format)?;
        let mut decoder = Spacetime::new(options);
        loop {
            let n = bytes.read(decoder.space())?;
            if n == 0 {
                decoder.finish(None)?;
            }
            decoder.filled(n);
            while !matches!(decoder.state, State::Complete(_)) && decoder.advance()? {}
            if let State::Complete(contents) = decoder.state {
                return Ok(Self {
                    contents: *contents,
                    damage: decoder.damage,
                });
            }
        }
    }

    /// The damage of the file.
    #[must_use]
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// How many snapshots there are.
    #[must_use]
    pub fn snapshots(&self) -> usize {
        self.contents.snapshots.len()
    }

    /// True if calls were counted.
    #[must_use]
    pub fn has_call_counts(&self) -> bool {
        self.contents.has_call_counts
    }

    /// Prints what `prof_spacetime print --filename --symbol --line-number` printed.
    pub fn print(
        &self,
        mode: PrintMode,
        snapshot: usize,
        is_inverted: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        print::print(&self.contents, mode, snapshot, is_inverted, out)
    }

    /// Prints what `prof_spacetime compare` printed: how much more there is by source file at the end
    /// of another profile.
    pub fn compare(&self, after: &Self, out: &mut dyn Write) -> io::Result<()> {
        print::compare(&self.contents, &after.contents, out)
    }
}

/// Bytes of the header of a small value.
const HEAD: usize = 20;

/// A raw profile begins with an integer of 64 bits whose lower half is this.
fn is_raw(head: &[u8]) -> bool {
    head.starts_with(&marshal::MAGIC)
        && head.get(HEAD) == Some(&0x03)
        && head.get(HEAD + 5..HEAD + 9) == Some(&[0xac, 0xe0, 0x0a, 0xce])
}

/// A processed one is a block of four fields, of which the first is a list of blocks of three that
/// begin with a number, or empty.
fn is_processed(head: &[u8]) -> bool {
    head.starts_with(&marshal::MAGIC)
        && matches!(
            head.get(HEAD..HEAD + 4),
            Some([0xc0, 0xa0, 0xb0, 0x0b | 0x0c] | [0xc0, 0x40, 0x40 | 0xa0, _])
        )
}

/// Decodes both kinds of profiles.
struct Spacetime {
    options: Options,
    buffer: Vec<u8>,
    /// Where the next value begins in the buffer, and where the input ends.
    start: usize,
    end: usize,
    /// Where the buffer begins in the input.
    offset: u64,
    header: Option<Header>,
    state: State,
    damage: Damage,
    values: u64,
}

enum State {
    /// Reads values.
    Raw(Raw),
    /// Waits for the only value.
    Processed,
    /// Looks for the next snapshot after damage.
    Lost(Raw),
    /// Nothing of the rest makes sense.
    GivenUp(Raw),
    /// Everything was read.
    Complete(Box<Contents>),
    Emitting(Box<Emission>),
}

impl Spacetime {
    fn new(options: Options) -> Self {
        Self {
            options,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            header: None,
            state: State::Raw(Raw::new()),
            damage: Damage::default(),
            values: 0,
        }
    }

    fn input(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Notes damage, which is an error if that was asked for.
    fn flaw(&mut self, at: u64, kind: &str, message: &str) -> Result<(), Error> {
        let flaw = Flaw {
            offset: at,
            kind: kind.to_owned(),
            message: message.to_owned(),
            details: std::collections::BTreeMap::new(),
        };
        if self.options.strict {
            return Err(Error::format(flaw.to_string()));
        }
        self.damage.count += 1;
        if self.damage.flaws.len() < 100 {
            self.damage.flaws.push(flaw);
        }
        Ok(())
    }

    fn position(&self) -> u64 {
        self.offset + self.start as u64
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
    }

    /// Goes on reading. False if that takes more input.
    fn advance(&mut self) -> Result<bool, Error> {
        match self.state {
            State::Raw(_) | State::Processed => self.value(),
            State::Lost(_) => Ok(self.search()),
            State::GivenUp(_) | State::Complete(_) | State::Emitting(_) => Ok(false),
        }
    }

    /// Reads the next value. False if that takes more input.
    fn value(&mut self) -> Result<bool, Error> {
        if self.header.is_none() {
            let head = self.input();
            if head.len() < HEAD + 9 {
                return Ok(false);
            }
            if is_processed(head) {
                self.state = State::Processed;
            }
            self.header = Some(header_of(&self.options));
        }
        let header = match marshal::Header::read(self.input(), marshal::Limits::default()) {
            Ok(Some(header)) if header.total() <= self.input().len() => header,
            Ok(_) => return Ok(false),
            Err(invalid) => return self.broken(None, invalid.offset, invalid.reason),
        };
        let bytes = &self.buffer[self.start..self.end];
        let mut complete = None;
        let content = header.content(bytes);
        let heap = content.as_ref().map_err(|invalid| *invalid);
        let taken = match heap.and_then(|content| Heap::parse(&header, content)) {
            Err(invalid) => Err((invalid.offset, invalid.reason)),
            Ok(heap) => match &mut self.state {
                State::Raw(raw) => raw.take(&heap).map_err(|reason| (0, reason)),
                State::Processed => match processed::read(&heap) {
                    Ok(contents) => {
                        complete = Some(contents);
                        Ok(())
                    }
                    Err(reason) => Err((0, reason)),
                },
                _ => Ok(()),
            },
        };
        match taken {
            Ok(()) => {
                self.values += 1;
                self.consume(header.total());
                if let Some(contents) = complete {
                    self.complete(contents)?;
                }
                Ok(true)
            }
            Err((offset, reason)) => self.broken(Some(header), offset, reason),
        }
    }

    /// Goes on after a value that cannot be read.
    fn broken(
        &mut self,
        header: Option<marshal::Header>,
        offset: usize,
        reason: &str,
    ) -> Result<bool, Error> {
        let state = std::mem::replace(&mut self.state, State::Processed);
        let State::Raw(mut raw) = state else {
            return Err(Error::format(reason.to_owned()));
        };
        if self.values == 0 {
            return Err(Error::format(reason.to_owned()));
        }
        self.flaw(self.position() + offset as u64, "invalid", reason)?;
        let among_snapshots = raw.is_among_snapshots();
        // The header may be right although the value is not: then another value follows it.
        let skipped = header.filter(|header| {
            let rest = &self.input()[header.total()..];
            let next = marshal::MAGIC;
            !rest.is_empty() && next.starts_with(&rest[..rest.len().min(next.len())])
        });
        self.state = match skipped {
            Some(header) if raw.skip() => {
                self.damage.lost_bytes += header.total() as u64;
                self.consume(header.total());
                State::Raw(raw)
            }
            _ if among_snapshots => {
                self.damage.lost_bytes += 1;
                self.consume(1);
                State::Lost(raw)
            }
            _ => State::GivenUp(raw),
        };
        Ok(true)
    }

    /// Looks for a value that says what follows. False if that takes more input.
    fn search(&mut self) -> bool {
        let kind = |window: &[u8]| {
            window.starts_with(&marshal::MAGIC)
                && window[4..HEAD] == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
                && matches!(window[HEAD], 0x40..=0x42)
        };
        let input = self.input();
        let found = input.windows(HEAD + 1).position(kind);
        let skipped = found.unwrap_or_else(|| input.len().saturating_sub(HEAD));
        self.damage.lost_bytes += skipped as u64;
        self.consume(skipped);
        if found.is_none() {
            return false;
        }
        if let State::Lost(mut raw) = std::mem::replace(&mut self.state, State::Processed) {
            raw.restart();
            self.state = State::Raw(raw);
        }
        true
    }

    /// Everything was read.
    fn complete(&mut self, mut contents: Contents) -> Result<(), Error> {
        if let Some(executable) = &self.options.executable {
            names::name(&mut contents, executable).map_err(Error::format)?;
        }
        self.state = State::Complete(Box::new(contents));
        Ok(())
    }

    fn emit(&mut self, contents: Contents) -> Result<(), Error> {
        let emission = Emission::new(contents, self.options.stacks);
        if emission.never_allocated() > 0 {
            let message = format!(
                "{} words are alive in snapshots that were never allocated",
                emission.never_allocated()
            );
            self.flaw(self.position(), "never-allocated", &message)?;
        }
        self.state = State::Emitting(Box::new(emission));
        Ok(())
    }
}

impl Decoder for Spacetime {
    fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    fn space(&mut self) -> &mut [u8] {
        const LEAST: usize = 1 << 16;
        // Moving what is left pays if there is little of it.
        if self.start > 0 && self.end - self.start < self.start {
            self.buffer.copy_within(self.start..self.end, 0);
            self.offset += self.start as u64;
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < LEAST {
            let len = (self.buffer.len() * 2).max(4 * LEAST);
            self.buffer.resize(len, 0);
        }
        &mut self.buffer[self.end..]
    }

    fn filled(&mut self, n: usize) {
        self.end += n;
        if !matches!(
            self.state,
            State::Raw(_) | State::Processed | State::Lost(_)
        ) {
            self.damage.lost_bytes += n as u64;
            self.start = self.end;
        }
    }

    fn finish(&mut self, broken: Option<String>) -> Result<(), Error> {
        // What came since the last call is decoded first.
        while matches!(self.state, State::Raw(_)) && self.value()? {}
        let reason = broken.map(|reason| format!("the input cannot be decompressed: {reason}"));
        let state = std::mem::replace(&mut self.state, State::Processed);
        let raw = match state {
            State::Raw(raw) | State::Lost(raw) | State::GivenUp(raw) => raw,
            State::Processed => {
                let message = "the processed profile is cut off: nothing of it can be read";
                return Err(Error::format(message));
            }
            complete @ (State::Complete(_) | State::Emitting(_)) => {
                self.state = complete;
                return Ok(());
            }
        };
        if self.header.is_none() {
            return Err(Error::format("the file ends before its first snapshot"));
        }
        if let Some(reason) = &reason {
            self.flaw(self.position(), "compression", reason)?;
        }
        let is_lost = self.damage.count > u64::from(reason.is_some());
        if !raw.is_complete() {
            self.damage.lost_bytes += self.input().len() as u64;
            if !is_lost || raw.is_among_snapshots() {
                self.flaw(self.position(), Flaw::TRUNCATED, raw.missing())?;
            }
        } else if !self.input().is_empty() {
            self.flaw(
                self.position(),
                "invalid",
                "there is something after the end",
            )?;
        }
        self.start = self.end;
        self.complete(raw.finish())
    }

    fn decode(&mut self, batch: &mut Batch) -> Result<Step, Error> {
        let is_enough = match &mut self.state {
            State::Complete(contents) => {
                let contents = std::mem::take(&mut **contents);
                self.emit(contents)?;
                true
            }
            State::Emitting(emission) => {
                return Ok(if emission.fill(batch) {
                    Step::Progress
                } else {
                    Step::End
                });
            }
            _ => self.advance()?,
        };
        Ok(if is_enough {
            Step::Progress
        } else {
            Step::NeedInput
        })
    }

    fn damage(&self) -> Damage {
        self.damage.clone()
    }

    fn size(&self) -> InputSize {
        InputSize {
            bytes: self.position(),
            packets: self.values,
        }
    }
}

/// A profile says nothing of the program that wrote it.
fn header_of(options: &Options) -> Header {
    let program = options.executable.as_ref();
    Header {
        format: NAME,
        format_version: 0,
        runtime: Runtime::OCaml {
            parameters: String::new(),
        },
        program: program.map_or_else(String::new, |program| program.path().display().to_string()),
        host: String::new(),
        pid: 0,
        start_time: 0,
        seed: None,
        first_lane: 0,
        context: None,
        word_bytes: WORD,
        scheme: Scheme::Given,
        tells: Capabilities {
            lifetimes: false,
            promotions: false,
            gc_parameters: false,
            lanes: false,
            sizes: false,
        },
    }
}
