//! Writes a profile in pieces.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use hashbrown::HashMap;
use prost::Message;

use super::{PROGRAM, proto};
use crate::names::saturated;

/// A message on its way out, in pieces.
pub(super) struct Sink<W: Write> {
    out: GzEncoder<W>,
    bytes: Vec<u8>,
}

impl<W: Write> Sink<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out: GzEncoder::new(out, Compression::default()),
            bytes: Vec::new(),
        }
    }

    /// Writes the strings, and what is left.
    pub(super) fn finish(mut self, strings: Strings) -> io::Result<()> {
        for string in strings.list {
            self.put(&proto::Profile {
                string_table: vec![string],
                ..Default::default()
            })?;
        }
        self.out.finish()?.flush()
    }

    pub(super) fn put(&mut self, piece: &proto::Profile) -> io::Result<()> {
        self.bytes.clear();
        piece.encode(&mut self.bytes)?;
        self.out.write_all(&self.bytes)
    }

    /// Writes a sample, and gives it back.
    pub(super) fn sample(&mut self, sample: &mut proto::Sample) -> io::Result<()> {
        let mut piece = proto::Profile {
            sample: vec![std::mem::take(sample)],
            ..Default::default()
        };
        self.put(&piece)?;
        *sample = piece.sample.pop().unwrap_or_default();
        Ok(())
    }

    pub(super) fn location(&mut self, frame: usize, line: proto::Line) -> io::Result<()> {
        self.put(&proto::Profile {
            location: vec![proto::Location {
                id: frame as u64 + 1,
                mapping_id: PROGRAM,
                line: vec![line],
            }],
            ..Default::default()
        })
    }

    pub(super) fn function(&mut self, function: proto::Function) -> io::Result<()> {
        self.put(&proto::Profile {
            function: vec![function],
            ..Default::default()
        })
    }
}

/// A string table of a profile: gives strings their numbers. The empty string is the first one.
#[derive(Debug)]
pub struct Strings {
    pub(super) list: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Default for Strings {
    fn default() -> Self {
        Self {
            // The format wants the empty string first.
            list: vec![String::new()],
            numbers: HashMap::from([(String::new(), 0)]),
        }
    }
}

impl Strings {
    /// The place of a string in the table.
    pub fn place(&mut self, string: &str) -> usize {
        let list = &mut self.list;
        *self.numbers.entry_ref(string).or_insert_with(|| {
            list.push(string.to_owned());
            list.len() - 1
        })
    }

    /// The place of a string, as messages have it.
    pub fn number(&mut self, string: &str) -> i64 {
        saturated(self.place(string) as u64)
    }

    /// The table.
    #[must_use]
    pub fn into_list(self) -> Vec<String> {
        self.list
    }
}
