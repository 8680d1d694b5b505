//! Checksums of the tables of a run: Parquet's own are not written by its library, and most readers ignore them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::check::Problem;
use crate::{CHECKSUMS, Error, FILES};

/// Writes the checksums of the tables in a folder, as programs for SFV files check them.
pub(crate) fn write(folder: &Path) -> Result<(), Error> {
    let path = folder.join(CHECKSUMS);
    let text: String = lines(folder)?.into_iter().map(|(_, line)| line).collect();
    fs::write(&path, text).map_err(Error::io("write", &path))
}

/// Finds a table that has changed since its checksum was written.
pub(crate) fn check(folder: &Path) -> Result<(), Problem> {
    let lines = lines(folder).map_err(|error| Problem::of(folder, &error))?;
    let path = folder.join(CHECKSUMS);
    let stated =
        fs::read(&path).map_err(|error| Problem::of(&path, &Error::io("read", &path)(error)))?;
    let mut rest = &stated[..];
    for (file, line) in lines {
        rest = rest.strip_prefix(line.as_bytes()).ok_or_else(|| {
            let reason = format!("its checksum is not that of {CHECKSUMS}: one of them is damaged");
            Problem::new(&file, reason)
        })?;
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(Problem::new(
            &path,
            "it has more lines than there are tables",
        ))
    }
}

/// The tables of a run, and the line for each.
fn lines(folder: &Path) -> Result<Vec<(PathBuf, String)>, Error> {
    let tables = FILES.iter().filter(|file| **file != CHECKSUMS);
    tables
        .map(|name| {
            let path = folder.join(name);
            let sum = sum(&path).map_err(Error::io("read", &path))?;
            Ok((path, format!("{name} {sum:08x}\n")))
        })
        .collect()
}

/// The CRC-32 of a file.
fn sum(path: &Path) -> io::Result<u32> {
    let mut file = File::open(path)?;
    let mut sum = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(sum.finalize()),
            read => sum.update(&buffer[..read]),
        }
    }
}
