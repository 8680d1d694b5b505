//! The names in a trace: frames, functions, files and modules.

use std::sync::Arc;

use hashbrown::HashMap;
use heapline_model::{Frame, LocationDefinition, LocationId};
use serde::{Deserialize, Serialize};

use super::ids::{FileId, FrameId, FunctionId, Id, IdVec, ModuleId, saturated};
use super::names;
use super::tree_builder::Name;

/// Everything that has a name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Symbols {
    frames: IdVec<FrameId, FrameInfo>,
    functions: IdVec<FunctionId, Function>,
    files: IdVec<FileId, String>,
    modules: IdVec<ModuleId, String>,
    locations: IdVec<LocationId, Location>,
    /// The frames of all locations, end to end.
    location_frames: Vec<FrameId>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Location {
    address: u64,
    start: u32,
    /// 0 until the location has been defined.
    len: u32,
    /// True if its frames are part of stacks. They are not where the program itself knows nothing of
    /// the location: it is a frame of the runtime.
    is_in_stacks: bool,
}

/// A place in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FrameInfo {
    /// Its function.
    pub function: FunctionId,
    /// Its file.
    pub file: FileId,
    /// 1 is the first line; 0 if unknown.
    pub line: u32,
    /// The first column.
    pub start_char: u16,
    /// One past the last column.
    pub end_char: u16,
}

/// A function, known by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// As the trace has it: `Stdlib__List.map`.
    pub raw: String,
    /// As people write it: `Stdlib.List.map`.
    pub name: String,
    /// Its module.
    pub module: ModuleId,
    /// The file that it was first seen in.
    pub file: FileId,
}

impl Symbols {
    /// All frames.
    #[must_use]
    pub fn frames(&self) -> &IdVec<FrameId, FrameInfo> {
        &self.frames
    }

    /// All functions.
    #[must_use]
    pub fn functions(&self) -> &IdVec<FunctionId, Function> {
        &self.functions
    }

    /// All files.
    #[must_use]
    pub fn files(&self) -> &IdVec<FileId, String> {
        &self.files
    }

    /// All modules.
    #[must_use]
    pub fn modules(&self) -> &IdVec<ModuleId, String> {
        &self.modules
    }

    /// The function of a frame.
    #[must_use]
    pub fn function(&self, frame: FrameId) -> &Function {
        &self.functions[self.frames[frame].function]
    }

    /// The name of a file; `None` if the source does not tell it.
    #[must_use]
    pub fn file_name(&self, file: FileId) -> Option<&str> {
        let name = self.files[file].as_str();
        let is_unknown = name.is_empty()
            || name == names::UNKNOWN_FILE
            || name.as_bytes() == Frame::UNKNOWN.file;
        (!is_unknown).then_some(name)
    }

    /// The name of a module; `None` for that of functions whose names do not tell.
    #[must_use]
    pub fn module_name(&self, module: ModuleId) -> Option<&str> {
        let name = self.modules[module].as_str();
        (name != names::NO_MODULE).then_some(name)
    }

    /// Where a frame is: `list.ml:92:32-39`, or what is known of it. Programs that are not OCaml's
    /// know where something begins, as `main.rs:92:33`, but not where it ends.
    #[must_use]
    pub fn place(&self, frame: FrameId) -> String {
        let info = self.frames[frame];
        let file = &self.files[info.file];
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
    pub fn location(&self, location: LocationId) -> &[FrameId] {
        let Location { start, len, .. } = self.locations[location];
        &self.location_frames[start as usize..(start + len) as usize]
    }

    /// The innermost frame of a location.
    #[must_use]
    pub fn innermost(&self, location: LocationId) -> FrameId {
        // Each location that was met has a frame, be it a made-up one.
        let innermost = self.location(location).last();
        innermost.copied().unwrap_or(FrameId::from_index(0))
    }

    /// The address of a location in the program.
    #[must_use]
    pub fn address(&self, location: LocationId) -> u64 {
        self.locations[location].address
    }

    /// Returns true if all numbers are those of entries that there are. Those of a file may be any.
    pub(crate) fn is_sound(&self) -> bool {
        let has_frame = |frame: FrameId| frame.index() < self.frames.len();
        let is_location = |location: &Location| {
            let end = u64::from(location.start) + u64::from(location.len);
            end <= self.location_frames.len() as u64
        };
        let is_frame = |frame: &FrameInfo| {
            frame.function.index() < self.functions.len() && frame.file.index() < self.files.len()
        };
        let is_function = |function: &Function| {
            function.module.index() < self.modules.len() && function.file.index() < self.files.len()
        };
        // The place of a location without frames is the first frame.
        (self.locations.is_empty() || !self.frames.is_empty())
            && self.frames.iter().all(is_frame)
            && self.functions.iter().all(is_function)
            && self.locations.iter().all(is_location)
            && self.location_frames.iter().copied().all(has_frame)
    }

    /// Returns true if there is a location with an id.
    pub(crate) fn has_location(&self, location: LocationId) -> bool {
        location.index() < self.locations.len()
    }

    /// The locations that are part of stacks, with their frames.
    pub(crate) fn callable_locations(&self) -> impl Iterator<Item = (LocationId, &[FrameId])> {
        self.locations.enumerate().map(|(id, location)| {
            let frames = if location.is_in_stacks {
                self.location(id)
            } else {
                &[]
            };
            (id, frames)
        })
    }
}

/// Fills [`Symbols`] as locations are defined.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable {
    /// Copied when they change after a snapshot.
    symbols: Arc<Symbols>,
    frames: HashMap<FrameInfo, FrameId>,
    functions: HashMap<Vec<u8>, FunctionId>,
    files: HashMap<Vec<u8>, FileId>,
    modules: HashMap<String, ModuleId>,
    /// Locations that the source had not named when it used them, and the frames that stand in for
    /// theirs.
    unnamed: HashMap<LocationId, FrameId>,
}

