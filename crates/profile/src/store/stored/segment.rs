//! Segments and pages of the clock as bytes.

use std::sync::Arc;

use super::super::ids::{ClassId, Id};
use super::super::profile::Segment;
use super::super::segment::{Column, Lives, NEVER, SEGMENT};
use super::packed::{pack, unpack};

/// When the blocks of a segment were allocated, promoted and freed, in microseconds; 0 for what never happened.
///
/// Blocks in memory have the times of their events from the clock. To look up a time in a clock that is stored takes a
/// read for each block that lives long.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    pub(crate) birth: Vec<u64>,
    /// Empty if no block was promoted.
    pub(crate) promotion: Vec<u64>,
    pub(crate) death: Vec<u64>,
}

impl Times {
    /// The times of the events of some blocks, given those of all events.
    pub(crate) fn of_events(lives: &Lives, time_of: impl Fn(u64) -> u64) -> Self {
        let time = |event: u64| if event == NEVER { 0 } else { time_of(event) };
        let blocks = 0..lives.len();
        let promotions = if lives.has_promotions() {
            lives.len()
        } else {
            0
        };
        Self {
            birth: blocks.clone().map(|i| time(lives.birth(i))).collect(),
            promotion: (0..promotions).map(|i| time(lives.promotion(i))).collect(),
            death: blocks.map(|i| time(lives.death(i))).collect(),
        }
    }

    #[inline]
    pub(crate) fn promotion(&self, block: usize) -> u64 {
        self.promotion.get(block).copied().unwrap_or(0)
    }

    pub(crate) fn set(&mut self, column: Column, block: usize, time: u64) {
        match column {
            Column::Birth => self.birth[block] = time,
            Column::Death => self.death[block] = time,
            Column::Promotion => {
                if self.promotion.is_empty() {
                    self.promotion = vec![0; self.birth.len()];
                }
                self.promotion[block] = time;
            }
        }
    }
}

/// The bytes of a segment.
pub(crate) fn encode(lives: &Lives, class: &[ClassId], times: &Times) -> Vec<u8> {
    let len = lives.len();
    let mut out = Vec::with_capacity(len * 16);
    out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
    out.push(lives.has_promotions().into());
    // What comes later is kept as the distance from the birth, plus one: 0 if it never comes.
    let since_birth = |event: u64, birth: u64| match event {
        NEVER => 0,
        event => event.saturating_sub(birth) + 1,
    };
    let mut column = |value: &dyn Fn(usize) -> u64| {
        let values: Vec<u64> = (0..len).map(value).collect();
        pack(&values, &mut out);
    };
    column(&|i| lives.birth(i));
    column(&|i| since_birth(lives.death(i), lives.birth(i)));
    column(&|i| class[i].index() as u64);
    column(&|i| times.birth[i]);
    column(&|i| match lives.death(i) {
        NEVER => 0,
        _ => times.death[i].saturating_sub(times.birth[i]),
    });
    if lives.has_promotions() {
        column(&|i| since_birth(lives.promotion(i), lives.birth(i)));
        column(&|i| match lives.promotion(i) {
            NEVER => 0,
            _ => times.promotion(i).saturating_sub(times.birth[i]),
        });
    }
    out
}

/// A segment that was read.
#[derive(Debug)]
pub(crate) struct StoredSegment {
    pub(crate) lives: Lives,
    pub(crate) class: Vec<ClassId>,
    pub(crate) times: Times,
}

impl From<StoredSegment> for Segment {
    fn from(stored: StoredSegment) -> Self {
        Self {
            lives: Arc::new(stored.lives),
            class: Arc::new(stored.class),
            times: Some(Arc::new(stored.times)),
        }
    }
}

