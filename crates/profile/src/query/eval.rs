//! Evaluates a query by scans over columns: each clause gives a set of blocks, and the sets are
//! combined.

use heapline_model::Space;

use super::amount::{Lifetime, TimePoint};
use super::ast::{Clause, Expr, Heap, Part, Span, Test, When};
use super::pattern::Pattern;
use super::token::Comparison;
use crate::callers::calls;
use crate::crates::Crates;
use crate::groups::{UNKNOWN, View};
use crate::sampling::Estimator;
use crate::selection::{Bits, Selection, Stay};
use crate::store::{
    Class, ClassId, ContextId, CrateId, FileId, FrameId, IdVec, Kind, KindId, Moment, NEVER,
    Profile, Segment, Zone,
};

/// The blocks or stays that an expression is true of.
pub(super) fn select(expr: &Expr, profile: &Profile, estimator: Estimator) -> Selection {
    let times = Times { profile, estimator };
    let scan = |stays| Scan { times, stays }.expr(expr);
    if expr.mentions_heap() {
        Selection::stays(scan(Stays::First), scan(Stays::Second))
    } else {
        Selection::lives(scan(Stays::Whole))
    }
}

impl TimePoint {
    /// The moment after everything that happened by then, and the time in microseconds.
    pub(crate) fn resolve(&self, profile: &Profile, estimator: Estimator) -> (Moment, u64) {
        let times = Times { profile, estimator };
        (times.after(self), times.micros(self))
    }
}

/// Turns times into moments of a run.
#[derive(Clone, Copy)]
pub(super) struct Times<'a> {
    pub(super) profile: &'a Profile,
    pub(super) estimator: Estimator,
}

impl Times<'_> {
    /// The moment after everything that happened by then.
    pub(super) fn after(&self, time: &TimePoint) -> Moment {
        self.moment(time)
            .unwrap_or_else(|micros| self.profile.after(micros))
    }

    /// The moment before anything that happened then.
    pub(super) fn before(&self, time: &TimePoint) -> Moment {
        self.moment(time)
            .unwrap_or_else(|micros| self.profile.before(micros))
    }

    /// The time itself, in microseconds.
    pub(super) fn micros(&self, time: &TimePoint) -> u64 {
        match self.moment(time) {
            Ok(moment) => self.profile.micros(moment),
            Err(micros) => micros,
        }
    }

    /// A moment, or a time in microseconds.
    fn moment(&self, time: &TimePoint) -> Result<Moment, u64> {
        let profile = self.profile;
        match time {
            TimePoint::Start => Ok(Moment(0)),
            TimePoint::Peak => Ok(profile.peak(self.estimator).moment),
            TimePoint::End => Ok(profile.end()),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a part of a u64"
            )]
            TimePoint::Fraction(share) => {
                Err((profile.micros(profile.end()) as f64 * share).round() as u64)
            }
            TimePoint::Micros(_) | TimePoint::Date(_) | TimePoint::Clock(_) => {
                Err(time.micros_since(profile.header().start_time).unwrap_or(0))
            }
        }
    }
}

/// The part of a block's life that the query is evaluated for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stays {
    Whole,
    /// On the heap that it was allocated on.
    First,
    /// On the major heap, after its promotion.
    Second,
}

struct Scan<'a> {
    times: Times<'a>,
    stays: Stays,
}

