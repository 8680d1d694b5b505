//! Why a pause was long, as far as numbers tell.

use heapline_model::{CollectionKind, Phase};
use serde::{Deserialize, Serialize};

use super::lane::Pause;
use super::seconds;
use super::worst::WorstPause;
use super::{KINDS, kind_place};
use crate::estimate::Estimate;
use crate::reports::Phrase;
use Phrase::{Bytes, Count, Name, Seconds};

/// Bytes per second that a minor collection promotes at least if that is what it does. It is a tenth of what it is capable of.
const LEAST_PROMOTION: f64 = 64e6;

/// The share of a pause that a cause accounts for at least.
const LEAST_SHARE: f64 = 0.3;

/// Bytes allocated directly on the major heap that are worth a word.
const NOTEWORTHY: f64 = 1024.0 * 1024.0;

/// A cause of a pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PauseCause {
    /// The rule that found it.
    pub kind: PauseCauseKind,
    /// The sentence.
    pub sentence: Vec<Phrase>,
}

/// A rule that finds causes of pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum PauseCauseKind {
    /// The heap was compacted.
    Compaction,
    /// The program asked for a whole major collection.
    Forced,
    /// Finalisers ran.
    Finalisers,
    /// The domain waited for another one.
    Waiting,
    /// A minor collection promoted much.
    Promotion,
    /// A minor collection promoted too little to take that long.
    Scanning,
    /// A slice of a major collection.
    Slice,
    /// A minor collection of which no more is known.
    Minor,
}

/// A sentence, if the facts ask for it.
type Rule<'a> = fn(&Facts<'a>) -> Option<Vec<Phrase>>;

/// The facts about a pause.
struct Facts<'a> {
    pause: &'a Pause,
    worst: &'a WorstPause,
    word_bytes: f64,
}

