//! The counters of a lane: what they grew by.
//!
//! A lane is a slot for domains. When a domain ends, another one may begin in its slot, whose counters begin at 0: the readings
//! between them end a *section* and begin the next one. Counters that become smaller elsewhere are wrong.

use heapline_model::{Collection, CollectionKind, CollectorCounters};

use super::Span;

/// Counters, and when they were read, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) time: u64,
    pub(super) counters: CollectorCounters,
}

/// Words that were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CountedWords {
    pub(super) minor: u64,
    pub(super) promoted: u64,
    pub(super) major: u64,
}

impl CountedWords {
    /// What was counted from one reading to the next of a section; `None` if that cannot be.
    pub(super) fn between(before: &CollectorCounters, after: &CollectorCounters) -> Option<Self> {
        let words = Self {
            minor: after.minor_words.checked_sub(before.minor_words)?,
            promoted: after.promoted_words.checked_sub(before.promoted_words)?,
            major: after.major_words.checked_sub(before.major_words)?,
        };
        // What is promoted is allocated on the major heap.
        (words.promoted <= words.major).then_some(words)
    }

    /// Words allocated on the major heap that were not promoted.
    pub(super) fn direct(&self) -> u64 {
        self.major.saturating_sub(self.promoted)
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            minor: self.minor.saturating_add(other.minor),
            promoted: self.promoted.saturating_add(other.promoted),
            major: self.major.saturating_add(other.major),
        }
    }
}

/// The counters of the program, which all lanes have, at the beginning and at the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycles {
    pub(super) first: CollectorCounters,
    pub(super) last: CollectorCounters,
}

/// What the counters of a lane grew by, within a span.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    span: Span,
    /// The reading from which the section counts: the last one before the span, or the first one.
    base: Option<Reading>,
    last: Option<Reading>,
    /// Of the sections that have ended.
    sum: CountedWords,
    cycles: Option<Cycles>,
    first_time: Option<u64>,
    /// False if the counters cannot be right.
    is_sound: bool,
    /// False if a section does not begin or end with a reading of its own, so that there may be words that nobody counted.
    is_whole: bool,
    ends_with_reading: bool,
    /// Minor collections of the section, and those that are missing in all sections, with the number of these.
    minor: u64,
    missing: u64,
    sections: u64,
    /// Words promoted by the first minor collection, some of which were allocated before the recording.
    first_promotion: Option<u64>,
}

impl Ledger {
    pub(super) fn new(span: Span) -> Self {
        Self {
            span,
            base: None,
            last: None,
            sum: CountedWords::default(),
            cycles: None,
            first_time: None,
            is_sound: true,
            is_whole: true,
            ends_with_reading: false,
            minor: 0,
            missing: 0,
            sections: 0,
            first_promotion: None,
        }
    }

    /// Takes note of a collection that comes next. Returns true if it begins a section.
    pub(super) fn note(&mut self, collection: &Collection) -> bool {
        let is_reading = collection.kind == CollectionKind::Reading;
        let time = collection.end();
        let is_within = time <= self.span.to;
        let Some(counters) = collection.counters.filter(|_| is_within) else {
            if is_within && !is_reading {
                self.ends_with_reading = false;
                self.minor += u64::from(collection.kind == CollectionKind::Minor);
            }
            return false;
        };
        let reading = Reading { time, counters };
        let is_less = self
            .last
            .is_some_and(|last| is_less(&counters, &last.counters));
        let is_new = self.base.is_none() || is_less;
        if is_less {
            self.is_sound &= is_reading;
            self.is_whole &= self.ends_with_reading;
            self.close();
        }
        if is_new {
            self.is_whole &= is_reading;
            self.base = Some(reading);
            self.sections += 1;
            self.minor = 0;
        } else if collection.kind == CollectionKind::Minor {
            self.minor += 1;
            if let (None, Some(base)) = (self.first_promotion, &self.base) {
                let words = CountedWords::between(&base.counters, &counters);
                self.first_promotion = words.map(|words| words.promoted);
            }
        }
        if time <= self.span.from {
            // What was counted before the span is not part of it.
            self.base = Some(reading);
            self.sum = CountedWords::default();
            self.cycles = None;
            self.first_time = None;
            self.minor = 0;
            self.missing = 0;
        }
        self.first_time.get_or_insert(time);
        match &mut self.cycles {
            None => {
                let (first, last) = (counters, counters);
                self.cycles = Some(Cycles { first, last });
            }
            Some(cycles) => {
                self.is_sound &= !is_less_of_program(&counters, &cycles.last);
                cycles.last = counters;
            }
        }
        self.last = Some(reading);
        self.ends_with_reading = is_reading;
        is_less
    }

