//! Tables for programs that query tables: DuckDB, Polars, pandas, Spark and others.
//!
//! There are two of them, joined by `stack_id`: [`blocks()`], or [`snapshots()`] where there are no
//! single blocks, and [`stacks()`]. They are plain Parquet
//! with types that every reader has; what the trace says of itself is in their metadata.
//!
//! [`Table`] writes other tables in the same way.

mod blocks;
mod column;
mod heap;
mod schema;
mod snapshots;
mod stacks;
mod table;

pub(crate) use self::blocks::BLOCK_COLUMNS;
pub use self::blocks::blocks;
pub use self::column::{Column, Dictionary, Value};
pub use self::heap::{edges, nodes};
pub use self::schema::{Field, Kind};
pub use self::snapshots::snapshots;
pub(crate) use self::snapshots::{SNAPSHOT_COLUMNS, columns as snapshot_columns};
pub use self::stacks::stacks;
pub use self::table::{ROWS_IN_BATCH, Table, delta_encoded, properties};
