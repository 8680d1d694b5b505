//! The large reference trace, where it is at hand: a compiler at work, 67 MB.

use heapline_testkit::fixtures;
use heapline_trace::{Event, Options, Reader, Writer};

#[test]
fn the_large_reference_trace_has_the_numbers_known_of_it() {
    let Some(folder) = fixtures::reference_folder() else {
        return;
    };
    let path = folder.join("own/ocamlopt-large/trace.ctf.zst");
    if !path.exists() {
        return;
    }
    let mut reader = Reader::open(&path, Options::new().strict(true)).unwrap();
    let mut writer = Writer::new(Vec::new(), reader.info()).unwrap();
    let (mut allocations, mut others, mut new_frames, mut frames) = (0, 0, 0, 0);
    reader
        .for_each(|event, locations| {
            match event {
                Event::Alloc(alloc) => {
                    allocations += 1;
                    new_frames += alloc.stack.new_frames().len();
                    frames += alloc.stack.frames().len();
                }
                _ => others += 1,
            }
            writer.event(&event, locations).unwrap();
        })
        .unwrap();
    assert_eq!((allocations, allocations + others), (3_487_056, 7_353_975));
    assert_eq!((new_frames, frames), (15_152_663, 435_545_176));

    // Written again, it is not larger, and still flawless.
    let rewritten = writer.finish().unwrap();
    let size = reader.offset();
    assert!(
        rewritten.len() as u64 <= size,
        "{size} bytes became {}",
        rewritten.len()
    );
    let mut again = 0;
    let mut reader = Reader::new(&rewritten[..], Options::new().strict(true)).unwrap();
    reader.for_each(|_, _| again += 1).unwrap();
    assert_eq!(again, allocations + others);
}
