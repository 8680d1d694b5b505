//! From bytes to batches.

use crate::{Batch, Damage, Header};

/// Why an input cannot be read any further.
///
/// Damage inside of an input is no error unless strictness is asked for: see [`Damage`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input is not of this format, or is damaged beyond use.
    #[error(transparent)]
    Format(Box<dyn std::error::Error + Send + Sync>),
    /// Reading failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Error {
    /// An error of a format.
    pub fn format(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Format(error.into())
    }
}

/// The result of [`Decoder::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It added to the batch; there may be more without further input.
    Progress,
    /// It needs more input.
    NeedInput,
    /// There is nothing more to decode.
    End,
}

/// How much of an input has been decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputSize {
    /// Bytes, decompressed.
    pub bytes: u64,
    /// Packets, or other pieces that the format is made of.
    pub packets: u64,
}

/// Decodes one input format: bytes in, batches out, no input of its own.
///
/// Whoever drives it writes into [`space`](Self::space), says with [`filled`](Self::filled) how
/// much, and calls [`decode`](Self::decode) until that asks for more.
pub trait Decoder: Send {
    /// The header, once it was decoded.
    fn header(&self) -> Option<&Header>;

    /// A buffer to read into, never empty.
    fn space(&mut self) -> &mut [u8];

    /// Says that the first `n` bytes of [`space`](Self::space) are input now.
    fn filled(&mut self, n: usize);

    /// Says that no more input will come; `broken` is the reason if the data cannot be
    /// decompressed any further.
    fn finish(&mut self, broken: Option<String>) -> Result<(), Error>;

    /// Decodes some of the input, and adds what it finds to the batch.
    fn decode(&mut self, batch: &mut Batch) -> Result<Step, Error>;

    /// The damage found so far.
    fn damage(&self) -> Damage;

    /// How much has been decoded so far.
    fn size(&self) -> InputSize;
}

/// Anything that batches come from: a file, a running program, a test.
pub trait Source: Send {
    /// The header.
    fn header(&self) -> &Header;

    /// Fills an empty batch. False if nothing more will come.
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, Error>;

    /// The damage found so far.
    fn damage(&self) -> Damage;

    /// How much has been read so far.
    fn size(&self) -> InputSize;
}

/// A source that grows: the recording of a program that runs.
pub trait GrowingSource: Source {
    /// Looks for what has come since the last refresh. [`next_batch`](Source::next_batch) then hands
    /// it over; it returns false when everything up to now was handed over.
    fn refresh(&mut self) -> Result<(), Error>;

    /// Returns true if everything was handed over and nothing more will come.
    fn has_ended(&self) -> bool;
}
