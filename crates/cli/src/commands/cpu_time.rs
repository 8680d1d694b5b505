//! CPU time of processes.

use std::fs;
use std::time::Duration;

/// CPU time that a process has used in all of its threads, also in those that have ended.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::commands) struct CpuTime {
    /// In the program's own code.
    pub(in crate::commands) user: Duration,
    /// In the kernel.
    pub(in crate::commands) system: Duration,
}

impl CpuTime {
    /// Reads that of a process, which may have ended if it was not waited for.
    pub(in crate::commands) fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        /// Ticks a second in `/proc` (`USER_HZ`), on all platforms that are supported.
        const TICKS: u64 = 100;
        // The name of the program before it may have spaces and parentheses.
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ').skip(11);
        let mut next = || {
            let ticks: u64 = fields.next()?.parse().ok()?;
            Some(Duration::from_millis(ticks * 1000 / TICKS))
        };
        Some(Self {
            user: next()?,
            system: next()?,
        })
    }

    pub(in crate::commands) fn total(self) -> Duration {
        self.user + self.system
    }

    /// The CPU time since an earlier reading.
    pub(in crate::commands) fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_after_the_name() {
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 150 20 0 0 20 0 1 0 99";
        let time = CpuTime::parse(stat).unwrap();
        assert_eq!(time.user, Duration::from_millis(1500));
        assert_eq!(time.system, Duration::from_millis(200));
        assert_eq!(time.total(), Duration::from_millis(1700));
        assert!(CpuTime::parse("7 (a) S 1").is_none());
    }
}
