//! Comma-separated values: one row per event.

use heapline_trace::{Event, LocationId, Locations, TraceInfo};

use super::memtrace::put_frame;
use super::stack_text::StackText;
use crate::text::{Out, put_if_formula, put_number, put_quoted_name};

#[derive(Default)]
pub(super) struct Lines {
    stacks: StackText,
    frame: Vec<u8>,
}

impl super::Lines for Lines {
    fn begin(&mut self, _: &TraceInfo, _: u16, out: &mut Out<'_>) {
        out.put(b"time_us,event,id,domain,source,length_words,samples,sampled_blocks,stack\n");
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>, locations: &Locations, out: &mut Out<'_>) {
        out.number(event.time());
        out.put(match event {
            Event::Alloc(_) => b",alloc,",
            Event::Promote(_) => b",promote,",
            Event::Collect(_) => b",collect,",
        });
        out.number(event.id());
        out.put(b",");
        out.number(u64::from(event.domain()));
        let Event::Alloc(alloc) = event else {
            return out.put(b",,,,,\n");
        };
        out.put(b",");
        out.put(alloc.source.name().as_bytes());
        out.put(b",");
        out.number(alloc.length);
        out.put(b",");
        out.number(alloc.samples);
        out.put(b",");
        out.number(alloc.merged.saturating_add(1));
        out.put(b",\"");
        let outermost = alloc.stack.frames().first();
        if let Some(first) = outermost.and_then(|id| locations.frames(*id).next()) {
            let beginning = if first.name.is_empty() {
                b"@"
            } else {
                first.name
            };
            put_if_formula(out, beginning);
        }
        let frame = &mut self.frame;
        // Every frame's text begins with the separator.
        self.stacks
            .put(alloc.domain, &alloc.stack, locations, 1, out, |id, text| {
                render(id, locations, frame, text);
            });
        out.put(b"\"\n");
    }
}

/// Frames separated by semicolons.
fn render(id: LocationId, locations: &Locations, frame_text: &mut Vec<u8>, out: &mut Vec<u8>) {
    let frames = locations.frames(id);
    if frames.len() == 0 {
        out.extend_from_slice(b";$");
        put_number(out, locations.code(id));
    }
    for frame in frames {
        out.push(b';');
        frame_text.clear();
        put_frame(frame_text, &frame);
        put_quoted_name(out, &String::from_utf8_lossy(frame_text));
    }
}
