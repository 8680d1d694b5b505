//! Reads the sections of a snapshot.

use std::io::Read;

use heapline_heapfile::{
    Content, Definition, Ephemeron, Fact, Folded, Frame, ReadError, Reader, Root, Site, Symbol,
    Total,
};

/// The reason why a snapshot cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It has more blocks or references than can be numbered.
    #[error(
        "the snapshot has more than 4 thousand million blocks or references; \
         take one that is contracted"
    )]
    TooLarge,
}

/// The largest section of properties that is read to look for one: some bytes of a file that was found, and not asked for,
/// must not fill the memory.
const MAX_PROPERTIES: u32 = 1 << 18;

/// Reads properties of a snapshot, such as `trace` and `pid`, without the rest of the file.
pub fn read_properties<const N: usize>(
    input: impl Read,
    keys: [&str; N],
) -> Result<[Option<String>; N], LoadError> {
    let mut reader = Reader::new(input)?.largest_section(MAX_PROPERTIES);
    let lines = match reader.next_section()? {
        Some(Content::Meta(lines)) => lines,
        _ => Vec::new(),
    };
    let value = |key| properties(&lines).find(|(known, _)| *known == key);
    Ok(keys.map(|key| value(key).map(|(_, value)| value.to_owned())))
}

/// The properties in the lines of a snapshot.
pub(crate) fn properties(lines: &[String]) -> impl Iterator<Item = (&str, &str)> {
    lines.iter().filter_map(|line| line.split_once('='))
}

/// A snapshot as the file has it.
#[derive(Debug, Default)]
pub(crate) struct Sections {
    pub(crate) meta: Vec<String>,
    pub(crate) addresses: Vec<u64>,
    pub(crate) words: Vec<u64>,
    pub(crate) tags: Vec<u8>,
    pub(crate) details: Vec<u64>,
    /// By block, or empty if nothing is folded.
    pub(crate) folded: Vec<Folded>,
    /// By block: the end of its references.
    pub(crate) ends: Vec<u32>,
    pub(crate) fields: Vec<u32>,
    /// Addresses.
    pub(crate) targets: Vec<u64>,
    pub(crate) roots: Vec<Root>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) stacks: Vec<String>,
    pub(crate) ephemerons: Vec<Ephemeron>,
    pub(crate) facts: Vec<Fact>,
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) definitions: Vec<Definition>,
    pub(crate) sites: Vec<Site>,
    pub(crate) totals: Vec<Total>,
}

/// Blocks and references that can be numbered, with room for those that are not in the file.
const MOST: usize = (u32::MAX - (1 << 24)) as usize;

impl Sections {
    pub(crate) fn read(input: impl Read) -> Result<Self, LoadError> {
        let mut reader = Reader::new(input)?;
        let mut all = Self::default();
        while let Some(content) = reader.next_section()? {
            match content {
                Content::Meta(lines) => all.meta.extend(lines),
                Content::Blocks(blocks) => {
                    blocks.for_each(|block, edges| {
                        all.addresses.push(block.address);
                        all.words.push(block.words);
                        all.tags.push(block.tag);
                        all.details.push(block.detail);
                        if block.folded != Folded::default() || !all.folded.is_empty() {
                            all.folded
                                .resize(all.addresses.len() - 1, Folded::default());
                            all.folded.push(block.folded);
                        }
                        for edge in edges {
                            // Larger numbers stand for references without a field.
                            let field = u32::try_from(edge.field).unwrap_or(u32::MAX);
                            all.fields.push(field.min(super::graph::MAX_FIELD));
                            all.targets.push(edge.target);
                        }
                        let end = u32::try_from(all.targets.len()).unwrap_or(u32::MAX);
                        all.ends.push(end);
                    })?;
                    if all.addresses.len().max(all.targets.len()) > MOST {
                        return Err(LoadError::TooLarge);
                    }
                }
                Content::Roots(roots) => all.roots.extend(roots),
                Content::Frames(frames) => all.frames.extend(frames),
                Content::Stacks(stacks) => all.stacks.extend(stacks),
                Content::Ephemerons(ephemerons) => all.ephemerons.extend(ephemerons),
                Content::Facts(facts) => all.facts.extend(facts),
                Content::Symbols(symbols) => all.symbols.extend(symbols),
                Content::Definitions(definitions) => all.definitions.extend(definitions),
                Content::Sites(sites) => all.sites.extend(sites),
                Content::End(totals) => all.totals.extend(totals),
                _ => {}
            }
        }
        all.symbols
            .sort_unstable_by_key(|symbol| (symbol.kind, symbol.address));
        all.definitions
            .sort_by_key(|definition| (definition.module, definition.field));
        Ok(all)
    }
}
