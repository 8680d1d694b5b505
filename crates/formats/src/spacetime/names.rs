//! Names of functions, from the executable that was profiled.
//!
//! A profile has addresses, and positions of OCaml code only. Addresses are those of the process:
//! where the executable was loaded is not in the file, but follows from the functions that are.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::convert::Infallible;

use addr2line::Context;
use addr2line::gimli::{DwarfSections, EndianSlice, RunTimeEndian, SectionId};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind};

use super::series::Contents;
use crate::Executable;

/// The function in which OCaml code starts.
const START: &str = "caml_start_program";

/// The size of a page: executables are loaded at multiples of it.
const PAGE: u64 = 4096;

/// Why an executable does not help.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    #[error("cannot read the executable {0}: {1}")]
    Unreadable(String, object::Error),
    #[error(
        "{0} is not the executable of this profile: its functions are at other addresses. \
         Give the one that was profiled"
    )]
    Other(String),
}

/// Names the locations of a profile.
pub(super) fn name(contents: &mut Contents, executable: &Executable) -> Result<(), Unusable> {
    name_from(contents, executable, START)
}

fn name_from(
    contents: &mut Contents,
    executable: &Executable,
    start: &str,
) -> Result<(), Unusable> {
    let path = || executable.path().display().to_string();
    let file = object::File::parse(executable.bytes())
        .map_err(|error| Unusable::Unreadable(path(), error))?;
    let symbols = Symbols::of(&file);
    let slide = slide(contents, &symbols, start).ok_or_else(|| Unusable::Other(path()))?;
    // Without debug information there are still symbols.
    let sections = DwarfSections::load(|id| Ok::<_, Infallible>(section(&file, id)));
    let Ok(sections) = sections;
    let endian = match file.endianness() {
        object::Endianness::Little => RunTimeEndian::Little,
        object::Endianness::Big => RunTimeEndian::Big,
    };
    let dwarf = sections.borrow(|section| EndianSlice::new(section, endian));
    let lines = Context::from_dwarf(dwarf).ok();
    for number in 0..contents.places.locations.len() {
        let location = &contents.places.locations[number];
        // The address after a call may be that of the next function.
        let address = location.address.wrapping_sub(slide).wrapping_sub(1);
        let is_foreign = location.is_foreign;
        if let Some(symbol) = symbols.containing(address) {
            contents.places.locations[number].symbol = Some(symbol.into());
        }
        let positions = match &lines {
            Some(lines) if is_foreign => positions(lines, address),
            _ => Vec::new(),
        };
        if !positions.is_empty() {
            contents.places.locate(number, &positions);
        }
    }
    Ok(())
}

/// A section of debug information; empty if there is none.
fn section<'a>(file: &object::File<'a>, id: SectionId) -> Cow<'a, [u8]> {
    let section = file.section_by_name(id.name());
    let data = section.and_then(|section| section.uncompressed_data().ok());
    data.unwrap_or_default()
}

/// Files and lines at an address, innermost first.
fn positions(lines: &Context<EndianSlice<'_, RunTimeEndian>>, address: u64) -> Vec<(String, i64)> {
    let mut found = Vec::new();
    let Ok(mut frames) = lines.find_frames(address).skip_all_loads() else {
        return found;
    };
    while let Ok(Some(frame)) = frames.next() {
        if let Some(location) = frame.location
            && let Some(file) = location.file
        {
            // As for OCaml code: the name without the folder that it was compiled in.
            let file = file.rsplit('/').next().unwrap_or(file);
            found.push((file.to_owned(), location.line.unwrap_or(0).into()));
        }
    }
    found
}

/// The functions of an executable.
struct Symbols {
    by_address: BTreeMap<u64, Function>,
}

struct Function {
    /// Where it ends at the latest.
    end: u64,
    has_size: bool,
    name: String,
}

impl Symbols {
    fn of(file: &object::File<'_>) -> Self {
        let mut functions: BTreeMap<u64, Function> = BTreeMap::new();
        for symbol in file.symbols() {
            // Libraries are elsewhere: no function reaches beyond the code of the executable.
            let section = symbol
                .section_index()
                .and_then(|index| file.section_by_index(index).ok())
                .filter(|section| section.kind() == SectionKind::Text);
            if let Some(section) = section
                && let Ok(name) = symbol.name()
                && !name.is_empty()
            {
                let end = match symbol.size() {
                    // OCaml's functions have no size: they reach to the next one.
                    0 => section.address().saturating_add(section.size()),
                    size => symbol.address().saturating_add(size),
                };
                let place = functions.entry(symbol.address());
                let function = Function {
                    end,
                    has_size: symbol.size() > 0,
                    name: name.to_owned(),
                };
                match place {
                    Entry::Vacant(place) => {
                        place.insert(function);
                    }
                    // Of several names the one with a size is that of the function.
                    Entry::Occupied(mut place) if function.has_size && !place.get().has_size => {
                        place.insert(function);
                    }
                    Entry::Occupied(_) => {}
                }
            }
        }
        Self {
            by_address: functions,
        }
    }

