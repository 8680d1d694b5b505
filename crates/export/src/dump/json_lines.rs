//! JSON lines: the trace, then locations and events, a location before its first use.

use heapline_trace::{Event, LocationId, Locations, TraceInfo};
use serde_json::json;

use super::stack_text::StackText;
use crate::text::{Out, put_number};

#[derive(Default)]
pub(super) struct Lines {
    stacks: StackText,
    /// For each location, `None` until it is defined, then true if it has a name.
    defined: Vec<Option<bool>>,
}

impl super::Lines for Lines {
    fn begin(&mut self, info: &TraceInfo, version: u16, out: &mut Out<'_>) {
        let line = json!({
            "event": "trace",
            "format_version": version,
            "sample_rate": info.sample_rate,
            "word_size": info.word_size,
            "executable_name": info.executable_name,
            "host_name": info.host_name,
            "ocaml_runtime_params": info.ocaml_runtime_params,
            "seed": info.seed,
            "pid": info.pid,
            "start_time_us": info.start_time,
            "initial_domain": info.initial_domain,
            "context": info.context,
        });
        put_json(out, &line);
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>, locations: &Locations, out: &mut Out<'_>) {
        if let Event::Alloc(alloc) = event {
            for &id in alloc.stack.new_frames() {
                self.define(id, locations, out);
            }
        }
        out.put(match event {
            Event::Alloc(_) => b"{\"event\":\"alloc\",\"time_us\":",
            Event::Promote(_) => b"{\"event\":\"promote\",\"time_us\":",
            Event::Collect(_) => b"{\"event\":\"collect\",\"time_us\":",
        });
        out.number(event.time());
        out.put(b",\"id\":");
        out.number(event.id());
        out.put(b",\"domain\":");
        out.number(u64::from(event.domain()));
        if let Event::Alloc(alloc) = event {
            out.put(b",\"source\":\"");
            out.put(alloc.source.name().as_bytes());
            out.put(b"\",\"length_words\":");
            out.number(alloc.length);
            out.put(b",\"samples\":");
            out.number(alloc.samples);
            out.put(b",\"sampled_blocks\":");
            out.number(alloc.merged.saturating_add(1));
            out.put(b",\"stack\":[");
            // Every location's text begins with the separator.
            self.stacks
                .put(alloc.domain, &alloc.stack, locations, 1, out, |id, text| {
                    text.push(b',');
                    put_number(text, id.index() as u64);
                });
            out.put(b"]");
        }
        out.put(b"}\n");
    }
}

impl Lines {
    /// Says what a location is, unless that was said before. A location that is used before it is
    /// named is defined again when it is.
    fn define(&mut self, id: LocationId, locations: &Locations, out: &mut Out<'_>) {
        if self.defined.len() <= id.index() {
            self.defined
                .resize(locations.len().max(id.index() + 1), None);
        }
        let named = Some(locations.is_defined(id));
        if self.defined[id.index()] == named {
            return;
        }
        self.defined[id.index()] = named;
        let frames: Vec<_> = locations
            .frames(id)
            .map(|frame| {
                json!({
                    "name": frame.name_lossy(),
                    "file": frame.file_lossy(),
                    "line": frame.line,
                    "start_char": frame.start_char,
                    "end_char": frame.end_char,
                })
            })
            .collect();
        let line = json!({
            "event": "location",
            "location": id.index(),
            "code": locations.code(id),
            "frames": frames,
        });
        put_json(out, &line);
    }
}

fn put_json(out: &mut Out<'_>, value: &serde_json::Value) {
    out.put(value.to_string().as_bytes());
    out.put(b"\n");
}
