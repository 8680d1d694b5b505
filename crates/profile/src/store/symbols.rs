//! The names in a trace: frames, functions, files and modules.

use hashbrown::HashMap;
use heapline_model::{Frame, LocationDefinition};

use super::names;
use super::tree_builder::Name;

/// Everything that has a name.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    frames: Vec<FrameInfo>,
    functions: Vec<Function>,
    files: Vec<String>,
    modules: Vec<String>,
    locations: Vec<Location>,
    /// The frames of all locations, end to end.
    location_frames: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Location {
    address: u64,
    start: u32,
    /// 0 until the location has been defined.
    len: u32,
    /// Whether its frames are part of stacks. They are not where the program itself knows nothing of
    /// the location: it is a frame of the runtime.
    is_in_stacks: bool,
}

/// A place in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameInfo {
    /// The number of its function.
    pub function: u32,
    /// The number of its file.
    pub file: u32,
    /// 1 is the first line; 0 if unknown.
    pub line: u32,
    /// The first column.
    pub start_char: u16,
    /// One past the last column.
    pub end_char: u16,
}

/// A function, known by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// As the trace has it: `Stdlib__List.map`.
    pub raw: String,
    /// As people write it: `Stdlib.List.map`.
    pub name: String,
    /// The number of its module.
    pub module: u32,
    /// The number of the file that it was first seen in.
    pub file: u32,
}

impl Symbols {
    /// All frames; a frame's number is its place.
    #[must_use]
    pub fn frames(&self) -> &[FrameInfo] {
        &self.frames
    }

    /// All functions; a function's number is its place.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// All files; a file's number is its place.
    #[must_use]
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// All modules; a module's number is its place.
    #[must_use]
    pub fn modules(&self) -> &[String] {
        &self.modules
    }

    /// The function of a frame.
    #[must_use]
    pub fn function(&self, frame: u32) -> &Function {
        &self.functions[self.frames[frame as usize].function as usize]
    }

    /// Where a frame is: `list.ml:92:32-39`, or what is known of it. Programs that are not OCaml's
    /// know where something begins, as `main.rs:92:33`, but not where it ends.
    #[must_use]
    pub fn place(&self, frame: u32) -> String {
        let info = self.frames[frame as usize];
        let file = &self.files[info.file as usize];
        if info.line == 0 {
            file.clone()
        } else if info.start_char == info.end_char {
            format!("{file}:{}:{}", info.line, info.start_char.saturating_add(1))
        } else {
            format!("{file}:{}:{}-{}", info.line, info.start_char, info.end_char)
        }
    }

    /// The frames of a location, outermost first.
    #[must_use]
    pub fn location(&self, location: u32) -> &[u32] {
        let Location { start, len, .. } = self.locations[location as usize];
        &self.location_frames[start as usize..(start + len) as usize]
    }

    /// The innermost frame of a location.
    #[must_use]
    pub fn innermost(&self, location: u32) -> u32 {
        // Each location that was met has a frame, be it a made-up one.
        *self.location(location).last().unwrap_or(&0)
    }

    /// How many locations there are.
    #[must_use]
    pub fn location_count(&self) -> usize {
        self.locations.len()
    }

    /// The address of a location in the program.
    #[must_use]
    pub fn address(&self, location: u32) -> u64 {
        self.locations[location as usize].address
    }

    /// The locations that are part of stacks, with their frames.
    pub(crate) fn callable_locations(&self) -> impl Iterator<Item = (u32, &[u32])> {
        (0..).zip(&self.locations).map(|(number, location)| {
            let frames = if location.is_in_stacks {
                self.location(number)
            } else {
                &[]
            };
            (number, frames)
        })
    }
}

/// Fills [`Symbols`] as locations are defined.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable {
    symbols: Symbols,
    frames: HashMap<FrameInfo, u32>,
    functions: HashMap<Vec<u8>, u32>,
    files: HashMap<Vec<u8>, u32>,
    modules: HashMap<String, u32>,
    /// Locations that the source had not named when it used them, and the frames that stand in for
    /// theirs.
    unnamed: HashMap<u32, u32>,
}

