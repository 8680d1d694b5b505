//! Writes what a walk has found.

use std::collections::BTreeSet;
use std::io::{self, Write};

use heapline_heapfile::{
    Edge, FactKind, Nodes, RootKind, Section, SymbolKind, Writer, put_delta, put_text, put_varint,
};

use super::block::{self, Header, is_pointer};
use super::contents::{Contents, Fact};
use super::definitions::Finder;
use super::ephemerons::Ephemerons;
use super::fold;
use super::frames::{Descriptors, Numbered};
use super::images::{Mappings, Symbols};
use super::marks::Page;
use super::roots::{Owner, Root, Roots};
use super::walk::Walk;
use crate::callbacks;
use crate::runtime::{Kind, Runtime};

/// Items of a section that are written at once.
const ITEMS: usize = 1 << 16;

/// Everything that is written.
pub(super) struct Snapshot<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) walk: Walk,
    /// True if blocks are folded into others.
    pub(super) is_folded: bool,
    pub(super) roots: &'a Roots,
    pub(super) ephemerons: &'a Ephemerons,
    pub(super) descriptors: Option<Descriptors>,
    pub(super) mappings: &'a Mappings,
    pub(super) symbols: &'a Symbols,
}

/// Addresses in a file are in words.
fn words(address: usize) -> u64 {
    (address / 8) as u64
}

/// A few columns on their way to a section.
struct Rows<const N: usize> {
    kind: Section,
    columns: [Vec<u8>; N],
    items: usize,
    /// The last numbers of columns with differences.
    last: [u64; N],
}

impl<const N: usize> Rows<N> {
    fn new(kind: Section) -> Self {
        Self {
            kind,
            columns: [const { Vec::new() }; N],
            items: 0,
            last: [0; N],
        }
    }

    fn delta(&mut self, column: usize, number: u64) {
        put_delta(&mut self.columns[column], self.last[column], number);
        self.last[column] = number;
    }

    fn end_row<W: Write>(&mut self, writer: &mut Writer<W>) -> io::Result<()> {
        self.items += 1;
        if self.items == ITEMS {
            return self.write(writer);
        }
        Ok(())
    }

    fn write<W: Write>(&mut self, writer: &mut Writer<W>) -> io::Result<()> {
        if self.items > 0 {
            let columns: [&[u8]; N] = std::array::from_fn(|n| self.columns[n].as_slice());
            writer.section(self.kind, self.items, &columns)?;
            self.columns.iter_mut().for_each(Vec::clear);
            (self.items, self.last) = (0, [0; N]);
        }
        Ok(())
    }
}

impl Rows<4> {
    fn fact<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        block: usize,
        kind: FactKind,
        a: u64,
        b: u64,
    ) -> io::Result<()> {
        self.columns[0].push(kind as u8);
        self.delta(1, words(block));
        put_varint(&mut self.columns[2], a);
        put_varint(&mut self.columns[3], b);
        self.end_row(writer)
    }
}