impl SymbolTable {
    /// Learns what is at a location. Returns its frames in stacks, outermost first; `None` if those
    /// are known already.
    pub(crate) fn define(&mut self, definition: &LocationDefinition<'_>) -> Option<Vec<Name>> {
        let id = definition.id;
        if let Some(placeholder) = self.unnamed.remove(&id) {
            // Stacks have the placeholder already: it gets the name.
            if let Some(frame) = definition.frames().last() {
                let real = self.frame(&frame);
                let symbols = Arc::make_mut(&mut self.symbols);
                symbols.frames[placeholder] = symbols.frames[real];
            }
            return None;
        }
        let mut frames: Vec<FrameId> = definition
            .frames()
            .map(|frame| self.frame(&frame))
            .collect();
        let is_in_stacks = !frames.is_empty() || !definition.is_named;
        if frames.is_empty() {
            let frame = self.nameless(definition.address);
            if !definition.is_named {
                self.unnamed.insert(id, frame);
            }
            frames.push(frame);
        }
        let symbols = Arc::make_mut(&mut self.symbols);
        let location = Location {
            address: definition.address,
            start: saturated(symbols.location_frames.len()),
            len: saturated(frames.len()),
            is_in_stacks,
        };
        *symbols.locations.get_or_fill(id, Location::default()) = location;
        symbols.location_frames.extend_from_slice(&frames);
        if !is_in_stacks {
            return Some(Vec::new());
        }
        let name = |frame: FrameId| Name {
            frame,
            function: self.symbols.frames[frame].function,
        };
        Some(frames.into_iter().map(name).collect())
    }

    pub(crate) fn symbols(&self) -> &Arc<Symbols> {
        &self.symbols
    }

    fn frame(&mut self, frame: &Frame<'_>) -> FrameId {
        let file = self.file(frame.file);
        let info = FrameInfo {
            function: self.function(frame.name, file),
            file,
            line: frame.line,
            start_char: frame.start_char,
            end_char: frame.end_char,
        };
        let frames = &mut Arc::make_mut(&mut self.symbols).frames;
        let frame = self.frames.entry(info);
        *frame.or_insert_with(|| frames.push(info))
    }

    /// A frame of which the program itself knows only the address.
    fn nameless(&mut self, code: u64) -> FrameId {
        let file = self.file(names::UNKNOWN_FILE.as_bytes());
        let function = self.function(format!("{code:#x}").as_bytes(), file);
        Arc::make_mut(&mut self.symbols).frames.push(FrameInfo {
            function,
            file,
            line: 0,
            start_char: 0,
            end_char: 0,
        })
    }

    fn file(&mut self, name: &[u8]) -> FileId {
        let files = &mut Arc::make_mut(&mut self.symbols).files;
        let file = self.files.entry(name.to_vec());
        *file.or_insert_with(|| files.push(String::from_utf8_lossy(name).into_owned()))
    }

    fn function(&mut self, name: &[u8], file: FileId) -> FunctionId {
        if let Some(&function) = self.functions.get(name) {
            return function;
        }
        let raw = String::from_utf8_lossy(name).into_owned();
        let readable = names::readable(&raw);
        let module = names::module(&readable).unwrap_or(names::NO_MODULE);
        let symbols = Arc::make_mut(&mut self.symbols);
        let modules = &mut symbols.modules;
        let module = *self
            .modules
            .entry_ref(module)
            .or_insert_with(|| modules.push(module.to_owned()));
        let function = symbols.functions.push(Function {
            raw,
            name: readable,
            module,
            file,
        });
        self.functions.insert(name.to_vec(), function);
        function
    }
}
