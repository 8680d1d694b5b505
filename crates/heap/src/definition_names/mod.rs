//! Names of toplevel definitions, from what the compiler and the programmer left behind.
//!
//! A snapshot knows the line of each toplevel definition from the program itself. The name is in the `.cmt` file of
//! the compiler, or in the source.

mod cmt;
mod source;

pub use cmt::CmtError;

/// Longer names are cut.
const MAX_NAME: usize = 200;

/// A file defines at most so many names; further ones are not known.
const MAX_BINDINGS: usize = 1 << 16;

/// The name of a toplevel definition, and its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Its name, such as `table` or `Cache.table` in a module of the file; `(a, b)` if a pattern has several; empty if
    /// it has none, as `let () = ...`.
    pub name: String,
    /// The base name of the file of its lines, if it is not that of the text.
    file: Option<String>,
    /// Its first line.
    pub first_line: u64,
    /// Its last line.
    pub last_line: u64,
    /// The number of modules around it.
    depth: usize,
}

/// The toplevel definitions of a file.
///
/// ```
/// use heapline_heap::Bindings;
///
/// let source = "let size = 10\n\nlet table =\n  let n = size in\n  Hashtbl.create n\n";
/// let bindings = Bindings::of_source(source);
/// assert_eq!(bindings.at("cache.ml", 5).unwrap().name, "table");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings {
    /// The name of the compilation unit, if it is known.
    unit: Option<String>,
    bindings: Vec<Binding>,
}

impl Bindings {
    /// The definitions in a `.cmt` file of OCaml 4.11 to 5.3. Nothing in it is trusted.
    pub fn of_cmt(file: &[u8]) -> Result<Self, CmtError> {
        cmt::bindings(file)
    }

    /// The definitions in an OCaml source file, by indentation.
    #[must_use]
    pub fn of_source(text: &str) -> Self {
        Self {
            unit: None,
            bindings: source::bindings(text),
        }
    }

    /// The name of the compilation unit, such as `Dune__exe__Main`; a source file does not have it.
    #[must_use]
    pub fn unit(&self) -> Option<&str> {
        self.unit.as_deref()
    }

    /// The innermost definition at a line of a file; `None` if there is none, or several are.
    #[must_use]
    pub fn at(&self, file: &str, line: u64) -> Option<&Binding> {
        let name = base_name(file);
        let is_there = |binding: &&Binding| {
            (binding.first_line..=binding.last_line).contains(&line)
                && binding.file.as_deref().is_none_or(|file| file == name)
        };
        let mut found = None;
        let mut is_ambiguous = false;
        for binding in self.bindings.iter().filter(is_there) {
            let best = found.map(|found: &Binding| found.depth);
            is_ambiguous =
                best == Some(binding.depth) || is_ambiguous && best > Some(binding.depth);
            if best < Some(binding.depth) {
                found = Some(binding);
            }
        }
        found.filter(|_| !is_ambiguous)
    }
}

/// The name of a file without its directory.
fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A name of one definition, given all variables of its pattern.
fn joined(names: &[&str]) -> String {
    let mut name = match names {
        [] => String::new(),
        [name] => (*name).to_owned(),
        names => format!("({})", names.join(", ")),
    };
    while name.len() > MAX_NAME {
        name.pop();
    }
    name
}

/// A name within modules.
fn qualified(modules: &str, name: &str) -> String {
    match (modules, name) {
        (_, "") | ("", _) => name.to_owned(),
        _ => format!("{modules}.{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str, lines: std::ops::RangeInclusive<u64>) -> Vec<String> {
        let bindings = Bindings::of_source(source);
        let name = |line| bindings.at("a.ml", line).map_or("-", |found| &found.name);
        lines.map(|line| name(line).to_owned()).collect()
    }

    #[test]
    fn the_innermost_definition_counts() {
        let source = "module A = struct\n  let x = f ()\n  let y =\n    g ()\nend\nlet z = 1\n";
        assert_eq!(
            names(source, 1..=7),
            ["A", "A.x", "A.y", "A.y", "A", "z", "-"]
        );
    }

    #[test]
    fn definitions_on_one_line_have_no_name() {
        let binding = |name: &str, depth| Binding {
            name: name.to_owned(),
            file: None,
            first_line: 1,
            last_line: 1,
            depth,
        };
        let at = |bindings: &[Binding]| {
            let bindings = Bindings {
                unit: None,
                bindings: bindings.to_vec(),
            };
            bindings.at("a.ml", 1).map(|found| found.name.clone())
        };
        assert_eq!(at(&[binding("a", 0), binding("b", 0)]), None);
        let inner = [binding("A", 0), binding("A.a", 1), binding("A.b", 1)];
        assert_eq!(at(&inner), None);
        let one = [binding("A", 0), binding("B", 0), binding("B.b", 1)];
        assert_eq!(at(&one), Some("B.b".to_owned()));
    }

    #[test]
    fn lines_of_other_files_do_not_count() {
        let binding = Binding {
            name: "token".to_owned(),
            file: Some("parser.mly".to_owned()),
            first_line: 1,
            last_line: 2,
            depth: 0,
        };
        let bindings = Bindings {
            unit: None,
            bindings: vec![binding],
        };
        assert!(bindings.at("src/parser.mly", 1).is_some());
        assert!(bindings.at("src/parser.ml", 1).is_none());
    }
}
