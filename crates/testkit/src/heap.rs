//! Heap snapshots of programs that never ran.

use heapline_heapfile::{
    Edge, FactKind, Folded, HEADER, MAGIC, Nodes, RootKind, SECTION_HEADER, Section, SymbolKind,
    Writer, put_delta, put_text, put_varint,
};

/// The number of a block, in the order in which they were added.
pub type BlockId = usize;

/// The address of the first block, in words.
const FIRST_ADDRESS: u64 = 0x1000;

#[derive(Clone, Debug, Default)]
struct Block {
    address: u64,
    words: u64,
    tag: u8,
    detail: u64,
    edges: Vec<(u64, BlockId)>,
    folded: Folded,
}

/// Columns of a section.
#[derive(Clone, Debug, Default)]
struct Rows {
    items: usize,
    columns: [Vec<u8>; 5],
    last: [u64; 5],
}

impl Rows {
    fn delta(&mut self, column: usize, number: u64) {
        put_delta(&mut self.columns[column], self.last[column], number);
        self.last[column] = number;
    }
}

/// A snapshot under construction.
///
/// ```
/// use heapline_testkit::heap::Snapshot;
///
/// let mut snapshot = Snapshot::default();
/// let key = snapshot.block(252, 1);
/// let pair = snapshot.block(0, 2);
/// snapshot.refer(pair, 0, key);
/// snapshot.module("camlCache", &[pair]);
/// assert!(snapshot.finish().starts_with(b"heapline heap\n"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    meta: Vec<(String, String)>,
    blocks: Vec<Block>,
    roots: Rows,
    frames: Rows,
    ephemerons: Rows,
    facts: Rows,
    symbols: Rows,
    definitions: Rows,
    sites: Rows,
    stacks: Rows,
    is_folded: bool,
}

impl Snapshot {
    /// Adds a property.
    pub fn property(&mut self, key: &str, value: &str) {
        self.meta.push((key.to_owned(), value.to_owned()));
    }

    /// Adds a block.
    pub fn block(&mut self, tag: u8, words: u64) -> BlockId {
        self.detailed(tag, words, 0)
    }

    /// Adds a block with the address of its code or operations, or the hash of its content.
    pub fn detailed(&mut self, tag: u8, words: u64, detail: u64) -> BlockId {
        let address = match self.blocks.last() {
            Some(last) => last.address + last.words + 1,
            None => FIRST_ADDRESS,
        };
        self.blocks.push(Block {
            address,
            words,
            tag,
            detail,
            ..Block::default()
        });
        self.blocks.len() - 1
    }

    /// Adds a block whose first fields refer to others.
    pub fn filled(&mut self, tag: u8, words: u64, targets: &[BlockId]) -> BlockId {
        let block = self.block(tag, words);
        for (field, &target) in (0..).zip(targets) {
            self.refer(block, field, target);
        }
        block
    }

    /// Adds a reference. Those of a block come in the order of its fields.
    pub fn refer(&mut self, from: BlockId, field: u64, to: BlockId) {
        self.blocks[from].edges.push((field, to));
    }

    /// Adds a list of other blocks.
    pub fn list(&mut self, items: &[BlockId]) -> BlockId {
        let cells: Vec<BlockId> = items.iter().map(|_| self.block(0, 2)).collect();
        for (n, &item) in items.iter().enumerate() {
            self.refer(cells[n], 0, item);
            if let Some(&next) = cells.get(n + 1) {
                self.refer(cells[n], 1, next);
            }
        }
        cells[0]
    }

    /// Folds blocks into one.
    pub fn fold(&mut self, block: BlockId, folded: Folded) {
        self.blocks[block].folded = folded;
        self.is_folded = true;
    }

    /// The address of a block, in words.
    #[must_use]
    pub fn address(&self, block: BlockId) -> u64 {
        self.blocks[block].address
    }

    /// Adds a root.
    pub fn root(&mut self, kind: RootKind, target: BlockId, a: u64, b: u64) {
        let address = self.address(target);
        self.roots.items += 1;
        self.roots.columns[0].push(kind as u8);
        self.roots.delta(1, address);
        put_varint(&mut self.roots.columns[2], a);
        put_varint(&mut self.roots.columns[3], b);
    }

    /// Adds a module with a symbol, whose fields refer to some values.
    pub fn module(&mut self, symbol: &str, values: &[BlockId]) -> BlockId {
        let module = self.filled(0, values.len() as u64, values);
        self.root(RootKind::Global, module, 0, 0);
        self.symbol(SymbolKind::Module, self.address(module) * 8, symbol);
        module
    }

    /// Adds a symbol.
    pub fn symbol(&mut self, kind: SymbolKind, address: u64, name: &str) {
        self.symbols.items += 1;
        self.symbols.columns[0].push(kind as u8);
        self.symbols.delta(1, address);
        put_text(&mut self.symbols.columns[2], name.as_bytes());
    }

