//! The work of a lane.

use heapline_model::{Collection, CollectionKind, CollectorCounters};

use super::ledger::{CountedWords, Ledger, Reading};
use super::lengths::Lengths;
use super::series::Buckets;
use super::words::CollectorWords;
use super::{CollectorTime, GAP, GcDomain, KINDS, Span, kind_place};
use crate::store::Collections;

/// A pause of a domain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    pub(super) lane: u16,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The time of each kind of work, without what is inside of it.
    pub(super) own: [u64; KINDS.len()],
    /// The counters before it, if they are known.
    pub(super) before: Option<CollectorCounters>,
    /// The counters when it had ended.
    pub(super) after: Option<CollectorCounters>,
    /// Words allocated on the minor heap since the last minor collection before it.
    pub(super) since_minor: Option<u64>,
}

impl Pause {
    pub(super) fn length(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// The longest pauses, the longest first; of the same length, the earliest.
pub(super) fn keep_longest(pauses: &mut Vec<Pause>, most: usize) {
    pauses.sort_by_key(|pause| (u64::MAX - pause.length(), pause.start, pause.lane));
    pauses.truncate(most);
}

/// The work of a lane within a span.
#[derive(Debug)]
pub(super) struct LaneWork {
    pub(super) lane: u16,
    /// How long each piece of work took, by kind.
    pub(super) lengths: [Vec<u64>; KINDS.len()],
    /// How long each pause took.
    pub(super) pauses: Vec<u64>,
    /// The time in the collector.
    pub(super) busy: u64,
    /// The time that the domain existed.
    pub(super) present: u64,
    /// When it ended, if it ended before the run.
    pub(super) ended: Option<u64>,
    pub(super) ledger: Ledger,
}

/// The intervals in which some work has other work inside of it, as finalisers have, in order.
fn enclosing(collections: impl Iterator<Item = Collection>) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    let mut last_end = 0;
    for collection in collections.filter(|one| one.kind != CollectionKind::Reading) {
        let (mut start, end) = (collection.start, collection.end());
        if start < last_end {
            while let Some(&(inner_start, inner_end)) = found.last()
                && inner_end > start
            {
                start = start.min(inner_start);
                found.pop();
            }
            found.push((start, end));
        }
        last_end = end;
    }
    found
}

/// The part of an enclosing interval that is covered by the work inside of it so far.
#[derive(Debug, Default)]
struct Covered(Vec<(u64, u64)>);

impl Covered {
    /// Adds an interval that ends after all others. Returns how much of it was covered.
    fn add(&mut self, start: u64, end: u64) -> u64 {
        let mut covered = 0_u64;
        let mut from = start;
        while let Some(&(inner_start, inner_end)) = self.0.last()
            && inner_end > start
        {
            covered = covered.saturating_add(inner_end - inner_start.max(start));
            from = from.min(inner_start);
            self.0.pop();
        }
        self.0.push((from, end));
        covered
    }
}

impl LaneWork {
    /// Walks over the collections of a lane. What is of all lanes together is added to `total`.
    pub(super) fn new(collections: &Collections, lane: u16, span: Span, total: &mut Total) -> Self {
        let mut walk = Walk {
            span,
            total,
            work: Self {
                lane,
                lengths: Default::default(),
                pauses: Vec::new(),
                busy: 0,
                present: 0,
                ended: None,
                ledger: Ledger::new(span),
            },
            enclosing: enclosing(collections.of_lane(lane)),
            place: 0,
            covered: Covered::default(),
            busy_until: 0,
            pause: None,
            last: None,
            minor_words: None,
            section: None,
            has_begun: false,
        };
        for collection in collections.of_lane(lane) {
            walk.step(&collection);
        }
        walk.finish()
    }

    /// The domain in the report.
    pub(super) fn domain(self) -> GcDomain {
        GcDomain {
            domain: self.lane,
            collector: CollectorTime::new(self.busy as f64, self.present as f64),
            minor_collections: self.lengths[0].len() as u64,
            words: CollectorWords::of_lane(&self.ledger),
            pauses: Lengths::new(self.pauses),
        }
    }
}

/// The time that a domain exists.
#[derive(Clone, Copy, Debug)]
struct Section {
    start: u64,
    last: u64,
    /// Its events, and whether the last of them is a reading.
    events: u64,
    ends_with_reading: bool,
}

/// What is of all lanes together.
#[derive(Debug)]
pub(super) struct Total {
    pub(super) buckets: Buckets,
    /// The longest pauses, and how many of them are wanted.
    pub(super) longest: Vec<Pause>,
    pub(super) rows: usize,
}

/// A walk over the collections of a lane.
struct Walk<'a> {
    span: Span,
    total: &'a mut Total,
    work: LaneWork,
    enclosing: Vec<(u64, u64)>,
    /// The enclosing interval that comes next, or that the walk is in.
    place: usize,
    covered: Covered,
    busy_until: u64,
    pause: Option<Pause>,
    /// The counters that were read last.
    last: Option<Reading>,
    /// The counter of the minor heap at the last minor collection.
    minor_words: Option<u64>,
    section: Option<Section>,
    /// False before the first collection.
    has_begun: bool,
}

