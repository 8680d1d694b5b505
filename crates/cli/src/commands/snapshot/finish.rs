//! Checks and compresses a snapshot that a program has written.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use heapline_heapfile::{Content, ReadError, Reader, compress};

use crate::output::Force;
use crate::output::write_file;

/// A snapshot that is complete.
pub(in crate::commands) struct Finished {
    /// The size of its file.
    pub(in crate::commands) size: u64,
    /// The time for which the program was stopped.
    pub(in crate::commands) stopped: Duration,
}

/// Compresses a snapshot in its place.
pub(in crate::commands) fn finish(path: &Path) -> anyhow::Result<Finished> {
    let name = path.display();
    let open = || {
        let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
        anyhow::Ok(BufReader::with_capacity(1 << 20, file))
    };
    let stopped = match stopped(open()?) {
        Ok(stopped) => stopped,
        Err(ReadError::Incomplete { .. }) => bail!(
            "the copy of the program ended before the snapshot was complete; its heap may be damaged, \
             or memory was short"
        ),
        Err(error) => return Err(error).with_context(|| name.to_string()),
    };
    let input = open()?;
    let force = Force { force: true };
    write_file(path, &force, |output| {
        compress(input, output)
            .map(drop)
            .map_err(std::io::Error::other)
    })?;
    Ok(Finished {
        size: fs::metadata(path)?.len(),
        stopped,
    })
}

/// The time for which the program was stopped, in a snapshot that is complete.
fn stopped(input: BufReader<File>) -> Result<Duration, ReadError> {
    let mut reader = Reader::new(input)?;
    let mut stopped = None;
    while let Some(content) = reader.next_section()? {
        if let Content::Meta(lines) = content {
            let found = lines
                .iter()
                .find_map(|line| line.strip_prefix("stopped_ns="));
            stopped = found.and_then(|nanos| nanos.parse().ok()).or(stopped);
        }
    }
    Ok(Duration::from_nanos(stopped.unwrap_or(0)))
}
