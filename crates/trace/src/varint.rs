//! Numbers of variable width in packets of our own: seven bits a byte, the lowest first; the last byte has its highest bit clear.

/// The most that a number takes.
pub(crate) const MAX_NUMBER: usize = 10;

/// Appends a number.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64) {
    let mut bytes = [0; MAX_NUMBER];
    let len = encode_number(&mut bytes, number);
    out.extend_from_slice(&bytes[..len]);
}

/// Writes a number to the start of `out`. Returns how many bytes it takes.
pub(crate) fn encode_number(out: &mut [u8; MAX_NUMBER], mut number: u64) -> usize {
    let mut len = 0;
    while number >= 0x80 {
        out[len] = number.to_le_bytes()[0] | 0x80;
        number >>= 7;
        len += 1;
    }
    out[len] = number.to_le_bytes()[0];
    len + 1
}

/// Takes a number from the start of `bytes`; `None` if there is none.
pub(crate) fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_arrive_as_they_were_sent() {
        for sent in [0, 1, 127, 128, 300, 1 << 32, u64::MAX] {
            let mut bytes = Vec::new();
            put_number(&mut bytes, sent);
            assert!(bytes.len() <= MAX_NUMBER);
            let mut rest = &bytes[..];
            assert_eq!(number(&mut rest), Some(sent));
            assert!(rest.is_empty());
        }
        assert_eq!(number(&mut &[0x80; 12][..]), None);
        assert_eq!(number(&mut &[0x80; 2][..]), None);
    }
}