impl Walk<'_> {
    fn step(&mut self, collection: &Collection) {
        let before = self.last;
        let is_new = self.work.ledger.note(collection);
        self.note_section(collection, is_new);
        let words = before.zip(collection.counters).filter(|_| !is_new);
        if let Some((before, counters)) = words
            && let Some(words) = CountedWords::between(&before.counters, &counters)
        {
            let times = (before.time, collection.end());
            self.total
                .buckets
                .add_words(&words, times, collection.start);
        }
        if let Some(counters) = collection.counters {
            let time = collection.end();
            self.last = Some(Reading { time, counters });
        }
        if is_new {
            self.minor_words = None;
        }
        let Some(kind) = kind_place(collection.kind) else {
            return;
        };
        let (start, end) = (collection.start, collection.end());
        let (item, own) = self.item(start, end);
        let own = collection.length.saturating_sub(own);
        if self.span.contains(start) {
            self.work.lengths[kind].push(own);
            if collection.kind == CollectionKind::Minor {
                self.total.buckets.add_minor(start);
            }
        }
        self.add_busy(item);
        self.total.buckets.add_kind(kind, (start, end), own);

        let is_same = |pause: &Pause| item.0 <= pause.end.saturating_add(GAP);
        if !self.pause.as_ref().is_some_and(is_same) {
            self.close_pause();
        }
        let lane = self.work.lane;
        let pause = self.pause.get_or_insert_with(|| Pause {
            lane,
            start: item.0,
            end: item.1,
            own: [0; KINDS.len()],
            before: before.filter(|_| !is_new).map(|before| before.counters),
            after: None,
            since_minor: None,
        });
        pause.end = pause.end.max(item.1);
        pause.own[kind] = pause.own[kind].saturating_add(own);
        if let Some(counters) = collection.counters {
            pause.after = Some(counters);
            if pause.since_minor.is_none() {
                let since = |words: u64| counters.minor_words.checked_sub(words);
                pause.since_minor = self.minor_words.and_then(since);
            }
            if collection.kind == CollectionKind::Minor {
                self.minor_words = Some(counters.minor_words);
            }
        }
    }

    /// The interval of a piece of work: that which encloses it, if there is one. Also returns how much of the piece is covered by
    /// others inside of it.
    fn item(&mut self, start: u64, end: u64) -> ((u64, u64), u64) {
        while self
            .enclosing
            .get(self.place)
            .is_some_and(|found| found.1 < end)
        {
            self.place += 1;
            self.covered.0.clear();
        }
        match self.enclosing.get(self.place) {
            Some(&(from, to)) if from < end => {
                ((from.min(start), to), self.covered.add(start, end))
            }
            _ => ((start, end), 0),
        }
    }

    fn add_busy(&mut self, (start, end): (u64, u64)) {
        let (from, to) = self.span.clip(start.max(self.busy_until), end);
        self.busy_until = self.busy_until.max(end);
        self.work.busy = self.work.busy.saturating_add(to - from);
        self.total.buckets.add_busy(from, to);
    }

    fn close_pause(&mut self) {
        let Some(pause) = self.pause.take() else {
            return;
        };
        self.total.buckets.add_pause(&pause);
        if !self.span.contains(pause.start) {
            return;
        }
        self.work.pauses.push(pause.length());
        let Total { longest, rows, .. } = self.total;
        longest.push(pause);
        // Seldom, so that each pause takes little time.
        if longest.len() >= 2 * *rows + 64 {
            keep_longest(longest, *rows);
        }
    }

    fn note_section(&mut self, collection: &Collection, is_new: bool) {
        let is_reading = collection.kind == CollectionKind::Reading;
        if is_new {
            self.end_section();
        }
        let has_begun = std::mem::replace(&mut self.has_begun, true);
        let section = self.section.get_or_insert(Section {
            // What there is of a domain before its first collection is not known, unless its beginning was noted.
            start: if is_reading || has_begun {
                collection.start
            } else {
                0
            },
            last: 0,
            events: 0,
            ends_with_reading: false,
        });
        section.last = collection.end();
        section.events += 1;
        section.ends_with_reading = is_reading;
    }

    /// Notes that a domain has ended, and that another one follows.
    fn end_section(&mut self) {
        if let Some(section) = self.section.take() {
            self.add_present(section.start, section.last);
        }
    }

    fn add_present(&mut self, start: u64, end: u64) {
        let (from, to) = self.span.clip(start, end);
        self.work.present = self.work.present.saturating_add(to - from);
        self.total.buckets.add_present(from, to);
    }

    fn finish(mut self) -> LaneWork {
        self.close_pause();
        if let Some(section) = self.section.take() {
            // A reading at the beginning is none at the end.
            let has_ended = section.ends_with_reading && section.events > 1;
            let end = if has_ended {
                section.last
            } else {
                self.span.end
            };
            self.work.ended = has_ended.then_some(section.last);
            self.add_present(section.start, end);
        }
        self.work.ledger.finish();
        keep_longest(&mut self.total.longest, self.total.rows);
        self.total.buckets.end_lane();
        self.work
    }
}
