//! The holders of sampled blocks, as a heap snapshot of the same run tells.

use hashbrown::HashMap;

/// Holders of the sampled blocks that are in a heap snapshot, such as `Cache.table`.
#[derive(Clone, Debug, Default)]
pub struct Holders {
    snapshot: String,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    /// By the number of allocations before the block.
    of_block: HashMap<usize, u32>,
}

impl Holders {
    /// No blocks, of a snapshot with this name.
    #[must_use]
    pub fn new(snapshot: impl Into<String>) -> Self {
        Self {
            snapshot: snapshot.into(),
            ..Self::default()
        }
    }

    /// Adds a block, by the number of allocations before it in the source.
    pub fn add(&mut self, block: usize, holder: &str) {
        let number = match self.numbers.get(holder) {
            Some(&number) => number,
            None => {
                let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
                self.names.push(holder.to_owned());
                self.numbers.insert(holder.to_owned(), number);
                number
            }
        };
        self.of_block.insert(block, number);
    }

    /// The name of the snapshot.
    #[must_use]
    pub fn snapshot(&self) -> &str {
        &self.snapshot
    }

    /// The number of a block's holder, if the snapshot has the block.
    pub(crate) fn of(&self, block: usize) -> Option<u32> {
        self.of_block.get(&block).copied()
    }

    /// The name of a holder.
    pub(crate) fn name(&self, holder: u32) -> &str {
        &self.names[holder as usize]
    }
}
