//! Consumers of events.

use crate::collection::Collection;
use crate::event::{Alloc, Event, Mark};
use crate::location::Locations;

/// A consumer of events, for [`Decoder::visit_packet`](crate::Decoder::visit_packet).
pub trait Visitor {
    /// A block was allocated.
    fn alloc(&mut self, alloc: &Alloc<'_>, locations: &Locations);
    /// A block moved from the minor to the major heap.
    fn promote(&mut self, mark: Mark, locations: &Locations);
    /// A block was found dead.
    fn collect(&mut self, mark: Mark, locations: &Locations);
    /// The garbage collector worked. That comes in the order of the packets of its domain, in no order with blocks. By
    /// default it is ignored.
    fn collection(&mut self, _work: &Collection) {}
}

/// A closure as a visitor.
pub(crate) struct OnEvent<F>(pub(crate) F);

impl<F: FnMut(Event<'_>, &Locations)> Visitor for OnEvent<F> {
    #[inline]
    fn alloc(&mut self, alloc: &Alloc<'_>, locations: &Locations) {
        (self.0)(Event::Alloc(*alloc), locations);
    }

    #[inline]
    fn promote(&mut self, mark: Mark, locations: &Locations) {
        (self.0)(Event::Promote(mark), locations);
    }

    #[inline]
    fn collect(&mut self, mark: Mark, locations: &Locations) {
        (self.0)(Event::Collect(mark), locations);
    }
}
