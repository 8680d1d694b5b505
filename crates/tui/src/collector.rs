//! The garbage collector: the last interval, then the whole run up to the moment.

use heapline_text::{Context, Line, Screen, gc, gc_interval};

use crate::app::App;
use crate::choices::Slot;

/// The lines of the view.
pub(crate) fn lines(app: &App, screen: Screen) -> Vec<Line> {
    let context = Context::new(screen);
    let mut lines = Vec::new();
    if let Some(recently) = app.collector(Slot::CollectorRecently) {
        lines.extend_from_slice(gc_interval(recently, &context).lines());
        lines.push(Line::default());
    }
    if let Some(report) = app.collector(Slot::Collector) {
        lines.extend_from_slice(gc(report, &context).lines());
    }
    lines
}
