//! The times of events, given headers that may be wrong and clocks that may be set.

use crate::damage::FlawKind;
use crate::error::Error;
use crate::format::TIME_MASK;

/// The format can express packets of this length, in microseconds.
const LONGEST: u64 = TIME_MASK as u64;

/// A time is believed to follow on another one if it is within an hour.
const MAX_PAUSE: u64 = 3_600_000_000;

/// The time of one domain. It never runs backwards.
#[derive(Debug)]
pub(super) struct Clock {
    /// The last event, in microseconds since the start of the trace.
    now: u64,
    /// The last event as it was recorded, in microseconds since the epoch.
    recorded: u64,
    /// The offset that is added to recorded times because the clock was set back.
    shift: i128,
    /// True if the last packet was older than the one before, and the reason is not known yet.
    set_back: bool,
}

/// The times of a packet's events.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketTime {
    /// No event is earlier, in microseconds since the epoch, as recorded. As events have the low
    /// bits of their time, it need not be what the header says.
    pub(super) recorded: u64,
    /// The corrected bound, in microseconds since the start of the trace.
    pub(super) since_start: u64,
    /// No event is later than this after the begin.
    pub(super) span: u64,
    /// True if the only known bound is that the events were not before `since_start`.
    pub(super) held: bool,
}

impl Clock {
    pub(super) fn new(start_time: u64) -> Self {
        Self {
            now: 0,
            recorded: start_time,
            shift: 0,
            set_back: false,
        }
    }

    /// The times of the events of a packet whose header says it lasts from `begin` to `end`.
    pub(super) fn packet(
        &mut self,
        begin: u64,
        end: u64,
        start_time: u64,
        mut flaw: impl FnMut(FlawKind) -> Result<(), Error>,
    ) -> Result<PacketTime, Error> {
        let Some((recorded, span)) = self.window(begin, end, &mut flaw)? else {
            self.set_back = false;
            return Ok(self.hold(self.recorded));
        };
        // In 128 bits no sum of what a header may hold overflows.
        let time = i128::from(recorded) - i128::from(start_time) + self.shift;
        let behind = i128::from(self.now) - time;
        if behind > 0 {
            flaw(FlawKind::ClockSetBack {
                by: u64::try_from(behind).unwrap_or(u64::MAX),
            })?;
            // One packet alone may have a damaged time. The next one tells: if it goes on from
            // there, the clock was set back.
            if !self.set_back || recorded.wrapping_sub(self.recorded) >= MAX_PAUSE {
                self.set_back = true;
                return Ok(self.hold(recorded));
            }
            self.shift += behind;
        }
        self.set_back = false;
        let time = u64::try_from(time + behind.max(0)).unwrap_or(u64::MAX);
        Ok(PacketTime {
            recorded,
            // Room for the largest time that an event can add.
            since_start: time.min(u64::MAX - LONGEST),
            span,
            held: false,
        })
    }

    /// Notes that the last event of a packet came so long after its begin.
    pub(super) fn advance(&mut self, packet: &PacketTime, delta: u32) {
        self.now = packet.since_start + u64::from(delta);
        self.recorded = packet.recorded.saturating_add(u64::from(delta));
    }

    /// The time of a packet without events: that of the last event.
    pub(super) fn held(&self) -> PacketTime {
        self.hold(self.recorded)
    }

    /// The recorded time that a packet covers, as its begin and length; `None` if its header
    /// cannot be believed.
    fn window(
        &self,
        begin: u64,
        end: u64,
        flaw: &mut impl FnMut(FlawKind) -> Result<(), Error>,
    ) -> Result<Option<(u64, u64)>, Error> {
        let last = self.recorded;
        let span = end.wrapping_sub(begin);
        if span <= LONGEST {
            // A packet that is half older than the one before: what is after it need not be lost.
            if begin < last && last <= end && self.shift == 0 {
                flaw(FlawKind::ClockSetBack { by: last - begin })?;
                return Ok(Some((last, end - last)));
            }
            return Ok(Some((begin, span)));
        }
        // One of the two is wrong, or the clock was set back in between. Whichever is believed
        // may be the wrong one, and would move all that follows.
        flaw(FlawKind::ContradictoryTimes { begin, end })?;
        Ok(None)
    }

    fn hold(&self, recorded: u64) -> PacketTime {
        PacketTime {
            recorded,
            since_start: self.now,
            span: 0,
            held: true,
        }
    }
}