/// The segment of some bytes, with classes and events below some numbers. `None` if they are not a segment.
pub(crate) fn decode(mut bytes: &[u8], classes: usize, events: u64) -> Option<StoredSegment> {
    let bytes = &mut bytes;
    let len = u32::from_le_bytes(bytes.split_off(..4)?.try_into().ok()?) as usize;
    let has_promotions = *bytes.split_off_first()? != 0;
    if len > SEGMENT {
        return None;
    }
    let mut column = || unpack(bytes, len);
    let birth = column()?;
    let death = column()?;
    let class = column()?;
    let birth_time = column()?;
    let death_time = column()?;
    let promotion = has_promotions.then(|| Some([column()?, column()?]));
    if birth.iter().any(|&birth| birth >= events) {
        return None;
    }
    let mut lives = Lives::starting_at(birth.iter().copied().min().unwrap_or(0));
    let mut times = Times {
        death: vec![0; len],
        birth: birth_time,
        ..Times::default()
    };
    for &birth in &birth {
        lives.push(birth);
    }
    let mut set = |column: Column, distances: &[u64], ages: &[u64]| {
        for (i, (&distance, &age)) in distances.iter().zip(ages).enumerate() {
            if distance > 0 {
                let event = birth[i].checked_add(distance - 1)?;
                if event >= events {
                    return None;
                }
                lives.set(column, i, event);
                times.set(column, i, times.birth[i].checked_add(age)?);
            }
        }
        Some(())
    };
    set(Column::Death, &death, &death_time)?;
    if let Some(columns) = promotion {
        let [promotion, promotion_time] = columns?;
        set(Column::Promotion, &promotion, &promotion_time)?;
    }
    lives.shrink();
    let class = class.into_iter().map(|class| {
        let class = usize::try_from(class).ok()?;
        (class < classes).then(|| ClassId::from_index(class))
    });
    Some(StoredSegment {
        lives,
        class: class.collect::<Option<_>>()?,
        times,
    })
}

/// The bytes of a page of the clock.
pub(crate) fn encode_page(times: &[u64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(times.len() * 2);
    pack(times, &mut out);
    out
}

/// A page of the clock.
pub(crate) fn decode_page(mut bytes: &[u8], len: usize) -> Option<Vec<u64>> {
    unpack(&mut bytes, len)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Life = (u64, Option<u64>, Option<u64>, usize);

    fn segment(lives: &[Life]) -> (Lives, Vec<ClassId>, Times) {
        let mut columns = Lives::starting_at(lives.first().map_or(0, |life| life.0));
        let mut times = Times {
            birth: vec![0; lives.len()],
            death: vec![0; lives.len()],
            ..Times::default()
        };
        for (i, &(birth, promotion, death, _)) in lives.iter().enumerate() {
            columns.push(birth);
            times.set(Column::Birth, i, birth * 3);
            let later = [(Column::Promotion, promotion), (Column::Death, death)];
            for (column, event) in later {
                if let Some(event) = event {
                    columns.set(column, i, event);
                    times.set(column, i, event * 3);
                }
            }
        }
        let class = lives.iter().map(|life| ClassId::from_index(life.3));
        (columns, class.collect(), times)
    }

    proptest! {
        #[test]
        fn segments_come_back(
            lives in prop::collection::vec(
                (0..1_u64 << 40, any::<bool>(), any::<bool>(), 0..500_u64, 0..1_u64 << 36, 0..9_usize)
                    .prop_map(|(birth, is_promoted, dies, young, old, class)| {
                        let promotion = is_promoted.then_some(birth + young);
                        (birth, promotion, dies.then_some(birth + young + old), class)
                    }),
                0..200,
            ),
        ) {
            let (columns, class, times) = segment(&lives);
            let bytes = encode(&columns, &class, &times);
            let back = decode(&bytes, 9, 1 << 41).unwrap();
            prop_assert_eq!(back.lives.len(), lives.len());
            prop_assert_eq!(&back.class, &class);
            for i in 0..lives.len() {
                prop_assert_eq!(back.lives.birth(i), columns.birth(i));
                prop_assert_eq!(back.lives.promotion(i), columns.promotion(i));
                prop_assert_eq!(back.lives.death(i), columns.death(i));
                prop_assert_eq!(back.times.birth[i], times.birth[i]);
                prop_assert_eq!(back.times.promotion(i), times.promotion(i));
                prop_assert_eq!(back.times.death[i], times.death[i]);
            }
            // An event and a class that do not exist.
            if let Some(last) = lives.iter().flat_map(|life| [Some(life.0), life.1, life.2]).flatten().max() {
                prop_assert!(decode(&bytes, 9, last).is_none());
            }
            if lives.iter().any(|life| life.3 == 8) {
                prop_assert!(decode(&bytes, 8, 1 << 41).is_none());
            }
            for len in (0..bytes.len()).step_by(7) {
                prop_assert!(decode(&bytes[..len], 9, 1 << 41).is_none());
            }
        }

        #[test]
        fn any_bytes_are_a_segment_or_none(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            decode(&bytes, 5, 1 << 20);
        }
    }
}
