//! Values as Marshal writes them, intact and damaged.

use super::*;

/// A value with a header that fits.
fn value(objects: u8, data: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([0, 0, 0, u8::try_from(data.len()).unwrap()]);
    bytes.extend([0, 0, 0, objects]);
    bytes.extend([0; 8]);
    bytes.extend(data);
    bytes
}

/// Reads a value that is not compressed.
fn read(bytes: &[u8]) -> Result<Heap<'_>, MarshalError> {
    let header = Header::read(bytes, Limits::default())?.expect("a whole header");
    header.content(bytes)?;
    Heap::parse(&header, &bytes[header.len..header.total()])
}

/// `("ab", [300; -1])`, and the string again.
const TUPLE: &[u8] = &[
    0xb0, 0x22, b'a', b'b', 0xa0, 0x01, 0x01, 0x2c, 0xa0, 0x00, 0xff, 0x40, 0x04, 3,
];

fn check_tuple(heap: &Heap<'_>) {
    let root = heap.block(heap.root()).unwrap();
    let [string, list, again] = root.exactly().unwrap();
    assert_eq!(heap.string(string), Some(&b"ab"[..]));
    let list: Vec<_> = heap.list(list).collect();
    assert_eq!(list, [Value::Int(300), Value::Int(-1)]);
    assert_eq!(again, string);
    assert_eq!(heap.object_count(), 4);
}

#[test]
fn values_are_read_in_all_formats() {
    check_tuple(&read(&value(4, TUPLE)).unwrap());

    let mut big = BIG_MAGIC.to_vec();
    big.extend([0; 4]);
    big.extend((TUPLE.len() as u64).to_be_bytes());
    big.extend(4_u64.to_be_bytes());
    big.extend([0; 8]);
    big.extend(TUPLE);
    check_tuple(&read(&big).unwrap());

    // References are counted from the first block.
    let mut plain = TUPLE.to_vec();
    *plain.last_mut().unwrap() = 1;
    let stored = zstd::bulk::compress(&plain, 3).unwrap();
    let mut compressed = COMPRESSED_MAGIC.to_vec();
    let [stored_len, plain_len] = [stored.len(), plain.len()].map(|len| len.try_into().unwrap());
    compressed.extend([9, stored_len, plain_len, 4, 0]);
    compressed.extend(stored);
    assert!(Header::read(&compressed, Limits::default()).is_err());
    let limits = Limits {
        decompressed_bytes: 1000,
        ..Limits::default()
    };
    let header = Header::read(&compressed, limits).unwrap().unwrap();
    let content = header.content(&compressed).unwrap();
    check_tuple(&Heap::parse(&header, &content).unwrap());
}

#[test]
fn sizes_are_limited() {
    let limits = Limits {
        bytes: 100,
        decompressed_bytes: 1000,
        objects: 3,
    };
    assert!(Header::read(&value(4, TUPLE), limits).is_err());
    assert!(Header::read(&value(3, TUPLE), limits).is_ok());
    let mut bomb = COMPRESSED_MAGIC.to_vec();
    bomb.extend([14, 1, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0]);
    assert!(Header::read(&bomb, limits).is_err());
    bomb[6..].fill(0xff);
    assert_eq!(Header::read(&bomb, limits), Ok(None));
    bomb.extend([0; 3]);
    assert!(Header::read(&bomb, limits).is_err());
}

#[test]
fn numbers_and_custom_blocks_are_skipped() {
    let mut data = vec![0xd0, 0x0c];
    data.extend([0; 8]);
    data.extend([0x0e, 1]);
    data.extend([0; 8]);
    data.extend(b"\x19_j\0\0\0\0\0\0\0\0\x07\x19_n\0\x01\0\0\0\x07\x19_i\0\0\0\0\x07");
    assert_eq!(read(&value(6, &data)).unwrap().object_count(), 6);
}

#[test]
fn integers_have_their_sign() {
    for (data, expected) in [
        (&[0x7f][..], 63),
        (&[0x00, 0xff], -1),
        (&[0x01, 0x80, 0x00], -32768),
        (&[0x02, 0x7f, 0xff, 0xff, 0xff], 0x7fff_ffff),
        (
            &[0x03, 0, 1, 0, 0, 0xac, 0xe0, 0x0a, 0xce],
            0x1_0000_ace0_0ace,
        ),
    ] {
        let bytes = value(0, data);
        assert_eq!(read(&bytes).unwrap().root(), Value::Int(expected));
    }
}

#[test]
fn blocks_may_be_defined_behind_a_pointer_into_them() {
    // [infix -> [1; "a"]; the same block; 1.5; int64 7]
    let mut data = vec![0x80 | 4 << 4];
    data.extend([0x11, 0, 0, 0, 8, 0x80 | 2 << 4, 0x41, 0x21, b'a']);
    data.extend([0x04, 2]);
    data.push(0x0c);
    data.extend(1.5_f64.to_le_bytes());
    data.extend(*b"\x19_j\0\0\0\0\0\0\0\0\x07");
    let bytes = value(5, &data);
    let heap = read(&bytes).unwrap();
    let root = heap.block(heap.root()).unwrap();
    assert_eq!((root.tag, root.len()), (0, 4));
    assert_eq!(root.get(0), Some(Value::Infix));
    let inner = heap.block(root.get(1).unwrap()).unwrap();
    assert_eq!(inner.int(0), Some(1));
    assert_eq!(heap.string(inner.get(1).unwrap()), Some(&b"a"[..]));
    assert_eq!(heap.double(root.get(2).unwrap()), Some(1.5));
    assert_eq!(heap.int64(root.get(3).unwrap()), Some(7));
}

#[test]
fn a_list_that_never_ends_does() {
    // let rec l = 1 :: l
    let bytes = value(1, &[0x80 | 2 << 4, 0x41, 0x04, 1]);
    let heap = read(&bytes).unwrap();
    assert_eq!(heap.list(heap.root()).count(), 1);
}

#[test]
fn what_is_not_a_value_is_refused() {
    for (objects, data) in [
        (0, &[][..]),
        (0, &[0x40, 0x40]),                         // more bytes than values
        (1, &[0x80 | 3 << 4, 0x40, 0x40]),          // fewer fields than announced
        (1, &[0x08, 0xff, 0xff, 0xff, 0x00, 0x40]), // four million fields
        (0, &[0x04, 1]),                            // refers to nothing
        (1, &[0x0e, 1]),                            // an array of doubles that is cut off
        (1, &[0x10, 0, 0, 0, 0]),                   // a closure
        (1, &[0x15, 0, 0, 0, 1, 0, 0, 0, 0]),       // a string of 4 GiB
        (2, &[0x21, b'a']),                         // not as many objects
        (0, &[0x11, 0, 0, 0, 8, 0x11, 0, 0, 0, 8]), // pointers to pointers
        (1, &[0x12, b'_', b'x', 0, 0, 0, 0, 0, 0, 0, 0, 0]), // not an integer
    ] {
        assert!(read(&value(objects, data)).is_err(), "{data:?}");
    }
    assert_eq!(Header::read(&MAGIC, Limits::default()), Ok(None));
    assert!(Header::read(b"\x84\x95\xa6\xc0", Limits::default()).is_err());
    let mut huge = value(0, &[0x40]);
    huge[4] = 0xff;
    assert!(Header::read(&huge, Limits::default()).is_err());
}
