//! Names of toplevel definitions, from `.cmt` files and sources near the program.
//!
//! A name is a convenience: whatever goes wrong here, the snapshot is complete without it.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use heapline_heap::Bindings;
use heapline_heapfile::Definition;
use rustix::fs::{Mode, OFlags};

/// Directories above that of the executable in which files are looked for, such as dune's `_build/default`.
const ANCESTORS: usize = 6;

/// Larger files are not read.
const MAX_FILE: u64 = 32 << 20;

/// Bytes of all files that are read.
const MAX_BYTES: u64 = 256 << 20;

/// Entries of a directory that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// The directory that dune states in place of the one in which it builds.
const DUNE_ROOT: &str = "/workspace_root";

/// The program that a snapshot is of.
pub(super) struct Program<'a> {
    /// The root directory of the program, as seen from here.
    pub(super) root: &'a Path,
    pub(super) executable: &'a Path,
    /// The directory in which the program worked.
    pub(super) directory: &'a Path,
}

/// A module of the program.
pub(super) struct Unit {
    /// The address of its block.
    pub(super) module: u64,
    /// Its name, such as `Dune__exe__Main`.
    pub(super) name: String,
}

/// The name of a definition.
pub(super) struct Name {
    pub(super) name: String,
    /// The line where it begins.
    pub(super) line: u64,
}

/// Names by module and field.
pub(super) type Names = HashMap<(u64, u64), Name>;

/// Finds the names of definitions.
pub(super) fn names(program: &Program<'_>, definitions: &[Definition], units: &[Unit]) -> Names {
    let mut names = HashMap::new();
    // Files that are newer are not those that the program was built of.
    let Some(built) = modified(&below(program.root, program.executable)) else {
        return names;
    };
    let mut search = Search {
        built,
        left: MAX_BYTES,
        objects: HashMap::new(),
    };
    let units: HashMap<u64, &str> = units
        .iter()
        .map(|unit| (unit.module, unit.name.as_str()))
        .collect();
    for group in
        definitions.chunk_by(|one, other| (one.module, &one.file) == (other.module, &other.file))
    {
        let Some(Definition { module, file, .. }) = group.first() else {
            continue;
        };
        let unit = units.get(module).copied();
        let Some(bindings) = search.bindings(&places(program, file), file, unit, group) else {
            continue;
        };
        for definition in group {
            let binding = bindings.at(file, definition.line);
            if let Some(binding) = binding.filter(|binding| !binding.name.is_empty()) {
                let name = Name {
                    name: binding.name.clone(),
                    line: binding.first_line,
                };
                names.insert((definition.module, definition.field), name);
            }
        }
    }
    names
}

/// A path of the program, as seen from here.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// The places in which a source file may be, as it is named in debug information.
fn places(program: &Program<'_>, file: &str) -> Vec<PathBuf> {
    let file = Path::new(file);
    let relative = match file.strip_prefix(DUNE_ROOT) {
        Ok(relative) => relative,
        Err(_) if file.is_absolute() => return vec![below(program.root, file)],
        Err(_) => file,
    };
    let above = program.executable.ancestors().skip(1).take(1 + ANCESTORS);
    let mut places: Vec<PathBuf> = Vec::new();
    for directory in std::iter::once(program.directory).chain(above) {
        let place = below(program.root, &directory.join(relative));
        if directory.is_absolute() && !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

struct Search {
    /// When the executable was built.
    built: SystemTime,
    /// Bytes that may still be read.
    left: u64,
    /// Directories with dune's object files, by the directory that they are in.
    objects: HashMap<PathBuf, Vec<PathBuf>>,
}

impl Search {
    /// The definitions of a file, from the first `.cmt` file or else source that fits.
    fn bindings(
        &mut self,
        places: &[PathBuf],
        file: &str,
        unit: Option<&str>,
        definitions: &[Definition],
    ) -> Option<Bindings> {
        for place in places {
            for cmt in self.cmt_files(place, unit) {
                let content = self.read(&cmt);
                let bindings = content.and_then(|content| Bindings::of_cmt(&content).ok());
                if let Some(bindings) = bindings.filter(|found| is_of_unit(found, unit)) {
                    return Some(bindings);
                }
            }
        }
        for place in places {
            // The lines of others are not those of OCaml code alone.
            if place.extension().is_none_or(|extension| extension != "ml") {
                continue;
            }
            let content = self.read(place);
            let Some(text) = content.and_then(|content| String::from_utf8(content).ok()) else {
                continue;
            };
            let bindings = Bindings::of_source(&text);
            // Another file with this name is unlikely to have definitions at all these lines.
            if definitions
                .iter()
                .all(|definition| bindings.at(file, definition.line).is_some())
            {
                return Some(bindings);
            }
        }
        None
    }

    /// The `.cmt` files that a source file may have.
    fn cmt_files(&mut self, source: &Path, unit: Option<&str>) -> Vec<PathBuf> {
        let (Some(directory), Some(stem)) = (source.parent(), source.file_stem()) else {
            return Vec::new();
        };
        let mut names = Vec::new();
        // Dune's modules have the name of their library before their own.
        for name in [unit, stem.to_str()].into_iter().flatten() {
            let mut letters = name.chars();
            let first = letters.next().map(|first| first.to_ascii_lowercase());
            let name = first.into_iter().chain(letters).collect::<String>() + ".cmt";
            if !name.contains('/') && !names.contains(&name) {
                names.push(name);
            }
        }
        let objects = self
            .objects
            .entry(directory.to_owned())
            .or_insert_with(|| object_directories(directory));
        let directories = std::iter::once(directory).chain(objects.iter().map(PathBuf::as_path));
        directories
            .flat_map(|directory| names.iter().map(|name| directory.join(name)))
            .collect()
    }

    /// The content of a file that is not newer than the program.
    fn read(&mut self, path: &Path) -> Option<Vec<u8>> {
        // Does not wait for whoever writes to a pipe.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
        let metadata = file.metadata().ok()?;
        let is_older = metadata.modified().is_ok_and(|time| time <= self.built);
        let len = metadata.len();
        if !metadata.is_file() || !is_older || len > MAX_FILE.min(self.left) {
            return None;
        }
        self.left -= len;
        let mut content = Vec::new();
        file.take(len).read_to_end(&mut content).ok()?;
        Some(content)
    }
}

/// Returns true if a `.cmt` file is of a unit; in a pack, the name of the pack comes before it.
fn is_of_unit(bindings: &Bindings, unit: Option<&str>) -> bool {
    let (Some(found), Some(unit)) = (bindings.unit(), unit) else {
        return false;
    };
    let before = unit.strip_suffix(found);
    before.is_some_and(|before| before.is_empty() || before.ends_with("__"))
}

/// Dune's directories of bytecode objects and `.cmt` files, in a directory: `.NAME.objs/byte` and `.NAME.eobjs/byte`.
fn object_directories(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let names = entries.take(MAX_ENTRIES).filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let is_objects =
            name.starts_with('.') && matches!(name.rsplit_once('.'), Some((_, "objs" | "eobjs")));
        is_objects.then_some(name)
    });
    let mut found: Vec<PathBuf> = names
        .map(|name| directory.join(name).join("byte"))
        .collect();
    found.sort_unstable();
    found
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}
