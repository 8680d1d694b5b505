//! Traces of many runs of several services in several versions.

use heapline_trace::TraceInfo;

use crate::generate::{self, Program};

/// The services.
pub const SERVICES: [&str; 4] = ["shop", "search", "billing", "mail"];

/// The versions of each.
pub const VERSIONS: [&str; 5] = ["1.0", "1.1", "1.2", "1.3", "2.0"];

/// Microseconds of a day.
const DAY: u64 = 24 * 60 * 60 * 1_000_000;

/// A run of a fleet.
#[derive(Clone, Copy, Debug)]
pub struct FleetRun {
    /// Its number, from 0.
    pub number: u64,
    /// The sampled blocks of the first version. Later ones allocate more.
    pub blocks: usize,
}

impl FleetRun {
    /// The service that it is of.
    #[must_use]
    pub fn service(self) -> &'static str {
        SERVICES[place(self.number, SERVICES.len())]
    }

    /// Its version.
    #[must_use]
    pub fn version(self) -> &'static str {
        VERSIONS[place(self.number / SERVICES.len() as u64, VERSIONS.len())]
    }

    /// Its trace.
    #[must_use]
    pub fn trace(self) -> Vec<u8> {
        let version = VERSIONS.iter().position(|name| *name == self.version());
        let program = Program {
            allocations: self.blocks + self.blocks / 20 * version.unwrap_or_default(),
            locations: 400,
            depth: 20,
            seed: self.number,
            ..Program::default()
        };
        let info = generate::info();
        program.trace_with(&TraceInfo {
            executable_name: format!("/srv/{}", self.service()),
            pid: 1000 + self.number,
            start_time: info.start_time + self.number % 20 * DAY,
            ..info
        })
    }
}

fn place(number: u64, count: usize) -> usize {
    usize::try_from(number % count as u64).unwrap_or_default()
}
