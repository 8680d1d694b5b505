//! Live memory over time of the rows of a report, and how it grows.

use crate::amount::Amount;
use crate::estimate::{Level, Sum};
use crate::groups::{Groups, Numbering};
use crate::scope::Scope;
use crate::store::{Moment, Profile};
use crate::timeline::{Timeline, time};
use crate::trend::{Cut, Trend, TrendPiece, cuts};

/// Points of each curve.
const POINTS: usize = 48;

/// Live bytes of some groups up to a moment.
pub(super) struct Curves<'a> {
    row_of: Numbering<'a>,
    /// The moment at the end.
    at: Moment,
    /// The time at the end, in microseconds.
    end: u64,
    parts: Timeline,
    /// For each row, live bytes at equal distances of time, the last one at the end.
    pub(super) live: Vec<Vec<f64>>,
}

impl<'a> Curves<'a> {
    /// The curves up to a moment, at which so many microseconds have passed.
    pub(super) fn new(
        scope: &Scope<'_>,
        groups: &'a Groups,
        shown: &[usize],
        at: Moment,
        end: u64,
    ) -> Self {
        let profile = scope.profile();
        let row_of = groups.rows(shown);
        let parts = parts(profile, at, end);
        let mut curves = scope.fold(
            || vec![vec![0.0; POINTS]; shown.len()],
            |curves, stay| {
                if stay.start >= at.0 {
                    return;
                }
                let row = row_of.of(profile, stay) as usize;
                if let Some(curve) = curves.get_mut(row) {
                    let weight = scope.bytes(&stay);
                    curve[parts.slot(stay.start)] += weight;
                    if stay.end < at.0 {
                        curve[parts.slot(stay.end)] -= weight;
                    }
                }
            },
            |curves, more| {
                for (point, more) in curves.iter_mut().flatten().zip(more.iter().flatten()) {
                    *point += more;
                }
            },
        );
        for curve in &mut curves {
            let mut live = 0.0_f64;
            for point in curve {
                live += *point;
                *point = live.max(0.0);
            }
        }
        Self {
            row_of,
            at,
            end,
            parts,
            live: curves,
        }
    }

    /// How each row grows. The rate of a piece is the difference of live memory between two moments that are surely part of
    /// it; what is live at both cancels out.
    pub(super) fn trends(&self, scope: &Scope<'_>, level: Level) -> Vec<Trend> {
        let profile = scope.profile();
        let cuts: Vec<Vec<Cut>> = self.live.iter().map(|curve| cuts(curve)).collect();
        let moments: Vec<Vec<[Moment; 2]>> = cuts
            .iter()
            .map(|cuts| {
                let spans = spans(cuts).into_iter();
                spans.map(|span| span.map(|n| self.moment(n))).collect()
            })
            .collect();
        // By row and piece: what is live at the end only, and at the start only.
        let none = || -> Vec<Vec<[Amount; 2]>> {
            let rows = moments.iter();
            rows.map(|spans| vec![[Amount::default(); 2]; spans.len()])
                .collect()
        };
        let sums = scope.fold(
            none,
            |sums, stay| {
                let row = self.row_of.of(profile, stay) as usize;
                let Some(spans) = moments.get(row) else {
                    return;
                };
                for (span, [gained, lost]) in spans.iter().zip(&mut sums[row]) {
                    match span.map(|moment| stay.is_live_at(moment)) {
                        [false, true] => *gained += scope.weight(&stay),
                        [true, false] => *lost += scope.weight(&stay),
                        _ => {}
                    }
                }
            },
            |sums, more| {
                let sums = sums.iter_mut().flatten().flatten();
                for (sum, more) in sums.zip(more.iter().flatten().flatten()) {
                    *sum += *more;
                }
            },
        );
        let rows = cuts.iter().zip(&sums);
        let rows = rows.zip(&self.live);
        rows.map(|((cuts, sums), curve)| self.trend(cuts, sums, curve, level))
            .collect()
    }

    /// The moment after some of the intervals.
    fn moment(&self, intervals: usize) -> Moment {
        match intervals.checked_sub(1) {
            None => Moment(0),
            Some(part) => self.parts.end(part).min(self.at),
        }
    }

    fn trend(&self, cuts: &[Cut], sums: &[[Amount; 2]], curve: &[f64], level: Level) -> Trend {
        let seconds = |points: usize| self.end as f64 / 1e6 * points as f64 / POINTS as f64;
        let starts = std::iter::once(0).chain(cuts.iter().map(|cut| cut.end));
        let pieces = starts.zip(cuts).zip(spans(cuts)).zip(sums);
        let pieces = pieces.map(|(((start, cut), span), [gained, lost])| {
            let change = gained.bytes.change(lost.bytes, Sum::default());
            let [from, to] = span.map(seconds);
            let duration = if to > from { to - from } else { f64::INFINITY };
            TrendPiece {
                from: seconds(start),
                to: seconds(cut.end),
                to_error: seconds((cut.latest - cut.end).max(cut.end - cut.earliest)),
                rate: change.change_at(level).per(duration),
            }
        });
        let last = cuts.iter().rev().nth(1).map_or(0, |before| before.end);
        Trend::new(pieces.collect(), curve, last)
    }
}

/// The start and the end of the part of each piece that does not depend on where exactly it was cut; the whole piece if
/// that is too short.
fn spans(cuts: &[Cut]) -> Vec<[usize; 2]> {
    /// Fewer intervals do not show a rate.
    const FEWEST: usize = 2;
    let before = std::iter::once(None).chain(cuts.iter().map(Some));
    before
        .zip(cuts)
        .map(|(before, cut)| {
            let (start, latest) = before.map_or((0, 0), |before| (before.end, before.latest));
            if cut.earliest >= latest + FEWEST {
                [latest, cut.earliest]
            } else {
                [start, cut.end]
            }
        })
        .collect()
}

/// Equal parts of the run up to a moment.
fn parts(profile: &Profile, Moment(at): Moment, end: u64) -> Timeline {
    let mut ends: Vec<u64> = (1..POINTS)
        .map(|part| profile.after(time(end, part, POINTS)).0.min(at))
        .collect();
    ends.push(at);
    Timeline::of_moments(ends, profile)
}
