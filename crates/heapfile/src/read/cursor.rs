//! Decodes numbers and texts of a column.

/// A column that ends too early, or has a number that is too large.
pub(super) const BAD_NUMBER: &str = "a number that is cut off or too large";

/// A column and the place in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    /// The last number of a column of differences.
    last: u64,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest, last: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, &'static str> {
        let (&byte, rest) = self.rest.split_first().ok_or(BAD_NUMBER)?;
        self.rest = rest;
        Ok(byte)
    }

    #[inline]
    pub(super) fn varint(&mut self) -> Result<u64, &'static str> {
        // Nearly all numbers have one byte.
        if let Some((&byte, rest)) = self.rest.split_first()
            && byte < 0x80
        {
            self.rest = rest;
            return Ok(byte.into());
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64, &'static str> {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(BAD_NUMBER);
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
            shift += 7;
            if shift > 63 {
                return Err(BAD_NUMBER);
            }
        }
    }

    /// A zigzag-encoded difference to a number.
    #[inline]
    pub(super) fn delta_from(&mut self, from: u64) -> Result<u64, &'static str> {
        let zigzag = self.varint()?;
        Ok(from.wrapping_add(zigzag >> 1 ^ (zigzag & 1).wrapping_neg()))
    }

    /// A zigzag-encoded difference to the previous number of the column.
    #[inline]
    pub(super) fn delta(&mut self) -> Result<u64, &'static str> {
        self.last = self.delta_from(self.last)?;
        Ok(self.last)
    }

    pub(super) fn eight_bytes(&mut self) -> Result<u64, &'static str> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(BAD_NUMBER)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// A text. It comes from a program's memory: what is no UTF-8 is replaced.
    pub(super) fn text(&mut self) -> Result<String, &'static str> {
        const CUT_OFF: &str = "a text that is cut off";
        let len = usize::try_from(self.varint()?).map_err(|_| CUT_OFF)?;
        let (text, rest) = self.rest.split_at_checked(len).ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(String::from_utf8_lossy(text).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::{put_delta, put_varint};

    #[test]
    fn numbers_are_read_as_written() {
        for number in [0, 1, 127, 128, 16383, 16384, u64::MAX / 2, u64::MAX] {
            let mut column = Vec::new();
            put_varint(&mut column, number);
            put_delta(&mut column, 5, number);
            let mut cursor = Cursor::new(&column);
            assert_eq!(cursor.varint(), Ok(number));
            assert_eq!(cursor.delta_from(5), Ok(number));
            assert!(cursor.is_empty());
        }
    }

    #[test]
    fn numbers_of_more_than_64_bits_are_refused() {
        for column in [&[0xff; 10][..], &[0x80; 9], &[0x80; 11], &[]] {
            assert_eq!(Cursor::new(column).varint(), Err(BAD_NUMBER));
        }
        let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        assert_eq!(Cursor::new(&largest).varint(), Err(BAD_NUMBER));
    }
}
