//! The text of memtrace's `dump_trace`.

use heapline_trace::{Event, LocationId, Locations, Source};

use super::stack_text::StackText;
use crate::text::{Out, put_number};

#[derive(Default)]
pub(super) struct Lines {
    stacks: StackText,
}

impl super::Lines for Lines {
    #[inline]
    fn event(&mut self, event: &Event<'_>, locations: &Locations, out: &mut Out<'_>) {
        out.padded(event.time());
        out.put(b" ");
        out.padded(event.id());
        let alloc = match event {
            Event::Promote(_) => return out.put(b" promote\n"),
            Event::Collect(_) => return out.put(b" collect\n"),
            Event::Alloc(alloc) => alloc,
        };
        out.put(match alloc.source {
            Source::Minor => b" alloc ",
            Source::Major => b" alloc_major ",
            Source::External => b" alloc_ext ",
        });
        out.number(alloc.samples);
        out.put(b" len=");
        out.number(alloc.length);
        out.put(b" dom=");
        out.number(u64::from(alloc.domain));
        out.put(b" ");
        // C's "% 4d": four wide, and never without a space.
        let prefix = alloc.stack.common_prefix();
        out.put(match prefix {
            0..10 => b"   ",
            10..100 => b"  ",
            _ => b" ",
        });
        out.number(prefix);
        out.put(b":");
        self.stacks
            .put(alloc.domain, &alloc.stack, locations, 0, out, |id, text| {
                render(id, locations, text);
            });
        out.put(b"\n");
    }
}

fn render(id: LocationId, locations: &Locations, out: &mut Vec<u8>) {
    let frames = locations.frames(id);
    if frames.len() == 0 {
        let code = locations.code(id).cast_signed();
        out.extend_from_slice(b" $");
        out.extend_from_slice(itoa::Buffer::new().format(code).as_bytes());
    }
    for frame in frames {
        out.push(b' ');
        put_frame(out, &frame);
    }
}

/// A frame as `name@file:line:start-end`.
pub(super) fn put_frame(out: &mut Vec<u8>, frame: &heapline_trace::Frame<'_>) {
    out.extend_from_slice(frame.name);
    out.push(b'@');
    out.extend_from_slice(frame.file);
    out.push(b':');
    put_number(out, u64::from(frame.line));
    out.push(b':');
    put_number(out, u64::from(frame.start_char));
    out.push(b'-');
    put_number(out, u64::from(frame.end_char));
}
