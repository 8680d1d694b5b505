//! Work of the collector that has begun in a domain, and not ended.

use heapline_recorder::{CollectionKind, Phase, Reading};

use super::counters::SliceKind;

/// Work that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) kind: CollectionKind,
    pub(super) began: Reading,
    pub(super) phase: Option<Phase>,
    /// What a slice is for.
    pub(super) slice: SliceKind,
}

/// Work inside of work: a slice, in which the domain waits for others, in which it does a slice; or collections in
/// finalisers.
const DEPTH: usize = 8;

/// The work that has begun in a domain, the outermost first.
#[derive(Debug, Default)]
pub(super) struct Opened {
    open: [Option<Open>; DEPTH],
    len: usize,
    /// Work that there was no room for.
    too_deep: usize,
}

impl Opened {
    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.too_deep = 0;
    }

    /// Work has begun. What is too deep is left out.
    pub(super) fn begin(&mut self, work: Open) {
        if work.kind == CollectionKind::Finalisers {
            // They are never inside of each other. Those before have raised an exception, after which the runtime does
            // not say that they have ended.
            self.take(CollectionKind::Finalisers);
        }
        if let Some(place) = self.open.get_mut(self.len) {
            *place = Some(work);
            self.len += 1;
        } else {
            self.too_deep += 1;
        }
    }

    /// The last work of a kind has ended, and what has begun inside of it.
    pub(super) fn take(&mut self, kind: CollectionKind) -> Option<Open> {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return None;
        }
        let is_it = |open: &Option<Open>| open.is_some_and(|open| open.kind == kind);
        let place = self.open[..self.len].iter().rposition(is_it)?;
        self.len = place;
        self.open[place].take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CollectionKind::{Finalisers, Minor, Slice};

    fn work(kind: CollectionKind, phase: Phase) -> Open {
        Open {
            kind,
            began: Reading::now(),
            phase: Some(phase),
            slice: SliceKind::Ordinary,
        }
    }

    /// The phase tells which one it was.
    fn take(opened: &mut Opened, kind: CollectionKind) -> Option<Phase> {
        opened.take(kind)?.phase
    }

    #[test]
    fn work_inside_of_work_ends_first() {
        let mut opened = Opened::default();
        opened.begin(work(Finalisers, Phase::Idle));
        opened.begin(work(Slice, Phase::Mark));
        opened.begin(work(Slice, Phase::Sweep));
        opened.begin(work(Minor, Phase::Clean));
        assert_eq!(take(&mut opened, Minor), Some(Phase::Clean));
        assert_eq!(take(&mut opened, Slice), Some(Phase::Sweep));
        assert_eq!(take(&mut opened, Slice), Some(Phase::Mark));
        assert_eq!(take(&mut opened, Slice), None);
        assert_eq!(take(&mut opened, Finalisers), Some(Phase::Idle));
    }

    #[test]
    fn finalisers_that_raise_end_when_others_begin() {
        let mut opened = Opened::default();
        for _ in 0..100 {
            opened.begin(work(Finalisers, Phase::Idle));
            opened.begin(work(Minor, Phase::Mark));
            assert_eq!(take(&mut opened, Minor), Some(Phase::Mark));
        }
        assert_eq!(opened.len, 1);
        assert_eq!(take(&mut opened, Finalisers), Some(Phase::Idle));
        assert_eq!(take(&mut opened, Finalisers), None);
    }

    #[test]
    fn work_that_encloses_what_never_ended_ends_it() {
        let mut opened = Opened::default();
        opened.begin(work(Slice, Phase::Mark));
        opened.begin(work(Minor, Phase::Sweep));
        assert_eq!(take(&mut opened, Slice), Some(Phase::Mark));
        assert_eq!(take(&mut opened, Minor), None);
    }

    #[test]
    fn what_is_too_deep_is_left_out() {
        let mut opened = Opened::default();
        for _ in 0..DEPTH + 3 {
            opened.begin(work(Slice, Phase::Mark));
        }
        let ends = (0..DEPTH + 3).filter(|_| opened.take(Slice).is_some());
        assert!(ends.eq(3..DEPTH + 3));
        for _ in 0..=DEPTH {
            opened.begin(work(Slice, Phase::Mark));
        }
        opened.begin(work(Slice, Phase::Mark));
        opened.clear();
        assert!(opened.take(Slice).is_none());
    }
}
