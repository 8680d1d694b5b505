//! From a file, a pipe or any other bytes to batches.

use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use heapline_model::{Batch, Damage, Decoder, Error, Header, InputSize, Source, Step};

use crate::{FORMATS, HEAD, Options, sniff};

/// Reads a profile of any format from anything that implements [`Read`].
pub struct Reader {
    decoder: Box<dyn Decoder>,
    bytes: Box<dyn Read + Send>,
    is_compressed: bool,
    /// The events that came along with the header.
    first: Batch,
    ended: bool,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("header", &self.decoder.header())
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// Opens a file: plain, or compressed by gzip or zstd.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        Self::new(File::open(path)?, options)
    }

    /// Reads from something that is open already.
    pub fn new(bytes: impl Read + Send + 'static, options: Options) -> Result<Self, Error> {
        let (mut bytes, is_compressed) =
            heapline_trace::decompressed(Box::new(bytes)).map_err(Error::format)?;
        let mut head = Vec::new();
        match bytes.by_ref().take(HEAD as u64).read_to_end(&mut head) {
            Ok(_) => {}
            // A decompressor that fails is reported by the format, with what it could decompress.
            Err(error) if is_compressed && error.raw_os_error().is_none() => {}
            Err(error) => return Err(error.into()),
        }
        // What no format recognises goes to the first one, which says what it looks like instead.
        let format = sniff(&head).unwrap_or(&FORMATS[0]);
        let mut reader = Self {
            decoder: (format.decoder)(options),
            bytes: Box::new(Cursor::new(head).chain(bytes)),
            is_compressed,
            first: Batch::default(),
            ended: false,
        };
        let mut first = Batch::default();
        while reader.decoder.header().is_none() {
            if !reader.step(&mut first)? {
                break;
            }
        }
        if reader.decoder.header().is_none() {
            return Err(Error::format("the input ends before its header"));
        }
        reader.first = first;
        Ok(reader)
    }

    /// Decodes a little more. False at the end.
    fn step(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        match self.decoder.decode(batch)? {
            Step::Progress => {}
            Step::NeedInput => self.feed()?,
            Step::End => {
                self.ended = true;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn feed(&mut self) -> Result<(), Error> {
        match self.bytes.read(self.decoder.space()) {
            Ok(0) => self.decoder.finish(None),
            Ok(n) => {
                self.decoder.filled(n);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            // What a decompressor cannot read is damage; what the system cannot is an error.
            Err(error) if self.is_compressed && error.raw_os_error().is_none() => {
                self.decoder.finish(Some(error.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Source for Reader {
    fn header(&self) -> &Header {
        self.decoder
            .header()
            .unwrap_or_else(|| unreachable!("a reader has decoded the header"))
    }

    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        if !self.first.is_empty() {
            std::mem::swap(batch, &mut self.first);
            self.first.clear();
            return Ok(true);
        }
        while !self.ended && !batch.is_full() {
            self.step(batch)?;
        }
        Ok(!batch.is_empty())
    }

    fn damage(&self) -> Damage {
        self.decoder.damage()
    }

    fn size(&self) -> InputSize {
        self.decoder.size()
    }
}