    /// Names a field of a module.
    pub fn definition(&mut self, module: BlockId, field: u64, name: &str, file: &str, line: u64) {
        let address = self.address(module);
        self.definitions.items += 1;
        self.definitions.delta(0, address);
        put_varint(&mut self.definitions.columns[1], field);
        put_text(&mut self.definitions.columns[2], name.as_bytes());
        put_text(&mut self.definitions.columns[3], file.as_bytes());
        put_varint(&mut self.definitions.columns[4], line);
    }

    /// Adds a fact about a block.
    pub fn fact(&mut self, kind: FactKind, block: BlockId, a: u64, b: u64) {
        let address = self.address(block);
        self.facts.items += 1;
        self.facts.columns[0].push(kind as u8);
        self.facts.delta(1, address);
        put_varint(&mut self.facts.columns[2], a);
        put_varint(&mut self.facts.columns[3], b);
    }

    /// Adds a function on a stack; returns what its roots say as `a`.
    pub fn frame(&mut self, function: &str, file: &str, line: u64) -> u64 {
        self.frames.items += 1;
        put_text(&mut self.frames.columns[0], function.as_bytes());
        put_text(&mut self.frames.columns[1], file.as_bytes());
        put_varint(&mut self.frames.columns[2], line);
        self.frames.items as u64
    }

    /// Names the next stack.
    pub fn stack(&mut self, name: &str) {
        self.stacks.items += 1;
        put_text(&mut self.stacks.columns[0], name.as_bytes());
    }

    /// Adds an ephemeron.
    pub fn ephemeron(&mut self, block: BlockId, data: Option<BlockId>, keys: &[BlockId]) {
        let address = self.address(block);
        let data = data.map_or(0, |data| self.address(data));
        self.ephemerons.items += 1;
        self.ephemerons.delta(0, address);
        self.ephemerons.delta(1, data);
        put_varint(&mut self.ephemerons.columns[2], keys.len() as u64);
        for &key in keys {
            let key = self.address(key);
            self.ephemerons.delta(3, key);
        }
    }

    /// Says that a recording has sampled a block.
    pub fn site(&mut self, block: BlockId, number: u64, samples: u64) {
        let address = self.address(block);
        self.sites.items += 1;
        self.sites.delta(0, address);
        put_varint(&mut self.sites.columns[1], number);
        put_varint(&mut self.sites.columns[2], samples);
    }

    /// The file.
    ///
    /// # Panics
    ///
    /// If it has more blocks than a snapshot can have.
    #[must_use]
    pub fn finish(&self) -> Vec<u8> {
        let mut file = Vec::new();
        self.write(&mut file)
            .unwrap_or_else(|error| panic!("memory takes all: {error}"));
        file
    }

    fn write(&self, file: &mut Vec<u8>) -> std::io::Result<()> {
        let meta: Vec<(&str, &str)> = self
            .meta
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        let mut writer = Writer::new(file, &meta)?;
        let mut nodes = Nodes::default();
        let mut totals = [(0, 0); 256];
        let mut edges = Vec::new();
        for block in &self.blocks {
            edges.clear();
            edges.extend(block.edges.iter().map(|&(field, to)| Edge {
                field,
                target: self.blocks[to].address,
            }));
            nodes.push(block.address, block.words, block.tag, block.detail, &edges);
            if self.is_folded {
                nodes.fold(block.folded);
            }
            let (blocks, words) = &mut totals[usize::from(block.tag)];
            *blocks += 1 + block.folded.cells + block.folded.others;
            *words += block.words + block.folded.words;
            writer.nodes_if_full(&mut nodes)?;
        }
        writer.nodes(&mut nodes)?;
        for (kind, rows, columns) in [
            (Section::Roots, &self.roots, 4),
            (Section::Frames, &self.frames, 3),
            (Section::Stacks, &self.stacks, 1),
            (Section::Ephemerons, &self.ephemerons, 4),
            (Section::Facts, &self.facts, 4),
            (Section::Symbols, &self.symbols, 3),
            (Section::Definitions, &self.definitions, 5),
            (Section::Sites, &self.sites, 3),
        ] {
            if rows.items > 0 {
                let columns: Vec<&[u8]> =
                    rows.columns[..columns].iter().map(Vec::as_slice).collect();
                writer.section(kind, rows.items, &columns)?;
            }
        }
        let totals: Vec<(u8, u64, u64)> = (0..=255)
            .zip(totals)
            .filter(|(_, (blocks, _))| *blocks > 0)
            .map(|(tag, (blocks, words))| (tag, blocks, words))
            .collect();
        writer.finish(&totals)
    }
}

/// The snapshot as version 1 of the format has it, without checksums: damage is not found before the contents are read.
///
/// # Panics
///
/// If it is not a whole snapshot.
#[must_use]
pub fn without_checksums(snapshot: &[u8]) -> Vec<u8> {
    let mut file = [&MAGIC[..], &1_u16.to_le_bytes()].concat();
    let mut rest = &snapshot[HEADER..];
    while let Some((header, after)) = rest.split_first_chunk::<SECTION_HEADER>() {
        let [.., a, b, c, d, _, _, _, _] = *header;
        let stored = u32::from_le_bytes([a, b, c, d]) as usize;
        file.extend_from_slice(&header[..SECTION_HEADER - 4]);
        file.extend_from_slice(&after[..stored]);
        rest = &after[stored..];
    }
    assert!(rest.is_empty(), "a snapshot that is cut off");
    file
}

