//! When each event happened.

/// Events in a group.
const GROUP: usize = 64;

/// The times of all events by number, in a byte or two each.
///
/// Times of neighbouring events are close together: each group of 64 is kept as its smallest time
/// and the differences to it, in as many bytes as the largest of them needs: 0, 1, 2, 4 or 8.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    groups: Vec<Group>,
    /// The differences; those of a group of w bytes take 8 w words.
    words: Vec<u64>,
    /// Events of the group that is being filled.
    open: Vec<u64>,
    /// The number of the first event that is here: earlier ones were forgotten.
    first: u64,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    base: u64,
    /// Where its words start, and the bits of a difference in the top byte.
    place: u64,
}

impl Group {
    const START: u64 = (1 << 56) - 1;

    #[inline]
    fn start(self) -> usize {
        usize::try_from(self.place & Self::START).unwrap_or(usize::MAX)
    }

    #[inline]
    fn bits(self) -> u32 {
        u32::try_from(self.place >> 56).unwrap_or(0)
    }
}

impl Clock {
    /// How many events there are.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.first + (self.groups.len() * GROUP + self.open.len()) as u64
    }

    /// The number of the first event that is here.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Forgets the events before one; up to 63 of them stay.
    pub(crate) fn forget_before(&mut self, event: u64) {
        let groups = (self.place(event) / GROUP).min(self.groups.len());
        let words = self
            .groups
            .get(groups)
            .map_or(self.words.len(), |group| group.start());
        self.groups.drain(..groups);
        self.words.drain(..words);
        for group in &mut self.groups {
            group.place -= words as u64;
        }
        self.first += (groups * GROUP) as u64;
    }

    /// The place of an event among those that are here.
    #[inline]
    fn place(&self, event: u64) -> usize {
        index(event.saturating_sub(self.first))
    }

    #[inline]
    pub(crate) fn push(&mut self, time: u64) {
        self.open.push(time);
        if self.open.len() == GROUP {
            self.close();
        }
    }

    /// Drops the room that was made for more events.
    pub(crate) fn shrink(&mut self) {
        self.groups.shrink_to_fit();
        self.words.shrink_to_fit();
    }

    /// Forgets all events from a number on.
    pub(crate) fn truncate(&mut self, len: u64) {
        let groups = self.place(len) / GROUP;
        if groups < self.groups.len() {
            let first = self.first + (groups * GROUP) as u64;
            let open = (first..len).map(|event| self.get(event)).collect();
            self.words.truncate(self.groups[groups].start());
            self.groups.truncate(groups);
            self.open = open;
        } else {
            self.open.truncate(self.place(len) % GROUP);
        }
    }

    fn close(&mut self) {
        let base = self.open.iter().copied().min().unwrap_or(0);
        let used = self.open.iter().fold(0, |used, time| used | (time - base));
        let bits = match u64::BITS - used.leading_zeros() {
            0 => 0,
            n => n.next_power_of_two().max(8),
        };
        let start = self.words.len() as u64;
        self.groups.push(Group {
            base,
            place: start | u64::from(bits) << 56,
        });
        // Spelled out, so that each of them is compiled to a loop without surprises.
        match bits {
            0 => {}
            8 => self.pack::<8>(base),
            16 => self.pack::<16>(base),
            32 => self.pack::<32>(base),
            _ => self.pack::<64>(base),
        }
        self.open.clear();
    }

    fn pack<const BITS: usize>(&mut self, base: u64) {
        self.words
            .extend(self.open.chunks_exact(64 / BITS).map(|times| {
                let places = (0..).step_by(BITS);
                let parts = times.iter().zip(places);
                parts.fold(0, |word, (time, place): (_, u32)| {
                    word | (time - base) << place
                })
            }));
    }

    /// The time of an event, in microseconds.
    #[inline]
    pub(crate) fn get(&self, event: u64) -> u64 {
        let event = self.place(event);
        let Some(&group) = self.groups.get(event / GROUP) else {
            return self.open.get(event % GROUP).copied().unwrap_or(0);
        };
        let bits = group.bits();
        if bits == 0 {
            return group.base;
        }
        let bit = (event % GROUP) * bits as usize;
        let word = self.words[group.start() + bit / 64];
        group.base + (word >> (bit % 64) & (u64::MAX >> (64 - bits)))
    }

    /// How many events are before the first one for which `after` holds. Times must be in order.
    pub(crate) fn count_before(&self, after: impl Fn(u64) -> bool) -> u64 {
        let group = self.groups.partition_point(|group| !after(group.base));
        // The first such event may be in the group before.
        let mut low = self.first + (group.saturating_sub(1) * GROUP) as u64;
        let mut high = if group < self.groups.len() {
            self.first + (group * GROUP) as u64
        } else {
            self.len()
        };
        while low < high {
            let middle = u64::midpoint(low, high);
            if after(self.get(middle)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// How many events are before the first one that is later than a time, where times need not be
    /// in order.
    pub(crate) fn first_after(&self, time: u64) -> u64 {
        (self.first..self.len())
            .find(|&event| self.get(event) > time)
            .unwrap_or(self.len())
    }

    /// Bytes of memory in use.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.groups) + size_of_val(&*self.words)
    }
}

/// The number of an event as an index; there are no more than memory has room for.
#[inline]
fn index(event: u64) -> usize {
    usize::try_from(event).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(times: &[u64]) -> Clock {
        let mut clock = Clock::default();
        for &time in times {
            clock.push(time);
        }
        clock
    }

    #[test]
    fn a_clock_can_be_set_back_to_any_event() {
        let times: Vec<u64> = (0..300).map(|i| i * i * 977).collect();
        for len in 0..300 {
            let mut clock = clock(&times);
            clock.truncate(len);
            assert_eq!(clock.len(), len);
            clock.push(42);
            for event in 0..len {
                assert_eq!(clock.get(event), times[usize::try_from(event).unwrap()]);
            }
            assert_eq!(clock.get(len), 42);
        }
    }

    #[test]
    fn events_can_be_forgotten() {
        let times: Vec<u64> = (0..1000).map(|i| i * i).collect();
        let mut clock = clock(&times);
        for first in [0, 1, 64, 100, 640, 900] {
            clock.forget_before(first);
            assert!(clock.first() <= first && first - clock.first() < 64);
            assert_eq!(clock.len(), 1000);
            for event in first..1000 {
                assert_eq!(clock.get(event), event * event);
            }
            let middle = u64::midpoint(first, 1000);
            let after = clock.count_before(|time| time >= middle * middle);
            assert_eq!(after, middle);
        }
        clock.truncate(950);
        clock.push(7);
        assert_eq!(
            (clock.len(), clock.get(949), clock.get(950)),
            (951, 949 * 949, 7)
        );
    }

    #[test]
    fn what_goes_in_comes_out() {
        let mut time = 0;
        let mut times = Vec::new();
        for i in 0..10_000_u64 {
            // Now and then a long pause, and the longest possible one.
            time += match i {
                7777 => 1 << 62,
                _ if i % 997 == 0 => i << 20,
                _ => i % 13,
            };
            times.push(time);
        }
        times.extend([0, u64::MAX, 5]);
        let clock = clock(&times);
        for (event, &time) in (0..).zip(&times) {
            assert_eq!(clock.get(event), time, "event {event}");
        }
    }

    #[test]
    fn events_are_found_by_time() {
        let times: Vec<u64> = (0..1000).map(|i| i / 3 * 10).collect();
        let clock = clock(&times);
        for limit in 0..3400 {
            let expected = times.partition_point(|&time| time <= limit) as u64;
            assert_eq!(clock.count_before(|time| time > limit), expected, "{limit}");
        }
        assert_eq!(Clock::default().count_before(|_| true), 0);
    }

    #[test]
    fn an_event_takes_little_more_than_a_byte() {
        let times: Vec<u64> = (0..100_000).map(|i| i * 2).collect();
        assert!(clock(&times).memory() < 150_000);
    }
}
