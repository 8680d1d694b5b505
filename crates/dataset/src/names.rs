//! The places of a profile by their content hashes.

use hashbrown::HashMap;
use heapline_export::parquet::Dictionary;
use heapline_profile::{FrameId, Profile, Symbols};

use crate::hash;

/// The function of a stack without frames.
const UNKNOWN: &str = "(unknown)";

/// A place in the source, with numbers of names in the dictionaries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) id: i64,
    pub(crate) function: Option<i32>,
    pub(crate) file: Option<i32>,
    pub(crate) line: Option<i32>,
    pub(crate) module: Option<i32>,
}

/// All places of a profile. Frames that differ in columns only are the same place.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) functions: Dictionary,
    pub(crate) files: Dictionary,
    pub(crate) modules: Dictionary,
    /// Distinct places; the last one is of stacks without frames.
    pub(crate) places: Vec<Place>,
    /// The place of each frame.
    of_frame: Vec<usize>,
}

impl Names {
    pub(crate) fn new(profile: &Profile) -> Self {
        let symbols = profile.symbols();
        let functions = symbols.functions().iter();
        let functions = functions.map(|function| function.name.as_str());
        let mut numbers = HashMap::new();
        let mut places = Vec::new();
        let frames = symbols.frames().ids().map(|frame| {
            let place = place(symbols, frame);
            *numbers.entry(place.id).or_insert_with(|| {
                places.push(place);
                places.len() - 1
            })
        });
        let of_frame = frames.collect();
        places.push(Place {
            id: hash::frame(UNKNOWN, None, 0),
            function: number(symbols.functions().len()),
            file: None,
            line: None,
            module: None,
        });
        Self {
            functions: Dictionary::new(functions.chain([UNKNOWN])),
            files: Dictionary::new(symbols.files().iter().map(String::as_str)),
            modules: Dictionary::new(symbols.modules().iter().map(String::as_str)),
            places,
            of_frame,
        }
    }

    /// The places of a stack, innermost first: at least one.
    pub(crate) fn of_stack(&self, frames: &[FrameId]) -> Vec<usize> {
        if frames.is_empty() {
            return vec![self.places.len() - 1];
        }
        let places = frames.iter().map(|frame| self.of_frame[frame.index()]);
        places.collect()
    }
}

fn place(symbols: &Symbols, frame: FrameId) -> Place {
    let info = symbols.frames()[frame];
    let function = &symbols.functions()[info.function];
    let file = symbols.file_name(info.file);
    let module = symbols.module_name(function.module);
    Place {
        id: hash::frame(&function.name, file, info.line),
        function: number(info.function.index()),
        file: file.and_then(|_| number(info.file.index())),
        line: number(info.line).filter(|line| *line > 0),
        module: module.and_then(|_| number(function.module.index())),
    }
}

/// A number as columns have it. There are fewer names than bytes of them.
fn number(n: impl TryInto<i32>) -> Option<i32> {
    n.try_into().ok()
}
