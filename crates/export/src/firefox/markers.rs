//! The work of the garbage collector as markers.

use fxprof_processed_profile::{
    CategoryHandle, MarkerFieldFlags, MarkerFieldFormat, MarkerLocations, MarkerTiming,
    ProcessHandle, Profile, StaticSchemaMarker, StaticSchemaMarkerField, StringHandle,
    ThreadHandle, Timestamp,
};

use crate::spans::{Span, Spans};

/// Adds the work of each domain to a thread of its own, or of the only domain to the thread of the blocks.
pub(super) fn add(
    profile: &mut Profile,
    process: ProcessHandle,
    blocks: ThreadHandle,
    source: &heapline_profile::Profile,
    most: u64,
) {
    let collections = source.collections();
    let spans = Spans::new(collections, most);
    let pid = u32::try_from(source.header().pid).unwrap_or(u32::MAX);
    let has_several = collections.lanes().len() > 1;
    for lane in collections.lanes() {
        let thread = if has_several {
            let thread = profile.add_thread(process, pid, nanos(0), false);
            profile.set_thread_name(thread, &format!("Domain {lane}"));
            profile.set_thread_end_time(thread, nanos(collections.end()));
            profile.add_initial_visible_thread(thread);
            thread
        } else {
            blocks
        };
        for span in spans.of_lane(lane).spans {
            let marker = GcMarker {
                name: profile.intern_string(span.kind.name()),
                phase: profile.intern_string(span.phase.map_or("", heapline_model::Phase::name)),
                span,
            };
            let timing = MarkerTiming::Interval(nanos(span.start), nanos(span.end()));
            profile.add_marker(thread, timing, marker);
        }
    }
    if spans.shorter > 0 {
        let note = format!(
            "{} collections shorter than {} ns are left out",
            spans.shorter, spans.least
        );
        let note = Note(profile.intern_string(&note));
        profile.add_marker(blocks, MarkerTiming::Instant(nanos(0)), note);
    }
}

fn nanos(nanos: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(nanos)
}

/// A piece of work.
struct GcMarker {
    name: StringHandle,
    phase: StringHandle,
    span: Span,
}

/// A number that may be unknown. The profiler shows no field for those that are null, as which JSON has this.
fn known(number: Option<u64>) -> f64 {
    number.map_or(f64::NAN, |number| number as f64)
}

impl StaticSchemaMarker for GcMarker {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "OCaml GC";
    const DESCRIPTION: Option<&'static str> =
        Some("Work of OCaml's garbage collector, for which the domain stood still.");
    const LOCATIONS: MarkerLocations = MarkerLocations::MARKER_CHART
        .union(MarkerLocations::MARKER_TABLE)
        .union(MarkerLocations::TIMELINE_OVERVIEW);
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.phase}");
    const TABLE_LABEL: Option<&'static str> =
        Some("{marker.data.phase} promoted {marker.data.promoted} words");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[
        StaticSchemaMarkerField {
            key: "phase",
            label: "Phase of the major collection",
            format: MarkerFieldFormat::String,
            flags: MarkerFieldFlags::SEARCHABLE,
        },
        StaticSchemaMarkerField {
            key: "promoted",
            label: "Words promoted",
            format: MarkerFieldFormat::Integer,
            flags: MarkerFieldFlags::empty(),
        },
        StaticSchemaMarkerField {
            key: "heap",
            label: "Words of the major heap at its end",
            format: MarkerFieldFormat::Integer,
            flags: MarkerFieldFlags::empty(),
        },
    ];

    fn name(&self, _profile: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _profile: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _field: u32) -> StringHandle {
        self.phase
    }

    fn number_field_value(&self, field: u32) -> f64 {
        known(if field == 1 {
            self.span.promoted_words
        } else {
            self.span.heap_words
        })
    }
}

/// Says what is not in the file.
struct Note(StringHandle);

impl StaticSchemaMarker for Note {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Left out";
    const FIELDS: &'static [StaticSchemaMarkerField] = &[];

    fn name(&self, _profile: &mut Profile) -> StringHandle {
        self.0
    }

    fn category(&self, _profile: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _field: u32) -> StringHandle {
        self.0
    }

    fn number_field_value(&self, _field: u32) -> f64 {
        f64::NAN
    }
}
