//! Offsets in texts as JavaScript counts them.

/// The UTF-16 code units before an offset in bytes.
pub(crate) fn utf16_offset(text: &str, byte: usize) -> usize {
    let before = text.get(..byte).unwrap_or(text);
    before.encode_utf16().count()
}

/// The offset in bytes of the character that has this UTF-16 code unit.
pub(crate) fn byte_offset(text: &str, unit: usize) -> usize {
    let mut units = 0;
    let mut chars = text.char_indices();
    let found = chars.find(|(_, c)| {
        units += c.len_utf16();
        units > unit
    });
    found.map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_converted_both_ways() {
        // 𝕏 has four bytes and two units, é two bytes and one unit.
        let text = "a𝕏éb";
        for (byte, unit) in [(0, 0), (1, 1), (5, 3), (7, 4), (8, 5)] {
            assert_eq!(utf16_offset(text, byte), unit);
            assert_eq!(byte_offset(text, unit), byte);
        }
        // Within a character, and after the end.
        assert_eq!(byte_offset(text, 2), 1);
        assert_eq!(byte_offset(text, 99), 8);
        assert_eq!(utf16_offset(text, 99), 5);
    }
}