impl SymbolTable {
    /// Learns what is at a location. Returns its frames in stacks, outermost first; `None` if those
    /// are known already.
    pub(crate) fn define(&mut self, definition: &LocationDefinition<'_>) -> Option<Vec<Name>> {
        let id = definition.id;
        if let Some(placeholder) = self.unnamed.remove(&id.0) {
            // Stacks have the placeholder already: it gets the name.
            if let Some(frame) = definition.frames().last() {
                let real = self.frame(&frame);
                self.symbols.frames[placeholder as usize] = self.symbols.frames[real as usize];
            }
            return None;
        }
        let mut frames: Vec<u32> = definition
            .frames()
            .map(|frame| self.frame(&frame))
            .collect();
        let is_in_stacks = !frames.is_empty() || !definition.is_named;
        if frames.is_empty() {
            let frame = self.nameless(definition.address);
            if !definition.is_named {
                self.unnamed.insert(id.0, frame);
            }
            frames.push(frame);
        }
        if self.symbols.locations.len() <= id.index() {
            let len = id.index() + 1;
            self.symbols.locations.resize(len, Location::default());
        }
        self.symbols.locations[id.index()] = Location {
            address: definition.address,
            start: number(self.symbols.location_frames.len() + 1),
            len: number(frames.len() + 1),
            is_in_stacks,
        };
        self.symbols.location_frames.extend_from_slice(&frames);
        if !is_in_stacks {
            return Some(Vec::new());
        }
        let name = |frame: u32| Name {
            frame,
            function: self.symbols.frames[frame as usize].function,
        };
        Some(frames.into_iter().map(name).collect())
    }

    pub(crate) fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    pub(crate) fn finish(self) -> Symbols {
        self.symbols
    }

    fn frame(&mut self, frame: &Frame<'_>) -> u32 {
        let file = self.file(frame.file);
        let info = FrameInfo {
            function: self.function(frame.name, file),
            file,
            line: frame.line,
            start_char: frame.start_char,
            end_char: frame.end_char,
        };
        let frames = &mut self.symbols.frames;
        *self.frames.entry(info).or_insert_with(|| {
            frames.push(info);
            number(frames.len())
        })
    }

    /// A frame of which the program itself knows only the address.
    fn nameless(&mut self, code: u64) -> u32 {
        let file = self.file(names::UNKNOWN_FILE.as_bytes());
        let function = self.function(format!("{code:#x}").as_bytes(), file);
        self.symbols.frames.push(FrameInfo {
            function,
            file,
            line: 0,
            start_char: 0,
            end_char: 0,
        });
        number(self.symbols.frames.len())
    }

    fn file(&mut self, name: &[u8]) -> u32 {
        let files = &mut self.symbols.files;
        *self.files.entry(name.to_vec()).or_insert_with(|| {
            files.push(String::from_utf8_lossy(name).into_owned());
            number(files.len())
        })
    }

    fn function(&mut self, name: &[u8], file: u32) -> u32 {
        if let Some(&function) = self.functions.get(name) {
            return function;
        }
        let raw = String::from_utf8_lossy(name).into_owned();
        let readable = names::readable(&raw);
        let module = names::module(&readable).unwrap_or(names::NO_MODULE);
        let modules = &mut self.symbols.modules;
        let module = *self.modules.entry_ref(module).or_insert_with(|| {
            modules.push(module.to_owned());
            number(modules.len())
        });
        self.symbols.functions.push(Function {
            raw,
            name: readable,
            module,
            file,
        });
        let function = number(self.symbols.functions.len());
        self.functions.insert(name.to_vec(), function);
        function
    }
}

/// The number of what was just pushed. There are fewer names than locations, and those are
/// numbered by `u32` as well.
fn number(len: usize) -> u32 {
    u32::try_from(len - 1).unwrap_or(u32::MAX)
}