impl Snapshot<'_> {
    /// Writes everything.
    pub(super) fn write<W: Write>(
        mut self,
        mut writer: Writer<W>,
        times: impl FnOnce() -> Vec<(&'static str, String)>,
    ) -> io::Result<()> {
        let mut contents = Contents::new(self.walk.raw);
        let mut frames = Numbered::default();
        let mut codes = BTreeSet::new();
        let tags = self.blocks(&mut writer, &mut contents, &mut frames, &mut codes)?;
        self.roots(&mut writer, &mut frames)?;
        self.definitions(&mut writer)?;
        self.frames(&mut writer, &frames)?;
        self.ephemerons(&mut writer)?;
        self.sites(&mut writer)?;
        self.symbols(&mut writer, &contents, codes)?;
        let times = times();
        let times: Vec<(&str, &str)> = times
            .iter()
            .map(|(key, time)| (*key, time.as_str()))
            .collect();
        writer.meta(&times)?;
        let tags: Vec<(u8, u64, u64)> = (0_u8..=255)
            .zip(tags)
            .filter(|(_, (blocks, _))| *blocks > 0)
            .map(|(tag, (blocks, words))| (tag, blocks, words))
            .collect();
        writer.finish(&tags)
    }

    /// The blocks and their references. Returns blocks and words by tag.
    fn blocks<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        contents: &mut Contents,
        frames: &mut Numbered,
        codes: &mut BTreeSet<usize>,
    ) -> io::Result<[(u64, u64); 256]> {
        let mut tags = [(0, 0); 256];
        let mut nodes = Nodes::default();
        let mut edges = Vec::new();
        let mut facts = Rows::<4>::new(Section::Facts);
        // The first address of a range of static data, and its end.
        let mut fixed: Option<(usize, usize)> = None;
        let mut region = Vec::new();
        for start in self.walk.marks.regions() {
            self.walk.marks.blocks(start, &mut region);
            for &block in &region {
                let raw = self.walk.raw;
                let header = Header::of(raw, block);
                let mut count = |header: Header| {
                    let total: &mut (u64, u64) = &mut tags[usize::from(header.tag())];
                    total.0 += 1;
                    total.1 += header.words() as u64;
                };
                count(header);
                self.edges(block, header, &mut edges);
                let folded = self
                    .is_folded
                    .then(|| fold::replace_folded(&mut self.walk, block, &mut edges, count));
                let detail = match header.tag() {
                    block::CLOSURE | block::CUSTOM => raw.word(block) as u64,
                    block::STRING => contents.hash(block, header),
                    _ => 0,
                };
                if header.tag() == block::CLOSURE {
                    codes.insert(raw.word(block));
                }
                let size = header.words() as u64;
                nodes.push(words(block), size, header.tag(), detail, &edges);
                if let Some(folded) = folded {
                    nodes.fold(folded);
                }
                writer.nodes_if_full(&mut nodes)?;
                let end = block + 8 * header.words();
                if self.walk.page(block) == Page::Static {
                    fixed = Some((fixed.map_or(block, |(start, _)| start), end));
                } else if let Some((start, end)) = fixed.take() {
                    facts.fact(writer, start, FactKind::Static, words(end - start), 0)?;
                }
                let fact = match self.walk.layout.fiber(raw, block, header) {
                    Some(fiber) => Some(self.fiber(fiber, frames)),
                    None => contents.fact(block, header, |value| self.walk.is_block(value)),
                };
                if let Some(Fact { kind, a, b }) = fact {
                    facts.fact(writer, block, kind, a, b)?;
                }
            }
        }
        if let Some((start, end)) = fixed {
            facts.fact(writer, start, FactKind::Static, words(end - start), 0)?;
        }
        writer.nodes(&mut nodes)?;
        facts.write(writer)?;
        Ok(tags)
    }

    fn edges(&mut self, block: usize, header: Header, edges: &mut Vec<Edge>) {
        edges.clear();
        let raw = self.walk.raw;
        if let Some(fiber) = self.walk.layout.fiber(raw, block, header) {
            let values = (0..).zip(self.walk.values_of(fiber));
            edges.extend(values.map(|(field, value)| Edge {
                field,
                target: words(value),
            }));
        } else if let Some(first) = self.walk.layout.first_field(raw, block, header) {
            for field in first..header.words() {
                let value = raw.word(block + 8 * field);
                if self.walk.is_block(value) {
                    edges.push(Edge {
                        field: field as u64,
                        target: words(value),
                    });
                }
            }
        }
    }

    /// The size of the stack of a continuation, and where it was left.
    fn fiber(&self, fiber: usize, frames: &mut Numbered) -> Fact {
        let raw = self.walk.raw;
        // struct stack_info: sp, exception_ptr, handler. The stack ends where the handler begins.
        let [pointer, handler] = [0, 2].map(|n| raw.word(fiber + 8 * n));
        // A trap frame is below the first frame: the handler before it, and where it jumps to.
        let returns = (0..4).map(|n| raw.word(pointer + 8 * n));
        let descriptor = self
            .descriptors
            .and_then(|descriptors| returns.into_iter().find_map(|at| descriptors.get(at)));
        Fact {
            kind: FactKind::Fiber,
            a: handler.saturating_sub(fiber) as u64,
            b: frames.number(descriptor),
        }
    }

    fn roots<W: Write>(&mut self, writer: &mut Writer<W>, frames: &mut Numbered) -> io::Result<()> {
        let mut rows = Rows::<4>::new(Section::Roots);
        let mut row = |writer: &mut Writer<W>, kind: RootKind, target, a, b| {
            rows.columns[0].push(kind as u8);
            rows.delta(1, words(target));
            put_varint(&mut rows.columns[2], a);
            put_varint(&mut rows.columns[3], b);
            rows.end_row(writer)
        };
        for module in &self.roots.modules {
            row(writer, RootKind::Global, *module, 0, 0)?;
        }
        let mut stacks: Vec<(Owner, usize)> = Vec::new();
        let mut names = Vec::new();
        for root in &self.roots.others {
            if !self.walk.is_block(root.value) {
                continue;
            }
            if root.kind != RootKind::Stack {
                row(writer, root.kind, root.value, 0, 0)?;
                continue;
            }
            let start = self.mappings.start_of(root.slot).unwrap_or_default();
            let lookup = |descriptors: Descriptors| descriptors.of_slot(root.slot, start);
            let frame = frames.number(self.descriptors.and_then(lookup));
            // A domain may have several stacks, of fibers.
            let key = match root.stack {
                Owner::Domain(_) => (root.stack, 0),
                Owner::Thread => (root.stack, start),
            };
            let known = stacks.iter().position(|stack| *stack == key);
            let stack = known.unwrap_or_else(|| {
                stacks.push(key);
                put_text(&mut names, self.stack_name(root, stacks.len()).as_bytes());
                stacks.len() - 1
            });
            row(writer, RootKind::Stack, root.value, frame, stack as u64)?;
        }
        rows.write(writer)?;
        writer.section(Section::Stacks, stacks.len(), &[&names])
    }

    fn stack_name(&self, root: &Root, number: usize) -> String {
        match (self.runtime.kind, root.stack) {
            (Kind::Domains { .. }, Owner::Domain(domain)) => format!("domain {domain}"),
            _ if self.mappings.is_main_stack(root.slot) => "main thread".to_owned(),
            _ => format!("thread {number}"),
        }
    }

    /// The outermost function of a frame, and its line.
    fn frame(&self, descriptor: usize) -> (Vec<u8>, Vec<u8>, u64) {
        if let Some(frame) = self.runtime.outermost(descriptor as u64 >> 1) {
            return (
                frame.name.to_vec(),
                frame.file.to_vec(),
                u64::from(frame.line),
            );
        }
        let address = self.walk.raw.word(descriptor);
        let name = self.symbols.function(address).unwrap_or_default();
        (name.to_vec(), Vec::new(), 0)
    }

    fn frames<W: Write>(&self, writer: &mut Writer<W>, frames: &Numbered) -> io::Result<()> {
        let mut rows = Rows::<3>::new(Section::Frames);
        for descriptor in &frames.descriptors {
            let (name, file, line) = self.frame(*descriptor);
            put_text(&mut rows.columns[0], &name);
            put_text(&mut rows.columns[1], &file);
            put_varint(&mut rows.columns[2], line);
            rows.end_row(writer)?;
        }
        rows.write(writer)
    }

    fn definitions<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<()> {
        let mut rows = Rows::<5>::new(Section::Definitions);
        let mut calls: Vec<(usize, usize)> = match self.descriptors {
            Some(descriptors) => descriptors.all().collect(),
            None => return Ok(()),
        };
        calls.sort_unstable();
        let finder = Finder {
            raw: self.walk.raw,
            mappings: self.mappings,
            symbols: self.symbols,
            calls: &calls,
        };
        for &module in &self.roots.modules {
            let Some(name) = self.symbols.exactly_at(module) else {
                continue;
            };
            let fields = Header::of(self.walk.raw, module).words();
            let found = finder.of_module(name, module, fields);
            for definition in found {
                let (_, file, line) = self.frame(definition.descriptor);
                if line == 0 {
                    continue;
                }
                rows.delta(0, words(module));
                put_varint(&mut rows.columns[1], definition.field as u64);
                put_text(&mut rows.columns[2], b"");
                put_text(&mut rows.columns[3], &file);
                put_varint(&mut rows.columns[4], line);
                rows.end_row(writer)?;
            }
        }
        rows.write(writer)
    }

    fn ephemerons<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<()> {
        let raw = self.walk.raw;
        let mut rows = Rows::<4>::new(Section::Ephemerons);
        for &block in self.ephemerons.blocks() {
            if !self.walk.marks.is_set(block) {
                continue;
            }
            rows.delta(0, words(block));
            let data = self.ephemerons.data(raw, block);
            let data = data.filter(|data| self.walk.is_reached(*data));
            rows.delta(1, data.map_or(0, words));
            let keys: Vec<usize> = self.ephemerons.keys(raw, block).collect();
            put_varint(&mut rows.columns[2], keys.len() as u64);
            for key in keys {
                rows.delta(3, words(key));
            }
            rows.end_row(writer)?;
        }
        rows.write(writer)
    }

    fn sites<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<()> {
        let mut rows = Rows::<3>::new(Section::Sites);
        for sampled in &self.roots.sampled {
            let block = sampled.block;
            let is_it = is_pointer(block)
                && self.walk.marks.is_set(block)
                && Header::of(self.walk.raw, block).words() == sampled.words;
            if is_it {
                rows.delta(0, words(block));
                put_varint(&mut rows.columns[1], callbacks::id(sampled.data));
                put_varint(&mut rows.columns[2], sampled.samples as u64);
                rows.end_row(writer)?;
            }
        }
        rows.write(writer)
    }

    fn symbols<W: Write>(
        &self,
        writer: &mut Writer<W>,
        contents: &Contents,
        codes: BTreeSet<usize>,
    ) -> io::Result<()> {
        let mut rows = Rows::<3>::new(Section::Symbols);
        let codes = codes.into_iter().filter_map(|code| {
            let name = self.symbols.function(code)?;
            Some((SymbolKind::Code, code, name))
        });
        let modules = self.roots.modules.iter().filter_map(|module| {
            let name = self.symbols.exactly_at(*module)?;
            Some((SymbolKind::Module, *module, name))
        });
        let operations = contents.operations.iter();
        let operations =
            operations.map(|(at, name)| (SymbolKind::Operations, *at, name.as_slice()));
        for (kind, address, name) in codes.chain(modules).chain(operations) {
            rows.columns[0].push(kind as u8);
            rows.delta(1, address as u64);
            put_text(&mut rows.columns[2], name);
            rows.end_row(writer)?;
        }
        rows.write(writer)
    }
}
