//! Columns of numbers in few bytes.
//!
//! Numbers that are close together are kept in groups of 64: the smallest one, and the differences to it in as many bytes as the
//! largest of them needs.

/// Numbers of a group.
const GROUP: usize = 64;

/// Appends a column.
pub(crate) fn pack(values: &[u64], out: &mut Vec<u8>) {
    for group in values.chunks(GROUP) {
        let base = group.iter().copied().min().unwrap_or(0);
        let used = group.iter().fold(0, |used, value| used | (value - base));
        let width = (u64::BITS - used.leading_zeros()).div_ceil(8);
        let [width_byte, ..] = width.to_le_bytes();
        out.push(width_byte);
        out.extend_from_slice(&base.to_le_bytes());
        // Spelled out, so that each of them is compiled to a plain loop.
        match width {
            0 => {}
            1 => put::<1>(group, base, out),
            2 => put::<2>(group, base, out),
            3 => put::<3>(group, base, out),
            4 => put::<4>(group, base, out),
            5 => put::<5>(group, base, out),
            6 => put::<6>(group, base, out),
            7 => put::<7>(group, base, out),
            _ => put::<8>(group, base, out),
        }
    }
}

fn put<const WIDTH: usize>(group: &[u64], base: u64, out: &mut Vec<u8>) {
    for value in group {
        let bytes = (value - base).to_le_bytes();
        out.extend_from_slice(&bytes[..WIDTH]);
    }
}

/// Takes a column of so many numbers from the front of some bytes. `None` if there are too few bytes, or they are not a
/// column.
pub(crate) fn unpack(bytes: &mut &[u8], len: usize) -> Option<Vec<u64>> {
    // Each group takes some bytes: a length that is made up does not reserve memory.
    if bytes.len() < len.div_ceil(GROUP) {
        return None;
    }
    let mut values = Vec::with_capacity(len);
    while values.len() < len {
        let n = GROUP.min(len - values.len());
        let width = usize::from(*bytes.split_off_first()?);
        let base = u64::from_le_bytes(bytes.split_off(..8)?.try_into().ok()?);
        let group = bytes.split_off(..n * width)?;
        match width {
            0 => values.resize(values.len() + n, base),
            1 => take::<1>(group, base, &mut values),
            2 => take::<2>(group, base, &mut values),
            3 => take::<3>(group, base, &mut values),
            4 => take::<4>(group, base, &mut values),
            5 => take::<5>(group, base, &mut values),
            6 => take::<6>(group, base, &mut values),
            7 => take::<7>(group, base, &mut values),
            8 => take::<8>(group, base, &mut values),
            _ => return None,
        }
    }
    Some(values)
}

fn take<const WIDTH: usize>(group: &[u8], base: u64, out: &mut Vec<u64>) {
    out.extend(group.chunks_exact(WIDTH).map(|bytes| {
        let mut value = [0; 8];
        value[..WIDTH].copy_from_slice(bytes);
        base.wrapping_add(u64::from_le_bytes(value))
    }));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn columns_come_back(
            values in prop::collection::vec(
                (0..64_u32, any::<u64>()).prop_map(|(shift, value)| value >> shift),
                0..300,
            ),
        ) {
            let mut bytes = Vec::new();
            pack(&values, &mut bytes);
            bytes.push(42);
            let mut rest = &bytes[..];
            prop_assert_eq!(unpack(&mut rest, values.len()), Some(values.clone()));
            prop_assert_eq!(rest, &[42]);
            for len in 0..bytes.len() - 1 {
                prop_assert_eq!(unpack(&mut &bytes[..len], values.len().max(1)), None);
            }
        }

        #[test]
        fn any_bytes_are_a_column_or_none(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            len in any::<usize>(),
        ) {
            unpack(&mut &bytes[..], len);
            unpack(&mut &bytes[..], len % 200);
        }
    }

    #[test]
    fn neighbours_take_a_byte() {
        let values: Vec<u64> = (0..6400).map(|i| (1 << 40) + i * 3).collect();
        let mut bytes = Vec::new();
        pack(&values, &mut bytes);
        assert_eq!(bytes.len(), 6400 + 100 * 9);
    }
}
