//! Fast buffered text output.

use std::io::{self, Write};

/// The amount of text that is buffered before it is written.
const CHUNK: usize = 256 << 10;

/// Text on its way out, collected so that it is written in large pieces.
pub(crate) struct Out<'a> {
    text: Vec<u8>,
    sink: &'a mut dyn Write,
    result: io::Result<()>,
}

impl<'a> Out<'a> {
    pub(crate) fn new(sink: &'a mut dyn Write) -> Self {
        Self {
            text: Vec::with_capacity(2 * CHUNK),
            sink,
            result: Ok(()),
        }
    }

    /// Appends bytes.
    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
        if self.text.len() >= CHUNK {
            self.write();
        }
    }

    /// Appends a number.
    #[inline]
    pub(crate) fn number(&mut self, n: u64) {
        put_number(&mut self.text, n);
    }

    /// Appends a number as C's `%010d` has it.
    #[inline]
    pub(crate) fn padded(&mut self, n: u64) {
        put_padded(&mut self.text, n);
    }

    /// Fails if an earlier write failed.
    pub(crate) fn check(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.result, Ok(()))
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self) -> io::Result<()> {
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
pub(crate) fn put_number(out: &mut Vec<u8>, n: u64) {
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

/// Appends a part of a quoted field of CSV that is a list separated by semicolons: quotes are
/// doubled. Names are made valid text without line ends and semicolons; where that matters, the
/// other formats have them as they are.
pub(crate) fn put_quoted_name(out: &mut Vec<u8>, name: &str) {
    for character in name.chars() {
        match character {
            '"' => out.extend_from_slice(b"\"\""),
            ';' | '\n' | '\r' => out.push(b'_'),
            _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Appends an apostrophe to the beginning of a field of CSV if a spreadsheet would take the text that follows for a formula.
pub(crate) fn put_if_formula(out: &mut Out<'_>, text: &[u8]) {
    if is_formula(text) {
        out.put(b"'");
    }
}

/// Returns true if a spreadsheet takes a field of CSV for a formula, which can read files and run programs.
#[must_use]
pub fn is_formula(text: &[u8]) -> bool {
    matches!(
        text.first(),
        Some(b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r')
    )
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
