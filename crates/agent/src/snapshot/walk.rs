//! Finds all blocks that can be reached.

use std::ffi::c_void;

use super::block::{self, Header, Layout, is_pointer};
use super::functions::{domains, single};
use super::marks::{Marks, Page};
use super::raw::Raw;

/// Addresses that are prefetched before they are looked at.
const QUEUE: usize = 32;

/// Fields of a large block that are scanned at once.
const PIECE: usize = 1 << 12;

/// In which memory blocks may be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Areas {
    /// OCaml 4, where values may be addresses of anything: the runtime's function that knows.
    PageTable(single::Lookup),
    /// OCaml 5: all addresses are of blocks.
    Everywhere,
}

/// A walk through the heap.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) raw: Raw,
    pub(super) layout: Layout,
    areas: Areas,
    scan_stack: Option<domains::ScanStack>,
    pub(super) marks: Marks,
    /// Blocks with more than one reference, if they are counted.
    pub(super) shared: Option<Marks>,
    /// Addresses of fields that are to be scanned: from, to.
    pending: Vec<(usize, usize)>,
    queue: [usize; QUEUE],
    next: usize,
    /// Stacks of continuations that are to be scanned.
    fibers: Vec<usize>,
}

impl Walk {
    pub(super) fn new(
        raw: Raw,
        layout: Layout,
        areas: Areas,
        scan_stack: Option<domains::ScanStack>,
    ) -> Self {
        Self {
            raw,
            layout,
            areas,
            scan_stack,
            marks: Marks::new(),
            shared: None,
            pending: Vec::new(),
            queue: [0; QUEUE],
            next: 0,
            fibers: Vec::new(),
        }
    }

    /// Finds the blocks with more than one reference from here on.
    pub(super) fn count_references(&mut self) {
        self.shared = Some(Marks::new());
    }

    /// The kind of memory at an address.
    #[inline]
    pub(super) fn page(&mut self, address: usize) -> Page {
        match self.areas {
            Areas::PageTable(lookup) => self.marks.page(address, || {
                // In_heap and In_young, In_static_data
                match lookup(address) {
                    class if class & 3 != 0 => Page::Heap,
                    class if class & 4 != 0 => Page::Static,
                    _ => Page::Other,
                }
            }),
            Areas::Everywhere => {
                if Header::of(self.raw, address).is_static() {
                    Page::Static
                } else {
                    Page::Heap
                }
            }
        }
    }

    /// Returns true if a value is the address of a block.
    #[inline]
    pub(super) fn is_block(&mut self, value: usize) -> bool {
        is_pointer(value)
            && match self.areas {
                Areas::PageTable(_) => self.page(value) != Page::Other,
                Areas::Everywhere => true,
            }
    }

    /// The values on the stack of a continuation, and on those that wait for it.
    pub(super) fn values_of(&self, fiber: usize) -> Vec<usize> {
        extern "C" fn add(values: *mut c_void, value: usize, _: *mut usize) {
            if is_pointer(value) {
                // SAFETY: it is what is passed below.
                unsafe { (*values.cast::<Vec<usize>>()).push(value) };
            }
        }
        let mut values = Vec::new();
        if let Some(scan) = self.scan_stack {
            scan(add, 0, (&raw mut values).cast(), fiber, 0);
        }
        values
    }

    /// Adds a value that can be reached.
    #[inline]
    pub(super) fn reach(&mut self, value: usize) {
        if !is_pointer(value) {
            return;
        }
        Raw::prefetch(value - 8);
        self.marks.prefetch(value);
        let oldest = std::mem::replace(&mut self.queue[self.next], value);
        self.next = (self.next + 1) % QUEUE;
        if oldest != 0 {
            self.visit(oldest);
        }
    }

    /// The block that the address of a block is in: that of a function of a closure may be in its middle.
    #[inline]
    pub(super) fn block_of(&self, address: usize) -> (usize, Header) {
        let header = Header::of(self.raw, address);
        if header.tag() != block::INFIX {
            return (address, header);
        }
        let block = address - 8 * header.words();
        (block, Header::of(self.raw, block))
    }

    /// Returns true if the block at an address was reached.
    pub(super) fn is_reached(&self, address: usize) -> bool {
        self.marks.is_set(self.block_of(address).0)
    }

    #[inline]
    fn visit(&mut self, value: usize) {
        if !self.is_block(value) {
            return;
        }
        let (block, header) = self.block_of(value);
        if !self.marks.set(block) {
            if let Some(shared) = &mut self.shared {
                shared.set(block);
            }
            return;
        }
        if let Some(fiber) = self.layout.fiber(self.raw, block, header) {
            self.fibers.push(fiber);
        } else if let Some(first) = self.layout.first_field(self.raw, block, header)
            && first < header.words()
        {
            self.pending
                .push((block + 8 * first, block + 8 * header.words()));
        }
    }

    /// Goes on until everything that can be reached was.
    pub(super) fn run(&mut self) {
        loop {
            while let Some((from, to)) = self.pending.pop() {
                let piece = to.min(from + 8 * PIECE);
                if piece < to {
                    self.pending.push((piece, to));
                }
                for field in (from..piece).step_by(8) {
                    self.reach(self.raw.word(field));
                }
            }
            for n in 0..QUEUE {
                let value = std::mem::take(&mut self.queue[n]);
                if value != 0 {
                    self.visit(value);
                }
            }
            if !self.pending.is_empty() {
                continue;
            }
            let Some(fiber) = self.fibers.pop() else {
                return;
            };
            for value in self.values_of(fiber) {
                self.reach(value);
            }
        }
    }
}
