//! Storage outside of memory: bytes that are appended, and read at any place.

use std::fmt;
use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::packed::{pack, unpack};

/// Bytes that are appended, and read at any place: a file, usually.
pub trait Storage: fmt::Debug + Send + Sync {
    /// Appends bytes. Returns the place of the first of them.
    fn append(&self, bytes: &[u8]) -> io::Result<u64>;

    /// Reads the bytes at a place.
    fn read_at(&self, place: u64, bytes: &mut [u8]) -> io::Result<()>;
}

/// Makes empty storages, for data that does not fit in memory.
pub type CreateStorage = Arc<dyn Fn() -> io::Result<Arc<dyn Storage>> + Send + Sync>;

/// Bytes in a storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

impl Place {
    /// Bytes of a checksum.
    const SUM: usize = 4;

    /// Appends bytes and their checksum.
    pub(crate) fn write(storage: &dyn Storage, mut bytes: Vec<u8>) -> io::Result<Self> {
        let sum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        let len = u32::try_from(bytes.len())
            .map_err(|_| io::Error::new(io::ErrorKind::FileTooLarge, "a part exceeds 4 GiB"))?;
        Ok(Self {
            offset: storage.append(&bytes)?,
            len,
        })
    }

    /// Returns true if it lies within so many bytes.
    pub(crate) fn is_within(self, bytes: u64) -> bool {
        let end = self.offset.checked_add(self.len.into());
        end.is_some_and(|end| end <= bytes)
    }

    /// Reads bytes, and compares their checksum.
    pub(crate) fn read(self, storage: &dyn Storage) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.len as usize];
        storage.read_at(self.offset, &mut bytes)?;
        let end = bytes.len().checked_sub(Self::SUM).ok_or_else(damaged)?;
        let sum = crc32fast::hash(&bytes[..end]);
        // A fuzzer would never get past it.
        if bytes[end..] != sum.to_le_bytes() && !cfg!(fuzzing) {
            return Err(damaged());
        }
        bytes.truncate(end);
        Ok(bytes)
    }
}

/// Numbers in a storage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredNumbers {
    place: Place,
    len: usize,
}

impl StoredNumbers {
    pub(crate) fn write(storage: &dyn Storage, numbers: &[u64]) -> io::Result<Self> {
        let mut bytes = Vec::with_capacity(numbers.len() * 4);
        pack(numbers, &mut bytes);
        Ok(Self {
            place: Place::write(storage, bytes)?,
            len: numbers.len(),
        })
    }

    pub(crate) fn read(&self, storage: &dyn Storage) -> io::Result<Vec<u64>> {
        let bytes = self.place.read(storage)?;
        unpack(&mut &bytes[..], self.len).ok_or_else(damaged)
    }
}

/// The error of bytes that are not those that were written.
pub(crate) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the data is damaged")
}

/// A storage in memory, for tests.
#[cfg(test)]
pub(crate) mod memory {
    use std::sync::Mutex;

    use super::*;

    /// Bytes in memory.
    #[derive(Debug, Default)]
    pub(crate) struct MemoryStorage(pub(crate) Mutex<Vec<u8>>);

    impl Storage for MemoryStorage {
        fn append(&self, bytes: &[u8]) -> io::Result<u64> {
            let mut all = self.0.lock().unwrap();
            all.extend_from_slice(bytes);
            Ok((all.len() - bytes.len()) as u64)
        }

        fn read_at(&self, place: u64, bytes: &mut [u8]) -> io::Result<()> {
            let all = self.0.lock().unwrap();
            let start = usize::try_from(place).unwrap_or(usize::MAX);
            let found = all.get(start..).and_then(|rest| rest.get(..bytes.len()));
            bytes.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        }
    }

    pub(crate) fn create() -> CreateStorage {
        Arc::new(|| Ok(Arc::new(MemoryStorage::default())))
    }
}
