//! The longest pauses, and what happened in them.

use heapline_model::{CollectionKind, Phase};
use serde::Serialize;

use super::causes::{self, PauseCause};
use super::lane::Pause;
use super::ledger::CountedWords;
use super::seconds;
use super::sites::{PromotedSites, Promotions};
use super::stops::Stop;
use crate::options::Look;
use crate::scope::Scope;

/// Pieces of a pause that are listed.
const MOST_PIECES: usize = 20;

/// Collections after a pause among which the next one that promotes is looked for.
const LOOK_AHEAD: usize = 4096;

/// A long pause of a domain.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct WorstPause {
    /// When it began, in seconds since the start.
    pub start: f64,
    /// How many seconds it took.
    pub length: f64,
    /// The domain.
    pub domain: u16,
    /// Its causes, as far as numbers tell them: the most important one first.
    pub causes: Vec<PauseCause>,
    /// The pieces of work that it consists of, in the order of their ends. Those within finalisers come before these.
    pub pieces: Vec<PausePiece>,
    /// Pieces that are not listed.
    pub hidden_pieces: u64,
    /// Words promoted in it; null if they are not known.
    pub promoted_words: Option<u64>,
    /// Words allocated on the minor heap since the minor collection before it; null if they are not known.
    pub allocated_words: Option<u64>,
    /// Words allocated directly on the major heap since the collection before it; null if they are not known.
    pub direct_words: Option<u64>,
    /// Words of the major heap at its end, of this domain; null if they are not known.
    pub heap_words: Option<u64>,
    /// The stop of several domains that it is a part of; null if there is none.
    pub stop: Option<Stop>,
    /// The blocks that were promoted in it, by site, estimated from samples; null if it did not promote, or if the trace does
    /// not tell when blocks were promoted.
    pub promoted: Option<PromotedSites>,
}

/// A piece of work in a pause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PausePiece {
    /// What was done.
    pub kind: CollectionKind,
    /// The phase of the major collector when it began; null if it is not known.
    pub phase: Option<Phase>,
    /// When it began, in seconds since the start.
    pub start: f64,
    /// How many seconds it took.
    pub length: f64,
}

/// What a look at the collections of a pause tells.
struct Details {
    pieces: Vec<PausePiece>,
    hidden: u64,
    /// When blocks were promoted in it: from the first collection that promotes to the next one after the pause.
    promoting: Option<(u64, u64)>,
}

/// Returns true for work that empties the minor heap.
fn promotes(kind: CollectionKind) -> bool {
    matches!(kind, CollectionKind::Minor | CollectionKind::Forced)
}

fn details(scope: &Scope<'_>, pause: &Pause) -> Details {
    let collections = scope.profile().collections();
    let mut pieces = Vec::new();
    let mut hidden = 0;
    let mut first = None;
    let mut next = u64::MAX;
    let mut after = 0;
    for collection in collections.of_lane_from(pause.lane, pause.start) {
        let is_work = collection.kind != CollectionKind::Reading;
        if collection.end() > pause.end {
            after += 1;
            let is_next = promotes(collection.kind) && collection.start >= pause.end;
            if is_next || first.is_none() || after > LOOK_AHEAD {
                next = collection.start;
                break;
            }
            continue;
        }
        if collection.start < pause.start || !is_work {
            continue;
        }
        if promotes(collection.kind) {
            let start = first.unwrap_or(u64::MAX);
            first = Some(collection.start.min(start));
        }
        if pieces.len() == MOST_PIECES {
            hidden += 1;
            continue;
        }
        pieces.push(PausePiece {
            kind: collection.kind,
            phase: collection.phase,
            start: seconds(collection.start),
            length: seconds(collection.length),
        });
    }
    Details {
        pieces,
        hidden,
        promoting: first.map(|first| (first, next)),
    }
}

/// The longest pauses, with the stops that they are a part of, if there are several domains.
pub(super) fn worst(
    scope: &Scope<'_>,
    pauses: &[Pause],
    stops: Vec<Option<Stop>>,
    has_several: bool,
    look: &Look,
) -> Vec<WorstPause> {
    let details: Vec<Details> = pauses.iter().map(|pause| details(scope, pause)).collect();
    let mut promotions = Promotions::default();
    for (number, (pause, details)) in pauses.iter().zip(&details).enumerate() {
        if let Some(times) = details.promoting {
            promotions.expect(number, has_several.then_some(pause.lane), times);
        }
    }
    let mut sites = promotions.find(scope, look, pauses.len()).into_iter();
    let mut stops = stops.into_iter();
    let word_bytes = scope.profile().header().word_bytes;
    pauses
        .iter()
        .zip(details)
        .map(|(pause, details)| {
            let words = pause.before.zip(pause.after);
            let words = words.and_then(|(before, after)| CountedWords::between(&before, &after));
            let mut worst = WorstPause {
                start: seconds(pause.start),
                length: seconds(pause.length()),
                domain: pause.lane,
                causes: Vec::new(),
                pieces: details.pieces,
                hidden_pieces: details.hidden,
                promoted_words: words.map(|words| words.promoted),
                allocated_words: pause.since_minor,
                direct_words: words.map(|words| words.direct()),
                heap_words: pause
                    .after
                    .map(|counters| counters.heap_words)
                    .filter(|&words| words > 0),
                stop: stops.next().flatten(),
                promoted: sites.next().flatten(),
            };
            worst.causes = causes::causes(pause, &worst, word_bytes);
            worst
        })
        .collect()
}
