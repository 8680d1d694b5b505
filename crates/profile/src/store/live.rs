//! Live bytes while a profile grows, to know its peak without another pass.

use super::Moment;
use super::ids::{IdVec, KindId};

/// Live bytes in the order of the source, which is the order of time unless events are late.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// The bytes that a block of each kind stands for.
    pub(crate) weights: IdVec<KindId, f64>,
    bytes: f64,
    most: f64,
    peak: Moment,
    is_out_of_order: bool,
}

impl Live {
    #[inline]
    pub(crate) fn born(&mut self, kind: KindId, event: u64) {
        self.bytes += self.weights[kind];
        if self.bytes > self.most {
            self.most = self.bytes;
            self.peak = Moment(event + 1);
        }
    }

    #[inline]
    pub(crate) fn died(&mut self, kind: KindId) {
        self.bytes -= self.weights[kind];
    }

    /// Says that events have been put in another order.
    pub(crate) fn forget_peak(&mut self) {
        self.is_out_of_order = true;
    }

    /// The first moment with the most live bytes, if that is known.
    pub(crate) fn peak(&self) -> Option<Moment> {
        (!self.is_out_of_order).then_some(self.peak)
    }
}
