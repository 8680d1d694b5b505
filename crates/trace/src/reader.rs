//! Reading a trace from a file or any other source of bytes.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::damage::Damage;
use crate::decoder::{Decoder, Options, PacketSummary, Step};
use crate::error::Error;
use crate::event::Event;
use crate::info::TraceInfo;
use crate::location::Locations;
use crate::visitor::{OnEvent, Visitor};

/// Reads a trace from anything that implements [`Read`].
///
/// ```no_run
/// use heapline_trace::{Event, Reader};
///
/// let mut reader = Reader::open("trace.ctf", Default::default())?;
/// println!("{}", reader.info().executable_name);
/// reader.for_each(|event, locations| {
///     if let Event::Alloc(alloc) = event
///         && let Some(site) = alloc.stack.site()
///         && let Some(frame) = locations.frames(site).next_back()
///     {
///         println!("{} words in {}", alloc.length, frame.name_lossy());
///     }
/// })?;
/// # Ok::<(), heapline_trace::Error>(())
/// ```
pub struct Reader<R> {
    decoder: Decoder,
    source: R,
    compressed: bool,
}

impl<R> fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("info", &self.decoder.info())
            .field("packets", &self.decoder.packets())
            .finish_non_exhaustive()
    }
}

impl Reader<ByteSource> {
    /// Opens a trace file: plain, or compressed by gzip or zstd. One that is being recorded, or whose
    /// program was killed, is complete up to now: see [`open`](crate::open).
    ///
    /// The file is read in pieces, not mapped into memory: mapping would save some 2 % of the time
    /// (6 ms instead of 8 for 67 MB, of 80 to 140 for decoding them), but it needs unsafe code, shows
    /// the whole file as memory used, and kills the program when somebody truncates the file
    /// meanwhile.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        Self::from_source(crate::open(path)?, options)
    }

    /// Like [`open`](Self::open) for something that is open already, such as standard input.
    pub fn from_source(
        source: impl Read + Send + 'static,
        options: Options,
    ) -> Result<Self, Error> {
        let (source, compressed) = decompressed(Box::new(source))?;
        Self::start(source, options, compressed)
    }
}

impl<R: Read> Reader<R> {
    /// Starts reading. `source` is uncompressed.
    pub fn new(source: R, options: Options) -> Result<Self, Error> {
        Self::start(source, options, false)
    }

    fn start(source: R, options: Options, compressed: bool) -> Result<Self, Error> {
        let mut reader = Self {
            decoder: Decoder::new(options),
            source,
            compressed,
        };
        // The first packet is what the trace says of itself; without one there is an error.
        reader.next_packet(|_, _| ())?;
        Ok(reader)
    }

    /// The metadata of the trace.
    #[must_use]
    pub fn info(&self) -> &TraceInfo {
        self.decoder
            .info()
            .unwrap_or_else(|| unreachable!("a reader has read the first packet"))
    }

    /// The version of the trace's format.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.decoder.version().unwrap_or_default()
    }

    /// Packets read so far, the first one included.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.decoder.packets()
    }

    /// Bytes of the decompressed trace decoded or skipped so far.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.decoder.offset()
    }

    /// The locations seen so far.
    #[must_use]
    pub fn locations(&self) -> &Locations {
        self.decoder.locations()
    }

    /// The damage found so far.
    #[must_use]
    pub fn damage(&self) -> &Damage {
        self.decoder.damage()
    }

    /// Hands the events of the next packet to `on_event`; `None` at the end.
    pub fn next_packet(
        &mut self,
        on_event: impl FnMut(Event<'_>, &Locations),
    ) -> Result<Option<PacketSummary>, Error> {
        self.visit_packet(&mut OnEvent(on_event))
    }

    /// Like [`next_packet`](Self::next_packet), with a method for each kind of event. The work of the garbage collector is only
    /// told this way.
    pub fn visit_packet(
        &mut self,
        visitor: &mut impl Visitor,
    ) -> Result<Option<PacketSummary>, Error> {
        loop {
            match self.decoder.visit_packet(visitor)? {
                Step::Packet(packet) => return Ok(Some(packet)),
                Step::End => return Ok(None),
                Step::NeedInput => self.read_more()?,
            }
        }
    }

    /// Feeds the decoder.
    fn read_more(&mut self) -> Result<(), Error> {
        match self.source.read(self.decoder.space()) {
            Ok(0) => self.decoder.finish(),
            Ok(n) => self.decoder.filled(n),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // What a decompressor cannot read is damage; what the system cannot is an error.
            Err(error) if self.compressed && error.raw_os_error().is_none() => {
                self.decoder.finish_broken(error.to_string())?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Hands all remaining events to `on_event`.
    pub fn for_each(
        &mut self,
        mut on_event: impl FnMut(Event<'_>, &Locations),
    ) -> Result<(), Error> {
        while self.next_packet(&mut on_event)?.is_some() {}
        Ok(())
    }
}

/// Bytes of a trace, decompressed.
pub type ByteSource = Box<dyn Read + Send>;

/// Opens a file for reading what was in it before gzip or zstd, if any of them, compressed it.
pub fn open_decompressed(path: impl AsRef<Path>) -> Result<ByteSource, Error> {
    let (source, _) = decompressed(Box::new(File::open(path)?))?;
    Ok(source)
}

/// Undoes compression by gzip or zstd; says whether there was any.
#[cfg(feature = "compressed")]
pub fn decompressed(mut source: ByteSource) -> Result<(ByteSource, bool), Error> {
    let mut head = Vec::new();
    source.by_ref().take(4).read_to_end(&mut head)?;
    let gzip = head.starts_with(b"\x1f\x8b");
    // A frame, or one to be skipped, with which some compressors begin.
    let zstd = matches!(
        head[..],
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18]
    );
    let whole = io::Cursor::new(head).chain(source);
    let source: ByteSource = if gzip {
        Box::new(flate2::read::MultiGzDecoder::new(whole))
    } else if zstd {
        // Windows of more than 128 MiB are refused: what a file claims is not allocated.
        Box::new(zstd::stream::read::Decoder::new(whole)?)
    } else {
        Box::new(whole)
    };
    Ok((source, gzip || zstd))
}

/// The bytes as they are.
#[cfg(not(feature = "compressed"))]
pub fn decompressed(source: ByteSource) -> Result<(ByteSource, bool), Error> {
    Ok((source, false))
}