    /// Adds the section to the sum.
    fn close(&mut self) {
        let (Some(base), Some(last)) = (self.base.take(), &self.last) else {
            return;
        };
        match CountedWords::between(&base.counters, &last.counters) {
            Some(words) => self.sum = self.sum.plus(words),
            None => self.is_sound = false,
        }
        let counted = last.counters.minor_collections;
        let counted = counted.saturating_sub(base.counters.minor_collections);
        self.missing = self
            .missing
            .saturating_add(counted.saturating_sub(self.minor));
    }

    /// Ends the last section.
    pub(super) fn finish(&mut self) {
        self.is_whole &= self.ends_with_reading;
        self.close();
    }

    /// The words of the span; `None` if they are not known.
    pub(super) fn words(&self) -> Option<CountedWords> {
        (self.is_sound && self.last.is_some()).then_some(self.sum)
    }

    /// The counters of the program; `None` if they are not known.
    pub(super) fn cycles(&self) -> Option<Cycles> {
        self.cycles.filter(|_| self.is_sound)
    }

    /// The times between which words were counted.
    pub(super) fn times(&self) -> Option<(u64, u64)> {
        Some((self.first_time?, self.last?.time))
    }

    /// Words promoted by the first minor collection.
    pub(super) fn first_promotion(&self) -> u64 {
        self.first_promotion.unwrap_or(0)
    }
}

/// Returns true if some of the domain's counters are less.
fn is_less(counters: &CollectorCounters, before: &CollectorCounters) -> bool {
    counters.minor_words < before.minor_words
        || counters.promoted_words < before.promoted_words
        || counters.major_words < before.major_words
}

/// Returns true if some of the program's counters are less, which no domain begins anew.
fn is_less_of_program(counters: &CollectorCounters, before: &CollectorCounters) -> bool {
    counters.minor_collections < before.minor_collections
        || counters.major_collections < before.major_collections
        || counters.compactions < before.compactions
        || counters.forced_major_collections < before.forced_major_collections
}

/// Minor collections that were counted, and are not in the recording; `None` if that is not known. In programs with several domains
/// one more may be counted in each section while it is under way.
pub(super) fn missing<'a>(
    ledgers: impl Iterator<Item = &'a Ledger>,
    has_several: bool,
) -> Option<u64> {
    let mut most = 0;
    for ledger in ledgers {
        ledger.words()?;
        let under_way = if has_several { ledger.sections } else { 0 };
        most = most.max(ledger.missing.saturating_sub(under_way));
    }
    Some(most)
}

/// What is known of the words of all lanes together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completeness {
    /// The time between which words were counted, over all lanes.
    pub(super) times: Option<(u64, u64)>,
    /// True if all words from the beginning of the recording to its end were counted.
    pub(super) is_whole: bool,
}

impl Completeness {
    pub(super) fn of<'a>(ledgers: impl Iterator<Item = &'a Ledger>) -> Self {
        let mut times: Option<(u64, u64)> = None;
        let mut is_whole = true;
        for ledger in ledgers {
            is_whole &= ledger.is_whole && ledger.words().is_some();
            if let Some((first, last)) = ledger.times() {
                let (from, to) = times.unwrap_or((first, last));
                times = Some((from.min(first), to.max(last)));
            }
        }
        Self {
            times,
            is_whole: is_whole && times.is_some(),
        }
    }
}
