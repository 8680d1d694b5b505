//! When each event happened.

/// Events in a group.
const GROUP: usize = 64;

/// The times of all events by number, in a byte or two each.
///
/// Times of neighbouring events are close together: each group of 64 is kept as its smallest time
/// and the differences to it, in as many bits as the largest of them needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    groups: Vec<Group>,
    /// The differences; those of a group of width w take w words.
    bits: Vec<u64>,
    /// Events of the group that is being filled.
    open: Vec<u64>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    base: u64,
    /// Where its words start, and their number in the top byte.
    place: u64,
}

impl Group {
    const START: u64 = (1 << 56) - 1;

    fn start(self) -> usize {
        usize::try_from(self.place & Self::START).unwrap_or(usize::MAX)
    }

    fn width(self) -> u32 {
        u32::try_from(self.place >> 56).unwrap_or(0)
    }
}

impl Clock {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn push(&mut self, time: u64) {
        self.open.push(time);
        self.len += 1;
        if self.open.len() == GROUP {
            self.close();
        }
    }

    /// Packs what is left. Nothing can be pushed any more.
    pub(crate) fn finish(&mut self) {
        if let Some(&last) = self.open.last() {
            self.open.resize(GROUP, last);
            self.close();
        }
        self.open = Vec::new();
        self.groups.shrink_to_fit();
        self.bits.shrink_to_fit();
    }

    fn close(&mut self) {
        let base = self.open.iter().copied().min().unwrap_or(0);
        let highest = self.open.iter().copied().max().unwrap_or(0);
        let width = u64::BITS - (highest - base).leading_zeros();
        let start = self.bits.len() as u64;
        self.groups.push(Group {
            base,
            place: start | u64::from(width) << 56,
        });
        let (mut word, mut used) = (0_u64, 0);
        for &time in &self.open {
            let difference = time - base;
            if width == 0 {
                break;
            }
            word |= difference << used;
            used += width;
            if used >= u64::BITS {
                self.bits.push(word);
                used -= u64::BITS;
                // What did not fit into the word; all of it did if nothing is left over.
                word = if used == 0 {
                    0
                } else {
                    difference >> (width - used)
                };
            }
        }
        self.open.clear();
    }

    /// The time of an event, in microseconds.
    #[inline]
    pub(crate) fn get(&self, event: usize) -> u64 {
        let Some(&group) = self.groups.get(event / GROUP) else {
            return self.open.get(event % GROUP).copied().unwrap_or(0);
        };
        let width = group.width();
        if width == 0 {
            return group.base;
        }
        let bit = (event % GROUP) * width as usize;
        let (word, shift) = (group.start() + bit / 64, bit % 64);
        let mut value = self.bits[word] >> shift;
        if shift + width as usize > 64 {
            value |= self.bits[word + 1] << (64 - shift);
        }
        group.base + (value & (u64::MAX >> (64 - width)))
    }

    /// How many events are before the first one for which `after` holds. Times must be in order.
    pub(crate) fn count_before(&self, after: impl Fn(u64) -> bool) -> usize {
        let group = self.groups.partition_point(|group| !after(group.base));
        // The first such event may be in the group before.
        let mut low = group.saturating_sub(1) * GROUP;
        let mut high = (group * GROUP).min(self.len);
        while low < high {
            let middle = usize::midpoint(low, high);
            if after(self.get(middle)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// Bytes of memory in use.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.groups) + size_of_val(&*self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(times: &[u64]) -> Clock {
        let mut clock = Clock::default();
        for &time in times {
            clock.push(time);
        }
        clock.finish();
        clock
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
        for (event, &time) in times.iter().enumerate() {
            assert_eq!(clock.get(event), time, "event {event}");
        }
    }

    #[test]
    fn events_are_found_by_time() {
        let times: Vec<u64> = (0..1000).map(|i| i / 3 * 10).collect();
        let clock = clock(&times);
        for limit in 0..3400 {
            let expected = times.partition_point(|&time| time <= limit);
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