impl<'a> Scan<'a> {
    fn profile(&self) -> &'a Profile {
        self.times.profile
    }

    fn expr(&self, expr: &Expr) -> Bits {
        match expr {
            Expr::All(parts) => self.join(parts, Bits::and),
            Expr::Any(parts) => self.join(parts, Bits::or),
            Expr::Not(part) => self.expr(part).not().and(&self.exists()),
            Expr::Clause(clause) => self.clause(clause),
        }
    }

    fn join(&self, parts: &[Expr], join: impl Fn(Bits, &Bits) -> Bits) -> Bits {
        let mut sets = parts.iter().map(|part| self.expr(part));
        let first = sets.next().unwrap_or_else(|| self.exists());
        sets.fold(first, |all, set| join(all, &set))
    }

    /// All blocks that have such a stay.
    fn exists(&self) -> Bits {
        self.stays(|_, _| true)
    }

    fn clause(&self, clause: &Clause) -> Bits {
        let profile = self.profile();
        match clause {
            Clause::LiveAt(time) => {
                let Moment(moment) = self.times.after(time);
                let zone = |zone: Zone| zone.first_birth < moment && zone.last_death >= moment;
                self.stays_in(zone, |start, end| start < moment && end >= moment)
            }
            Clause::LiveIn(span) => {
                let (from, to) = self.moments(span);
                let zone = |zone: Zone| zone.first_birth < to && zone.last_death >= from;
                self.stays_in(zone, |start, end| from <= to && start < to && end >= from)
            }
            Clause::Allocated(when) => {
                let (from, to) = self.events(when);
                let inverted = matches!(when, When::At(Comparison::NotEqual, _));
                let zone = |zone: Zone| {
                    // A promotion starts a stay, too.
                    let is_last = self.stays == Stays::Second || zone.last_birth >= from;
                    inverted || (is_last && zone.first_birth < to)
                };
                self.stays_in(zone, |start, _| (from <= start && start < to) != inverted)
            }
            Clause::Collected(when) => {
                let (from, to) = self.events(when);
                let inverted = matches!(when, When::At(Comparison::NotEqual, _));
                // A stay on the minor heap that ends with a promotion does not end with a collection.
                let is_first = self.stays == Stays::First;
                Bits::of_blocks(
                    profile,
                    |_| true,
                    |segment, block| {
                        let end = segment.lives.death(block);
                        let was_promoted = segment.lives.promotion(block) < end;
                        end != NEVER
                            && !(is_first && was_promoted)
                            && (from <= end && end < to) != inverted
                    },
                )
                .and(&self.exists())
            }
            Clause::Promoted(when) => {
                let (from, to) = self.events(when);
                let inverted = matches!(when, When::At(Comparison::NotEqual, _));
                let any = |_| true;
                Bits::of_blocks(profile, any, |segment, block| {
                    let event = segment.lives.promotion(block);
                    event != NEVER && (from <= event && event < to) != inverted
                })
                .and(&self.exists())
            }
            Clause::Size(test) => {
                let word_bytes = profile.sampling().word_bytes();
                let test = test.map(|size| size.bytes(word_bytes));
                self.kinds(|kind| test.holds(&(kind.size as f64)))
            }
            Clause::Samples(test) => self.kinds(|kind| test.holds(&kind.samples)),
            Clause::Domain(test) => self.kinds(|kind| test.holds(&kind.lane.into())),
            Clause::Lifetime(test) => self.lifetime(*test),
            Clause::Heap(heap) => self.heap(*heap),
            Clause::Inside(part, pattern) => {
                let frames = self.matching_frames(*part, pattern);
                let tree = profile.tree();
                let mut nodes = IdVec::like(&tree.parent, false);
                for node in tree.nodes() {
                    let parent = tree.parent[node];
                    nodes[node] = nodes[parent] || frames[tree.frame[node]];
                }
                self.contexts(|context| {
                    let site = profile.site_frame(context);
                    nodes[profile.contexts()[context].node] || site.is_some_and(|site| frames[site])
                })
            }
            Clause::Site(part, pattern) => {
                let frames = self.matching_frames(*part, pattern);
                let is_unknown = pattern.matches(UNKNOWN);
                self.contexts(|context| {
                    let site = profile.site_frame(context);
                    site.map_or(is_unknown, |site| frames[site])
                })
            }
            Clause::Chain(chain) => {
                let view = View {
                    by: chain.part.group(),
                    hidden: chain.hidden.clone(),
                    own_code: chain.own.clone(),
                    ..View::default()
                };
                let is_called = calls(profile, &view, &chain.names);
                self.contexts(|context| is_called[context])
            }
            Clause::Line(test) => self.contexts(|context| {
                let site = profile.site_frame(context);
                site.is_some_and(|site| test.holds(&profile.symbols().frames()[site].line.into()))
            }),
            Clause::Address(address) => self.contexts(|context| {
                let site = profile.site_frame(context);
                let location = profile.contexts()[context].site;
                site.is_some() && profile.symbols().address(location) == *address
            }),
        }
    }

    /// Stays of which a condition on their first and last event holds.
    fn stays(&self, holds: impl Fn(u64, u64) -> bool + Sync) -> Bits {
        self.stays_in(|_| true, holds)
    }

    /// Stays of segments with events for which a condition `may_hold`, and of which it holds.
    fn stays_in(
        &self,
        may_hold: impl Fn(Zone) -> bool + Sync,
        holds: impl Fn(u64, u64) -> bool + Sync,
    ) -> Bits {
        let profile = self.profile();
        match self.stays {
            Stays::Whole => Bits::of_blocks(profile, may_hold, |Segment { lives, .. }, i| {
                holds(lives.birth(i), lives.death(i))
            }),
            Stays::First => Bits::of_blocks(profile, may_hold, |Segment { lives, .. }, i| {
                holds(lives.birth(i), lives.promotion(i).min(lives.death(i)))
            }),
            Stays::Second => Bits::of_blocks(profile, may_hold, |Segment { lives, .. }, i| {
                let promotion = lives.promotion(i);
                promotion != NEVER && holds(promotion, lives.death(i))
            }),
        }
    }

    /// Stays of which a condition on their microseconds holds.
    fn ages(&self, holds: impl Fn(u64) -> bool + Sync) -> Bits {
        let (profile, part) = (self.profile(), self.stays);
        let any = |_| true;
        Bits::of_blocks(profile, any, |segment, i| {
            let lives = &*segment.lives;
            let (birth, promotion, death) = (lives.birth(i), lives.promotion(i), lives.death(i));
            let (start, end) = match part {
                Stays::Whole => (birth, death),
                Stays::First => (birth, promotion.min(death)),
                Stays::Second if promotion == NEVER => return false,
                Stays::Second => (promotion, death),
            };
            let stay = Stay::new(segment, i, (start, end));
            holds(stay.age(profile))
        })
    }

    fn kinds(&self, holds: impl Fn(&Kind) -> bool) -> Bits {
        let kinds = self.profile().kinds().iter();
        let table: IdVec<KindId, bool> = kinds.map(holds).collect();
        self.classes(|class| table[class.kind])
    }

    fn contexts(&self, holds: impl Fn(ContextId) -> bool) -> Bits {
        let contexts = self.profile().contexts().ids();
        let table: IdVec<ContextId, bool> = contexts.map(holds).collect();
        self.classes(|class| table[class.context])
    }

    fn classes(&self, holds: impl Fn(&Class) -> bool) -> Bits {
        let table: IdVec<ClassId, bool> = self.profile().classes().iter().map(holds).collect();
        let any = |_| true;
        let set = Bits::of_blocks(self.profile(), any, |segment, block| {
            table[segment.class[block]]
        });
        self.existing(set)
    }

    fn existing(&self, set: Bits) -> Bits {
        match self.stays {
            Stays::Second => set.and(&self.exists()),
            _ => set,
        }
    }

    fn heap(&self, heap: Heap) -> Bits {
        match (self.stays, heap) {
            (Stays::Second, Heap::Major) => self.exists(),
            (Stays::Second, _) => Bits::from_fn(self.profile().len(), |_| false),
            (_, heap) => {
                let space = match heap {
                    Heap::Minor => Space::Minor,
                    Heap::Major => Space::Major,
                    Heap::External => Space::External,
                    Heap::Native => Space::Native,
                };
                self.kinds(|kind| kind.space == space)
            }
        }
    }

    fn lifetime(&self, test: Test<Lifetime>) -> Bits {
        let profile = self.profile();
        let first = match test {
            Test::Is(_, lifetime) => Some(lifetime),
            Test::In(low, high) => low.or(high),
        };
        let word_bytes = profile.sampling().word_bytes();
        let bytes = |lifetime| match lifetime {
            Lifetime::Bytes(bytes) => bytes,
            Lifetime::Words(words) => words * word_bytes,
            Lifetime::Micros(_) => f64::NAN,
        };
        match first {
            None => self.exists(),
            Some(Lifetime::Micros(_)) => {
                let test = test.map(|lifetime| match lifetime {
                    Lifetime::Micros(micros) => micros,
                    _ => u64::MAX,
                });
                // Blocks that are alive at the end have lived at least so long.
                self.ages(|age| test.holds(&age))
            }
            Some(_) => {
                let test = test.map(bytes);
                let allocated = crate::allocated::Allocated::new(profile, self.times.estimator);
                self.stays(|start, end| test.holds(&allocated.between(start, end)))
            }
        }
    }

    fn matching_frames(&self, part: Part, pattern: &Pattern) -> IdVec<FrameId, bool> {
        let symbols = self.profile().symbols();
        let (functions, files, modules) = (symbols.functions(), symbols.files(), symbols.modules());
        let frames = symbols.frames().iter();
        match part {
            Part::Function => {
                let matches = pattern.functions(functions);
                frames.map(|frame| matches[frame.function]).collect()
            }
            Part::File => {
                let matches = files.iter().map(|name| pattern.matches_file(name));
                let matches: IdVec<FileId, bool> = matches.collect();
                frames.map(|frame| matches[frame.file]).collect()
            }
            Part::Crate => {
                let crates = Crates::new(symbols);
                let matches = crates.names().iter().map(|name| pattern.matches(name));
                let matches: IdVec<CrateId, bool> = matches.collect();
                let frames = symbols.frames().ids();
                frames.map(|frame| matches[crates.id(frame)]).collect()
            }
            Part::Place => symbols
                .frames()
                .ids()
                .map(|frame| pattern.matches(&symbols.place(frame)))
                .collect(),
            Part::Module => {
                let matches = pattern.modules(modules);
                frames
                    .map(|frame| matches[functions[frame.function].module])
                    .collect()
            }
        }
    }

    fn moments(&self, span: &Span) -> (u64, u64) {
        (
            self.times.before(&span.from).0,
            self.times.before(&span.to).0,
        )
    }

    /// The first event of a time, and the first one after it.
    fn events(&self, when: &When) -> (u64, u64) {
        match when {
            When::Ever => (0, NEVER),
            When::In(span) => self.moments(span),
            When::At(comparison, time) => {
                let (before, after) = (self.times.before(time).0, self.times.after(time).0);
                match comparison {
                    Comparison::Equal | Comparison::NotEqual => (before, after),
                    Comparison::Less => (0, before),
                    Comparison::AtMost => (0, after),
                    Comparison::More => (after, NEVER),
                    Comparison::AtLeast => (before, NEVER),
                }
            }
        }
    }
}
