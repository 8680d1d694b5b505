//! The names in a stack.

use hashbrown::HashMap;
use heapline_profile::Symbols;

use super::Leaf;
use crate::names;

/// The number of no name.
pub(super) const NO_NAME: u32 = u32::MAX;

/// Something that can be in a stack.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    /// The number of the file that it is in.
    pub(crate) file: Option<u32>,
    /// 0 if unknown.
    pub(crate) line: u32,
}

/// Gives names their numbers.
pub(super) struct Names<'a> {
    symbols: &'a Symbols,
    leaf: Leaf,
    pub(super) list: Vec<Name>,
    numbers: HashMap<String, u32>,
    /// By number of the function.
    functions: Vec<u32>,
    /// By number of the frame.
    sites: Vec<u32>,
}

impl<'a> Names<'a> {
    pub(super) fn new(symbols: &'a Symbols, leaf: Leaf) -> Self {
        Self {
            symbols,
            leaf,
            list: Vec::new(),
            numbers: HashMap::new(),
            functions: vec![NO_NAME; symbols.functions().len()],
            sites: vec![NO_NAME; symbols.frames().len()],
        }
    }

    /// The names of a stack, outermost first.
    pub(super) fn path(&mut self, stack: &[u32], path: &mut Vec<u32>) {
        path.clear();
        path.extend(stack.iter().rev().map(|&frame| self.function(frame)));
        match stack.first() {
            None => path.push(self.number(names::UNKNOWN, None, 0)),
            Some(&frame) if self.leaf == Leaf::Site => path.push(self.site(frame)),
            Some(_) => (),
        }
    }

    fn function(&mut self, frame: u32) -> u32 {
        let number = self.symbols.frames()[frame as usize].function as usize;
        if self.functions[number] == NO_NAME {
            let function = &self.symbols.functions()[number];
            self.functions[number] =
                self.number(names::or_unknown(&function.name), Some(function.file), 0);
        }
        self.functions[number]
    }

    fn site(&mut self, frame: u32) -> u32 {
        if self.sites[frame as usize] == NO_NAME {
            let info = self.symbols.frames()[frame as usize];
            let text = names::site(self.symbols, info);
            self.sites[frame as usize] = self.number(&text, Some(info.file), info.line);
        }
        self.sites[frame as usize]
    }

    fn number(&mut self, text: &str, file: Option<u32>, line: u32) -> u32 {
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
