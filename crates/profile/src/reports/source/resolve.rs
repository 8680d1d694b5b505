//! Finds the function or file that a name stands for.

use std::collections::BTreeSet;

use super::SourceError;
use crate::crates::Crates;
use crate::groups::Label;
use crate::query::{Pattern, Query};
use crate::store::{FileId, FunctionId, IdVec, Profile};

/// Candidates that an error names.
const SHOWN: usize = 8;

/// A place in the source.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) file: FileId,
    /// The lines of the function, or the one that was asked for; empty for a whole file.
    pub(super) lines: Vec<u32>,
    pub(super) function: Option<FunctionId>,
    /// Other files with functions of the same name.
    pub(super) other_files: Vec<FileId>,
}

impl Place {
    /// The name of the function.
    pub(super) fn label(&self, profile: &Profile) -> Option<Label> {
        self.function
            .map(|function| Label::of_function(profile, function))
    }

    /// Returns true if only functions of the standard library are in the file.
    pub(super) fn is_standard(&self, profile: &Profile) -> bool {
        let symbols = profile.symbols();
        let is_standard = Crates::new(symbols).in_standard_library();
        let frames = symbols.frames().enumerate();
        let mut in_file = frames.filter(|(_, frame)| frame.file == self.file);
        in_file.all(|(id, _)| is_standard[id])
    }
}

/// Finds a file or a function by its whole name, or else by the last parts of it.
pub(super) fn resolve(profile: &Profile, name: &str) -> Result<Place, SourceError> {
    let symbols = profile.symbols();
    let functions = || symbols.functions().enumerate();
    if let Some(place) = file(profile, name, |file, name| file == name)? {
        return Ok(place);
    }
    let exact = functions().find(|(_, function)| function.name == name || function.raw == name);
    if let Some((function, _)) = exact {
        return Ok(of_function(profile, function));
    }
    if let Some(place) = file(profile, name, ends_with_path)? {
        return Ok(place);
    }
    let found: Vec<FunctionId> = functions()
        .filter(|(_, function)| ends_with_name(&function.name, name))
        .map(|(function, _)| function)
        .collect();
    match found[..] {
        [] => Err(missing(profile, name)),
        [function] => Ok(of_function(profile, function)),
        _ => {
            let described = found.iter().map(|&function| {
                let function = &symbols.functions()[function];
                format!("{} ({})", function.name, symbols.files()[function.file])
            });
            Err(ambiguous(name, "functions", described.collect()))
        }
    }
}

/// The file of a name, which may end with `:LINE` or `:LINE:COLUMNS`.
fn file(
    profile: &Profile,
    name: &str,
    matches: impl Fn(&str, &str) -> bool,
) -> Result<Option<Place>, SourceError> {
    let files = profile.symbols().files();
    let mut rest = name;
    let mut line = None;
    for _ in 0..3 {
        let found: Vec<FileId> = files
            .enumerate()
            .filter(|(_, file)| matches(file, rest))
            .map(|(id, _)| id)
            .collect();
        if let [file] = found[..] {
            return Ok(Some(Place {
                file,
                lines: line.into_iter().collect(),
                function: None,
                other_files: Vec::new(),
            }));
        }
        if !found.is_empty() {
            let names = found.iter().map(|&file| files[file].clone());
            return Err(ambiguous(rest, "files", names.collect()));
        }
        let Some((start, end)) = rest.rsplit_once(':') else {
            break;
        };
        rest = start;
        // Columns, as in `3-17`, are followed by the line.
        line = end.parse().ok();
    }
    Ok(None)
}

/// The file with most of the frames of a function.
fn of_function(profile: &Profile, id: FunctionId) -> Place {
    let symbols = profile.symbols();
    let function = &symbols.functions()[id];
    let frames = || {
        let frames = symbols.frames().iter();
        frames.filter(|frame| frame.function == id)
    };
    let mut count: IdVec<FileId, usize> = IdVec::like(symbols.files(), 0);
    for frame in frames() {
        count[frame.file] += 1;
    }
    let mut file = function.file;
    for (other, &n) in count.enumerate() {
        if n > count[file] {
            file = other;
        }
    }
    let in_file = frames().filter(|frame| frame.file == file && frame.line > 0);
    let lines: BTreeSet<u32> = in_file.map(|frame| frame.line).collect();
    Place {
        file,
        lines: lines.into_iter().collect(),
        function: Some(id),
        other_files: count
            .enumerate()
            .filter(|&(other, &n)| n > 0 && other != file)
            .map(|(other, _)| other)
            .collect(),
    }
}

/// Returns true if the last parts of a path are the given ones.
fn ends_with_path(path: &str, end: &str) -> bool {
    path.strip_suffix(end)
        .is_some_and(|start| !end.is_empty() && start.ends_with(['/', '\\']))
}

/// Returns true if the last parts of a qualified name are the given ones.
fn ends_with_name(name: &str, end: &str) -> bool {
    name.strip_suffix(end)
        .is_some_and(|start| !end.is_empty() && start.ends_with(['.', ':']))
}

fn ambiguous(name: &str, kind: &'static str, mut candidates: Vec<String>) -> SourceError {
    let count = candidates.len();
    candidates.sort();
    candidates.truncate(SHOWN);
    SourceError::Ambiguous {
        name: name.to_owned(),
        kind,
        first: candidates,
        count,
    }
}

/// The error of a name that nothing has, with a similar one if there is any.
fn missing(profile: &Profile, name: &str) -> SourceError {
    let is_path = name.contains('/')
        || profile.symbols().files().iter().any(|file| {
            let extension = file.rsplit_once('.').map(|(_, extension)| extension);
            extension.is_some_and(|extension| name.ends_with(&format!(".{extension}")))
        });
    let kind = if is_path { "file " } else { "" };
    let text = Pattern::literal(name);
    let query = Query::parse(&format!("inside {kind}{}", text.text()));
    let unmatched = query.ok().and_then(|query| query.unmatched(profile).pop());
    SourceError::Missing(unmatched.unwrap_or_else(|| format!("function or file {}", text.text())))
}
