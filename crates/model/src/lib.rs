//! The vocabulary of heap profiles, independent of any file format.
//!
//! Every input format is translated to these types, and everything that computes or shows something
//! starts from them:
//!
//! - [`Header`]: which program was profiled, how it was sampled, and what the source can tell.
//! - [`Batch`]: a few thousand events (births, promotions and deaths of blocks), with their stacks.
//! - [`Snapshot`]: what was alive at a moment, from sources that do not know single blocks.
//! - [`Collection`]: what the garbage collector did, and its counters.
//! - [`Damage`]: what is wrong with the input.
//! - [`Decoder`]: bytes in, batches out, no input of its own. A format implements this.
//! - [`Source`]: batches out, wherever they come from. Consumers take this. A [`GrowingSource`] is one
//!   that is asked again and again, such as a recording that still runs.
//! - [`BlockIndex`]: finds blocks by id without a hash table.
//!
//! # Example
//!
//! ```
//! use heapline_model::{Batch, Birth, EventKind, Frame, LocationId, Space};
//!
//! let mut batch = Batch::default();
//! let main = LocationId(0);
//! batch.define(main, 0x4010, [Frame { name: b"main", ..Frame::UNKNOWN }]);
//! batch.birth(
//!     10,
//!     0,
//!     1,
//!     Birth { size: 24, samples: 1, space: Space::Minor, ..Birth::default() },
//!     [main].into_iter(),
//! );
//! batch.death(25, 0, 1);
//! assert_eq!(batch.events().len(), 2);
//! assert_eq!(batch.events()[1].kind, EventKind::Death);
//! ```

mod batch;
mod block_index;
mod collection;
mod damage;
mod decoder;
mod header;
mod snapshot;

pub use batch::{Batch, Birth, Event, EventKind, Frame, LocationDefinition, LocationId, Space};
pub use block_index::BlockIndex;
pub use collection::{Collection, CollectionKind, CollectorCounters, Phase};
pub use damage::{Damage, Flaw};
pub use decoder::{Decoder, Error, GrowingSource, InputSize, Source, Step};
pub use header::{Capabilities, Header, Runtime, Scheme, attached_context};
pub use snapshot::{GcCounters, Mark, Snapshot};
