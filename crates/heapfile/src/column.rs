//! Numbers and texts of a column.

/// Appends a number in LEB128.
#[inline]
pub fn put_varint(column: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        #[expect(clippy::cast_possible_truncation, reason = "the lowest 7 bits")]
        column.push(number as u8 | 0x80);
        number >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is less than 128")]
    column.push(number as u8);
}

/// Maps numbers around 0, modulo 2^64, to small ones: 0, -1, 1, -2, 2, ...
#[inline]
#[must_use]
pub fn zigzag(difference: u64) -> u64 {
    let sign = if difference >> 63 == 1 { u64::MAX } else { 0 };
    difference << 1 ^ sign
}

/// Appends the difference of a number to another.
#[inline]
pub fn put_delta(column: &mut Vec<u8>, from: u64, number: u64) {
    put_varint(column, zigzag(number.wrapping_sub(from)));
}

/// Appends a text.
pub fn put_text(column: &mut Vec<u8>, text: &[u8]) {
    put_varint(column, text.len() as u64);
    column.extend_from_slice(text);
}
