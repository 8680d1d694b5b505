//! The text of ocaml-alloc-stats' dump.

use heapline_trace::{Event, Locations, Source};

use crate::text::Out;

pub(super) struct Lines;

impl super::Lines for Lines {
    #[inline]
    fn event(&mut self, event: &Event<'_>, _: &Locations, out: &mut Out<'_>) {
        out.padded(event.time());
        out.put(b" ");
        out.padded(event.id());
        match event {
            Event::Promote(_) => out.put(b" P"),
            Event::Collect(_) => out.put(b" C"),
            Event::Alloc(alloc) => {
                out.put(match alloc.source {
                    Source::Minor => b" a ",
                    Source::Major => b" A ",
                    Source::External => b" AE ",
                });
                out.number(alloc.length);
            }
        }
        out.put(b"\n");
    }
}