    fn address(&self, name: &str) -> Option<u64> {
        let mut functions = self.by_address.iter();
        functions.find_map(|(&address, known)| (known.name == name).then_some(address))
    }

    fn containing(&self, address: u64) -> Option<&str> {
        let (_, function) = self.by_address.range(..=address).next_back()?;
        (address < function.end).then_some(&function.name)
    }

    /// Returns true if functions of a profile are those of the executable, moved so far.
    fn fit(&self, functions: &[u64], slide: u64) -> bool {
        let is_function =
            |function: &&u64| self.by_address.contains_key(&function.wrapping_sub(slide));
        let found = functions.iter().filter(is_function).count();
        // All of them, but for code that was loaded later.
        found > 0 && found * 2 > functions.len()
    }
}

/// How far the executable was moved when it was loaded.
fn slide(contents: &Contents, symbols: &Symbols, start: &str) -> Option<u64> {
    let functions = &contents.functions;
    if functions.all.is_empty() || symbols.fit(&functions.all, 0) {
        return Some(0);
    }
    let start = symbols.address(start)?;
    let slides = functions.perhaps_start.iter();
    slides
        .map(|function| function.wrapping_sub(start))
        .filter(|slide| slide % PAGE == 0)
        .find(|&slide| symbols.fit(&functions.all, slide))
}

/// A function's name as OCaml's debug information has it: `camlStdlib__list__map_123` is
/// `Stdlib__list.map`. Names of other functions are left as they are.
pub(super) fn readable(symbol: &str) -> String {
    let Some(rest) = symbol.strip_prefix("caml") else {
        return symbol.to_owned();
    };
    let Some((module, function)) = rest.rsplit_once("__") else {
        return symbol.to_owned();
    };
    if !module.starts_with(|c: char| c.is_ascii_uppercase()) || function.is_empty() {
        return symbol.to_owned();
    }
    let function = match function.rsplit_once('_') {
        Some((name, stamp)) if stamp.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => function,
    };
    match function {
        // What runs when the module is loaded has its name.
        "entry" => module.to_owned(),
        "fun" => format!("{module}.(fun)"),
        name => format!("{module}.{}", unescaped(name)),
    }
}

/// Characters that cannot be in a symbol are written as `$` and two hexadecimal digits.
fn unescaped(name: &str) -> String {
    let mut parts = name.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..2)
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        match code {
            Some(code) => {
                text.push(code.into());
                text.push_str(&part[2..]);
            }
            None => {
                text.push('$');
                text.push_str(part);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_readable() {
        for (symbol, expected) in [
            (
                "camlStdlib__list__rev_append_121",
                "Stdlib__list.rev_append",
            ),
            ("camlMain__entry", "Main"),
            ("camlMain__fun_1201", "Main.(fun)"),
            ("camlStdlib__$40_1234", "Stdlib.@"),
            ("camlMain__f$27_12", "Main.f'"),
            ("caml_alloc_shr", "caml_alloc_shr"),
            ("caml_program", "caml_program"),
            ("main", "main"),
            ("camlMain__x$é_1", "Main.x$é"),
        ] {
            assert_eq!(readable(symbol), expected);
        }
    }

    /// The test itself is the executable; its functions are where they would be if it had been
    /// loaded elsewhere.
    #[test]
    fn functions_are_found_wherever_the_executable_was_loaded() {
        let executable = Executable::read(std::env::current_exe().unwrap()).unwrap();
        let symbols = Symbols::of(&object::File::parse(executable.bytes()).unwrap());
        let main = symbols.address("main").expect("a program has a start");
        let some: Vec<(u64, String)> = symbols
            .by_address
            .iter()
            .filter(|(_, function)| function.has_size)
            .map(|(&address, function)| (address, function.name.clone()))
            .take(50)
            .collect();
        for slide in [0, 0x5555_5555_4000] {
            let mut contents = Contents::default();
            contents.functions.all = some.iter().map(|(address, _)| address + slide).collect();
            contents.functions.perhaps_start = vec![some[3].0 + slide, main + slide];
            let location = contents.places.number(main + slide + 1, true);
            let library = contents.places.number(u64::MAX / 2 + slide, true);
            name_from(&mut contents, &executable, "main").unwrap();
            let symbol = |location: u32| {
                contents.places.locations[location as usize]
                    .symbol
                    .as_deref()
            };
            assert_eq!(symbol(location), Some("main"), "{slide:x}");
            assert_eq!(symbol(library), None, "beyond the last function");
        }
        let mut contents = Contents::default();
        contents.functions.all = some.iter().map(|(address, _)| address + 8).collect();
        let error = name_from(&mut contents, &executable, "main").unwrap_err();
        assert!(error.to_string().contains("not the executable"), "{error}");
    }
}
