//! The packet that a trace begins with.

use std::io;

use heapline_trace::{PacketSink, TraceInfo, write_info};

use crate::file::TraceFile;
use crate::recorder::Options;

/// Writes it.
pub(crate) fn write(
    file: &TraceFile,
    options: &Options,
    pid: u64,
    start_time: u64,
) -> io::Result<()> {
    write_info(&info(options, pid, start_time), &mut Beginning(file))
}

struct Beginning<'a>(&'a TraceFile);

impl PacketSink for Beginning<'_> {
    fn packet(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut packet = bytes.to_vec();
        heapline_trace::tail::sign(&mut packet);
        self.0.end().write(&packet)
    }
}

fn info(options: &Options, pid: u64, start_time: u64) -> TraceInfo {
    let executable = std::env::current_exe().unwrap_or_default();
    TraceInfo {
        sample_rate: options.unit.rate(options.sample_rate),
        word_size: options.unit.bits(),
        executable_name: executable.to_string_lossy().into_owned(),
        host_name: rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
        ocaml_runtime_params: options.runtime_params.clone(),
        seed: options.seed,
        pid,
        start_time,
        initial_domain: 0,
        context: options.context.clone(),
    }
}