/// A small server that has answered some requests.
#[must_use]
pub fn server() -> Snapshot {
    server_after(1000)
}

/// A server with a cache from which nothing is ever removed, after so many requests.
#[must_use]
pub fn server_after(requests: u64) -> Snapshot {
    const CODE: u64 = 0x40_1000;
    const BIGARRAY: u64 = 0x40_9000;
    let mut heap = Snapshot::default();
    heap.property("program", "server");
    heap.property("pid", "4711");
    heap.property("runtime", "OCaml 5.3.0");
    heap.symbol(SymbolKind::Code, CODE, "camlServer__handle_312");
    heap.symbol(SymbolKind::Code, CODE + 64, "camlServer__fun_514");
    heap.symbol(SymbolKind::Operations, BIGARRAY, "_bigarr02");

    // Cache: a hash table of request and answer. Every answer has the same text for its type.
    let table = heap.block(0, 4);
    let size = (requests / 2).next_power_of_two().max(16);
    let buckets = heap.block(0, size);
    heap.refer(table, 1, buckets);
    heap.fact(FactKind::Hashtable, table, requests, size);
    let mut chains: Vec<Vec<BlockId>> = vec![Vec::new(); usize::try_from(size).unwrap_or(0)];
    for request in 0..requests {
        let key = heap.detailed(252, 4, request);
        let kind = heap.detailed(252, 2, u64::MAX);
        let body = heap.detailed(252, 12 + request % 7, 1 << 32 | request);
        let answer = heap.filled(0, 3, &[kind, body]);
        let binding = heap.filled(0, 3, &[key, answer]);
        if request % 10 == 0 {
            heap.site(body, request, 1);
        }
        let bucket = usize::try_from(request.wrapping_mul(0x9e37_79b9) % size).unwrap_or(0);
        chains[bucket].push(binding);
    }
    for (bucket, chain) in (0..).zip(&chains) {
        if let Some(&first) = chain.first() {
            heap.refer(buckets, bucket, first);
        }
        for pair in chain.windows(2) {
            heap.refer(pair[0], 2, pair[1]);
        }
    }
    let cache = heap.module("camlCache", &[table]);
    heap.definition(cache, 0, "table", "cache.ml", 12);

    // Server: options, a closure that two definitions share, a buffer, two views of a bigarray.
    let names: Vec<BlockId> = (0..5).map(|n| heap.detailed(252, 3, 1 << 40 | n)).collect();
    let options = heap.list(&names);
    let shared = heap.detailed(252, 2000, 7);
    let handle = heap.detailed(247, 4, CODE);
    heap.refer(handle, 3, shared);
    let log = heap.detailed(247, 4, CODE + 64);
    heap.refer(log, 3, shared);
    let text = heap.detailed(252, 8192, 8);
    let buffer = heap.filled(0, 4, &[text]);
    heap.fact(FactKind::Buffer, buffer, 1000, 65528);
    let views: Vec<BlockId> = (0..2).map(|_| heap.detailed(255, 6, BIGARRAY)).collect();
    for &view in &views {
        heap.fact(FactKind::External, view, 1 << 20, 0x7f00_0000_1000);
    }
    let images = heap.filled(0, 2, &views);
    let server = heap.module("camlServer", &[options, handle, log, buffer, images]);
    for (field, name, line) in [
        (0, "options", 3),
        (1, "handle", 20),
        (3, "out", 31),
        (4, "images", 40),
    ] {
        heap.definition(server, field, name, "server.ml", line);
    }

    // The main loop, with a session; C code with a callback; a finaliser; a parked continuation.
    heap.stack("main");
    let frame = heap.frame("camlServer__loop_700", "server.ml", 88);
    let queue = heap.detailed(252, 500, 9);
    let session = heap.filled(0, 5, &[queue]);
    heap.root(RootKind::Stack, session, frame, 0);
    let fiber = heap.block(245, 1);
    let parked = heap.detailed(252, 300, 10);
    heap.refer(fiber, 0, parked);
    heap.fact(FactKind::Fiber, fiber, 4096, frame);
    let waiting = heap.filled(0, 1, &[fiber]);
    heap.root(RootKind::Registered, waiting, 0, 0);
    let file = heap.detailed(252, 700, 11);
    heap.root(RootKind::Finaliser, file, 1, 0);

    // An ephemeron whose key is the table of the cache.
    let ephemeron = heap.block(251, 3);
    let data = heap.detailed(252, 900, 12);
    heap.ephemeron(ephemeron, Some(data), &[options]);
    heap.root(RootKind::Other, ephemeron, 0, 0);
    heap
}
