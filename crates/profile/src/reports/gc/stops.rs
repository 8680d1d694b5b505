//! Minor collections of several domains at the same time.
//!
//! From OCaml 5 on, a minor collection stops all domains. Those that overlap are one *stop*.

use hashbrown::HashMap;
use heapline_model::{Collection, CollectionKind};
use serde::{Deserialize, Serialize};

use super::lane::Pause;
use super::lengths::Lengths;
use super::{Span, seconds};
use crate::store::{Collections, merged};

/// Domains of a stop that are remembered. OCaml has 128 at most.
const MOST_MEMBERS: usize = 4096;

/// A minor collection in which several domains took part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Stop {
    /// When the first domain began, in seconds since the start.
    pub start: f64,
    /// Seconds until the last one began: those before it waited for it.
    pub gathering: f64,
    /// Seconds until the last one had ended.
    pub length: f64,
    /// The domains that took part.
    pub domains: u64,
    /// The domain that began last.
    pub arrived_last: u16,
    /// The domain that took longest.
    pub longest: u16,
}

/// Minor collections in which several domains took part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Stops {
    /// From the beginning of the first domain to the end of the last one.
    pub lengths: Lengths,
    /// Seconds that domains waited for the last one to begin, all together.
    pub waited: f64,
    /// The domains that took part, in order.
    pub domains: Vec<DomainStops>,
    /// The stop in which domains waited longest for the last one to begin; null if there is none.
    pub worst_gathering: Option<Stop>,
}

/// A domain in stops.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct DomainStops {
    /// The domain.
    pub domain: u16,
    /// Stops that it took part in.
    pub stops: u64,
    /// Those in which it began last.
    pub arrived_last: u64,
    /// Seconds that others waited for it to begin, all together.
    pub held_up: f64,
    /// Those in which it took longest.
    pub longest: u64,
}

/// Overlapping minor collections.
#[derive(Debug)]
struct Group {
    start: u64,
    end: u64,
    members: Vec<Collection>,
}

/// A domain in all stops.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    stops: u64,
    arrived_last: u64,
    held_up: u64,
    longest: u64,
}

#[derive(Debug, Default)]
struct Found {
    lengths: Vec<u64>,
    waited: u64,
    tallies: HashMap<u16, Tally>,
    worst: Option<Stop>,
}

/// The stops, and the stop that each of some pauses is a part of.
pub(super) fn find(
    collections: &Collections,
    span: Span,
    pauses: &[Pause],
) -> (Stops, Vec<Option<Stop>>) {
    let mut of_pause = vec![None; pauses.len()];
    let mut by_lane: HashMap<u16, Vec<usize>> = HashMap::new();
    for (number, pause) in pauses.iter().enumerate() {
        by_lane.entry(pause.lane).or_default().push(number);
    }
    for numbers in by_lane.values_mut() {
        numbers.sort_by_key(|&number| pauses[number].start);
    }
    let mut found = Found::default();
    let mut end_group = |group: Group| {
        let Some(stop) = found.add(&group) else {
            return;
        };
        for member in &group.members {
            let Some(numbers) = by_lane.get(&member.lane) else {
                continue;
            };
            let after = numbers.partition_point(|&number| pauses[number].start <= member.start);
            if let Some(place) = after.checked_sub(1)
                && member.start < pauses[numbers[place]].end
            {
                let known: &mut Option<Stop> = &mut of_pause[numbers[place]];
                if known.is_none_or(|known| known.length < stop.length) {
                    *known = Some(stop);
                }
            }
        }
    };
    let is_minor = |one: &Collection| one.kind == CollectionKind::Minor && span.contains(one.start);
    let lanes = collections.lanes();
    let minor = lanes.map(|lane| collections.of_lane_from(lane, span.from).filter(is_minor));
    let mut group: Option<Group> = None;
    for collection in merged(minor, |one| one.start) {
        match &mut group {
            Some(group) if collection.start < group.end => {
                group.end = group.end.max(collection.end());
                if group.members.len() < MOST_MEMBERS {
                    group.members.push(collection);
                }
            }
            _ => {
                let next = Group {
                    start: collection.start,
                    end: collection.end(),
                    members: vec![collection],
                };
                if let Some(group) = group.replace(next) {
                    end_group(group);
                }
            }
        }
    }
    if let Some(group) = group {
        end_group(group);
    }
    (found.stops(), of_pause)
}

impl Found {
    /// Adds a group if it is a stop, that is, if it has several domains.
    fn add(&mut self, group: &Group) -> Option<Stop> {
        let mut lanes: Vec<u16> = group.members.iter().map(|member| member.lane).collect();
        lanes.sort_unstable();
        lanes.dedup();
        let last = group.members.iter().max_by_key(|member| member.start)?;
        let longest = group.members.iter().max_by_key(|member| member.length)?;
        if lanes.len() < 2 {
            return None;
        }
        let mut held_up = 0_u64;
        for member in &group.members {
            held_up = held_up.saturating_add(last.start - member.start);
        }
        for &lane in &lanes {
            let tally = self.tallies.entry(lane).or_default();
            tally.stops += 1;
            tally.longest += u64::from(lane == longest.lane);
            if lane == last.lane {
                tally.arrived_last += 1;
                tally.held_up = tally.held_up.saturating_add(held_up);
            }
        }
        self.waited = self.waited.saturating_add(held_up);
        self.lengths.push(group.end.saturating_sub(group.start));
        let stop = Stop {
            start: seconds(group.start),
            gathering: seconds(last.start - group.start),
            length: seconds(group.end.saturating_sub(group.start)),
            domains: lanes.len() as u64,
            arrived_last: last.lane,
            longest: longest.lane,
        };
        if self
            .worst
            .is_none_or(|worst| stop.gathering > worst.gathering)
        {
            self.worst = Some(stop);
        }
        Some(stop)
    }

    fn stops(self) -> Stops {
        let mut domains: Vec<DomainStops> = self
            .tallies
            .into_iter()
            .map(|(domain, tally)| DomainStops {
                domain,
                stops: tally.stops,
                arrived_last: tally.arrived_last,
                held_up: seconds(tally.held_up),
                longest: tally.longest,
            })
            .collect();
        domains.sort_by_key(|domain| domain.domain);
        Stops {
            lengths: Lengths::new(self.lengths),
            waited: seconds(self.waited),
            domains,
            worst_gathering: self.worst,
        }
    }
}