/// The causes of a pause, the most important one first.
pub(super) fn causes(pause: &Pause, worst: &WorstPause, word_bytes: u64) -> Vec<PauseCause> {
    let facts = Facts {
        pause,
        worst,
        word_bytes: word_bytes as f64,
    };
    let rules: [(PauseCauseKind, Rule<'_>); 8] = [
        (PauseCauseKind::Compaction, Facts::compaction),
        (PauseCauseKind::Forced, Facts::forced),
        (PauseCauseKind::Finalisers, Facts::finalisers),
        (PauseCauseKind::Waiting, Facts::waiting),
        (PauseCauseKind::Promotion, Facts::promotion),
        (PauseCauseKind::Scanning, Facts::scanning),
        (PauseCauseKind::Slice, Facts::slice),
        (PauseCauseKind::Minor, Facts::minor),
    ];
    rules
        .into_iter()
        .filter_map(|(kind, rule)| {
            let sentence = rule(&facts)?;
            Some(PauseCause { kind, sentence })
        })
        .collect()
}

impl Facts<'_> {
    /// Nanoseconds of a kind of work, without what is inside of it.
    fn own(&self, kind: CollectionKind) -> u64 {
        kind_place(kind).map_or(0, |place| self.pause.own[place])
    }

    fn is_large(&self, nanos: u64) -> bool {
        nanos > 0 && nanos as f64 >= LEAST_SHARE * self.pause.length() as f64
    }

    /// Returns true if most of the pause is of a kind.
    fn is_mostly(&self, kind: CollectionKind) -> bool {
        let own = self.own(kind);
        own > 0 && KINDS.iter().all(|&other| self.own(other) <= own)
    }

    fn bytes(&self, words: u64) -> f64 {
        words as f64 * self.word_bytes
    }

    fn exact_bytes(&self, words: u64) -> Phrase {
        Bytes(Estimate::exact(self.bytes(words)))
    }

    /// By how much a counter of the program grew in the pause.
    fn grown(&self, counter: fn(&heapline_model::CollectorCounters) -> u64) -> u64 {
        let counters = self.pause.before.zip(self.pause.after);
        counters.map_or(0, |(before, after)| {
            counter(&after).saturating_sub(counter(&before))
        })
    }

    fn compaction(&self) -> Option<Vec<Phrase>> {
        let n = self.grown(|counters| counters.compactions);
        let (before, after) = self.pause.before.zip(self.pause.after)?;
        if n == 0 {
            return None;
        }
        let mut sentence = vec!["The heap was compacted".into()];
        if before.heap_words > after.heap_words && after.heap_words > 0 {
            sentence.extend([
                ", from ".into(),
                self.exact_bytes(before.heap_words),
                " to ".into(),
                self.exact_bytes(after.heap_words),
            ]);
        }
        sentence.push(".".into());
        Some(sentence)
    }

    fn forced(&self) -> Option<Vec<Phrase>> {
        let asked_for = self.grown(|counters| counters.forced_major_collections);
        if !self.is_large(self.own(CollectionKind::Forced)) && asked_for == 0 {
            return None;
        }
        let mut sentence = vec![
            "The program asked for a whole major collection (Gc.full_major, Gc.major or Gc.compact)"
                .into(),
        ];
        self.add_heap(&mut sentence);
        Some(sentence)
    }

    fn finalisers(&self) -> Option<Vec<Phrase>> {
        let own = self.own(CollectionKind::Finalisers);
        self.is_large(own).then(|| {
            vec![
                "Finalisers, which are functions of the program, ran for ".into(),
                Seconds(seconds(own)),
                ".".into(),
            ]
        })
    }

    fn waiting(&self) -> Option<Vec<Phrase>> {
        let stop = self.worst.stop?;
        if stop.arrived_last == self.pause.lane {
            return None;
        }
        let waited = stop.start + stop.gathering - self.worst.start;
        (waited >= LEAST_SHARE * self.worst.length && waited > 0.0).then(|| {
            vec![
                "It waited ".into(),
                Seconds(waited),
                " for domain ".into(),
                Count(stop.arrived_last.into()),
                ", which arrived last of ".into(),
                Count(stop.domains),
                ".".into(),
            ]
        })
    }

    /// The time of minor collections and the bytes that they promoted, if minor collections took a large part of the pause.
    fn promoted(&self) -> Option<(u64, f64)> {
        let minor = self.own(CollectionKind::Minor);
        let promoted = self.worst.promoted_words?;
        self.is_large(minor).then(|| (minor, self.bytes(promoted)))
    }

    fn promotion(&self) -> Option<Vec<Phrase>> {
        let (minor, promoted) = self.promoted()?;
        if promoted < LEAST_PROMOTION * seconds(minor) {
            return None;
        }
        let mut sentence = vec!["Promoted ".into(), Bytes(Estimate::exact(promoted))];
        let sites = self.worst.promoted.as_ref();
        let first = sites.and_then(|sites| Some((sites, sites.rows.first()?)));
        // A site of which that is more than chance.
        if let Some((sites, row)) = first.filter(|(_, row)| !row.bytes.is_noise()) {
            let rest = sites.total.bytes.value - row.bytes.value;
            let is_most = row.bytes.value - rest > sites.total.bytes.error;
            sentence.extend([
                if is_most { ", most" } else { ", much" }.into(),
                " of it allocated by ".into(),
                Name(row.label.name.clone()),
            ]);
            if let Some(place) = &row.label.place {
                sentence.push(Phrase::Text(format!(" ({place})")));
            }
        }
        sentence.push(".".into());
        Some(sentence)
    }

    fn scanning(&self) -> Option<Vec<Phrase>> {
        let (minor, promoted) = self.promoted()?;
        let is_explained = promoted >= LEAST_PROMOTION * seconds(minor) || self.waiting().is_some();
        (!is_explained).then(|| {
            vec![
                "The minor collection promoted only ".into(),
                Bytes(Estimate::exact(promoted)),
                " in ".into(),
                Seconds(seconds(minor)),
                ", so that it is not promotion that took long: deep stacks or large arrays were scanned, or the program did not \
                 get the processor."
                    .into(),
            ]
        })
    }

    fn slice(&self) -> Option<Vec<Phrase>> {
        if !self.is_large(self.own(CollectionKind::Slice)) {
            return None;
        }
        let slices = self.worst.pieces.iter();
        let longest = slices
            .filter(|piece| piece.kind == CollectionKind::Slice)
            .max_by(|a, b| a.length.total_cmp(&b.length));
        let mut sentence = vec![
            match longest.and_then(|piece| piece.phase) {
                Some(Phase::Mark) => "A slice of a major collection, which marks",
                Some(Phase::Clean) => "A slice of a major collection, which cleans",
                Some(Phase::Sweep) => "A slice of a major collection, which sweeps",
                Some(Phase::Idle) => "The first slice of a major collection, which scans the roots",
                None => "A slice of a major collection",
            }
            .into(),
        ];
        let direct = self.worst.direct_words.unwrap_or(0);
        if self.bytes(direct) >= NOTEWORTHY {
            sentence.extend([
                ", after ".into(),
                self.exact_bytes(direct),
                " was allocated directly on the major heap".into(),
            ]);
        }
        self.add_heap(&mut sentence);
        Some(sentence)
    }

    /// Ends a sentence with the size of the heap.
    fn add_heap(&self, sentence: &mut Vec<Phrase>) {
        if let Some(words) = self.worst.heap_words {
            sentence.extend(["; the heap has ".into(), self.exact_bytes(words)]);
        }
        sentence.push(".".into());
    }

    fn minor(&self) -> Option<Vec<Phrase>> {
        let is_unknown = self.worst.promoted_words.is_none();
        (is_unknown && self.is_mostly(CollectionKind::Minor))
            .then(|| vec!["A minor collection.".into()])
    }
}
