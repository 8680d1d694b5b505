#![doc = include_str!("../README.md")]

mod address_index;
mod aggregate;
mod classes;
mod definition_names;
mod dominators;
mod graph;
mod heap;
mod load;
mod names;
pub mod reports;
mod roots;
mod shapes;

pub use aggregate::{AggregateId, AggregateTree};
pub use classes::{Class, ClassId, Kind};
pub use definition_names::{Binding, Bindings, CmtError};
pub use dominators::Dominators;
pub use graph::{Field, Graph, LoadDamage, NodeId, Virtual};
pub use heap::{Amount, Heap};
pub use load::{LoadError, read_properties};
pub use names::{function_name, module_name};
pub use roots::{Group, GroupKind};
