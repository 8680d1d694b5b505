//! Writes the seeds of all fuzz targets to a directory: `write-seeds DIRECTORY`.

use std::fs;
use std::io;
use std::path::PathBuf;

fn main() -> io::Result<()> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = directory.ok_or_else(|| io::Error::other("usage: write-seeds DIRECTORY"))?;
    for (target, _) in heapline_fuzz_targets::TARGETS {
        let corpus = directory.join(target);
        fs::create_dir_all(&corpus)?;
        for (name, bytes) in heapline_fuzz_targets::seeds(target) {
            fs::write(corpus.join(name), bytes)?;
        }
    }
    Ok(())
}
