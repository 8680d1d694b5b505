//! The times in which no new blocks were recorded.

use crate::tail::Pause;

/// The most gaps that are told apart.
const MAX: usize = 256;

/// Gaps from the start on, in order.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    closed: Vec<(u64, u64)>,
    /// The start of a gap that is not over.
    open: Option<u64>,
}

impl Gaps {
    /// Adds the latest pause of a recording, which may be known already. One whose end was not seen lasts to
    /// that of the next one.
    pub(crate) fn add(&mut self, pause: Pause) {
        let is_known = |&(_, end): &(u64, u64)| pause.start < end;
        if self.closed.last().is_some_and(is_known) {
            return;
        }
        let start = *self.open.get_or_insert(pause.start);
        if let Some(end) = pause.end {
            self.open = None;
            // A pause has a length: otherwise it would not be known the next time.
            self.closed.push((start, end.max(pause.start + 1)));
            if self.closed.len() > MAX {
                self.join_nearest();
            }
        }
    }

    /// Joins the two gaps with the least time in between.
    fn join_nearest(&mut self) {
        let between = self.closed.windows(2).map(|pair| pair[1].0 - pair[0].1);
        if let Some((at, _)) = between.enumerate().min_by_key(|&(_, between)| between) {
            let (_, end) = self.closed.remove(at + 1);
            self.closed[at].1 = end;
        }
    }

    /// All of them, if it is `now`.
    pub(crate) fn until(&self, now: u64) -> Vec<(u64, u64)> {
        let open = self.open.map(|start| (start, now.max(start)));
        self.closed.iter().copied().chain(open).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(start: u64, end: Option<u64>) -> Pause {
        Pause { start, end }
    }

    #[test]
    fn a_pause_counts_once_however_often_it_is_seen() {
        let mut gaps = Gaps::default();
        for end in [None, None, Some(20), Some(20)] {
            gaps.add(pause(10, end));
        }
        gaps.add(pause(30, None));
        assert_eq!(gaps.until(35), [(10, 20), (30, 35)]);
        // Its end was not seen.
        gaps.add(pause(40, Some(50)));
        gaps.add(pause(60, Some(60)));
        gaps.add(pause(60, Some(60)));
        assert_eq!(gaps.until(70), [(10, 20), (30, 50), (60, 61)]);
    }

    #[test]
    fn there_are_never_too_many() {
        let mut gaps = Gaps::default();
        for n in 1..10_000_u64 {
            gaps.add(pause(100 * n, Some(100 * n + n % 99)));
        }
        let gaps = gaps.until(0);
        assert_eq!(gaps.len(), MAX);
        assert!(gaps.is_sorted_by(|a, b| a.1 <= b.0));
        assert_eq!((gaps[0].0, gaps[MAX - 1].1), (100, 999_901));
    }
}
