//! The names in a stack.

use hashbrown::HashMap;
use heapline_profile::{FileId, FrameId, FunctionId, IdVec, Scope, Symbols};

use super::Leaf;
use crate::names;

/// The number of no name.
pub(super) const NO_NAME: u32 = u32::MAX;

/// Something that can be in a stack.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    /// The file that it is in.
    pub(crate) file: Option<FileId>,
    /// 0 if unknown.
    pub(crate) line: u32,
}

/// Gives names their numbers.
pub(super) struct Names<'a> {
    symbols: &'a Symbols,
    leaf: Leaf,
    /// The name of stacks without frames.
    unknown: &'static str,
    pub(super) list: Vec<Name>,
    numbers: HashMap<String, u32>,
    functions: IdVec<FunctionId, u32>,
    sites: IdVec<FrameId, u32>,
}

impl<'a> Names<'a> {
    pub(super) fn new(scope: &Scope<'a>, leaf: Leaf) -> Self {
        let symbols = scope.profile().symbols();
        Self {
            symbols,
            leaf,
            unknown: scope.unknown_name(),
            list: Vec::new(),
            numbers: HashMap::new(),
            functions: IdVec::like(symbols.functions(), NO_NAME),
            sites: IdVec::like(symbols.frames(), NO_NAME),
        }
    }

    /// The names of a stack, outermost first.
    pub(super) fn path(&mut self, stack: &[FrameId], path: &mut Vec<u32>) {
        path.clear();
        path.extend(stack.iter().rev().map(|&frame| self.function(frame)));
        match stack.first() {
            None => path.push(self.number(self.unknown, None, 0)),
            Some(&frame) if self.leaf == Leaf::Site => path.push(self.site(frame)),
            Some(_) => (),
        }
    }

    fn function(&mut self, frame: FrameId) -> u32 {
        let id = self.symbols.frames()[frame].function;
        if self.functions[id] == NO_NAME {
            let function = &self.symbols.functions()[id];
            self.functions[id] =
                self.number(names::or_unknown(&function.name), Some(function.file), 0);
        }
        self.functions[id]
    }

    fn site(&mut self, frame: FrameId) -> u32 {
        if self.sites[frame] == NO_NAME {
            let info = self.symbols.frames()[frame];
            let text = names::site(self.symbols, info);
            self.sites[frame] = self.number(&text, Some(info.file), info.line);
        }
        self.sites[frame]
    }

    fn number(&mut self, text: &str, file: Option<FileId>, line: u32) -> u32 {
        let list = &mut self.list;
        *self.numbers.entry_ref(text).or_insert_with(|| {
            list.push(Name {
                text: text.to_owned(),
                file,
                line,
            });
            u32::try_from(list.len() - 1).unwrap_or(NO_NAME)
        })
    }
}
