//! The lanes that events came from.

/// A set of lanes.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneSet {
    /// The lane that was seen last, plus one.
    recent: u32,
    has: Vec<bool>,
}

impl LaneSet {
    #[inline]
    pub(crate) fn insert(&mut self, lane: u16) {
        if self.recent != u32::from(lane) + 1 {
            self.recent = u32::from(lane) + 1;
            let lane = usize::from(lane);
            if self.has.len() <= lane {
                self.has.resize(lane + 1, false);
            }
            self.has[lane] = true;
        }
    }

    /// The lanes in order.
    pub(crate) fn to_vec(&self) -> Vec<u16> {
        let lanes = (0..).zip(&self.has);
        lanes
            .filter_map(|(lane, has)| has.then_some(lane))
            .collect()
    }
}
