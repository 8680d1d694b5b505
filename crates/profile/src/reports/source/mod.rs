//! Memory by line of a source file.

mod lines;
mod resolve;

use clap::Args;
use serde::Serialize;

use self::lines::{FileLines, shown_lines};
use self::resolve::{Place, resolve};
use super::Subject;
use super::hotspots::Totals;
use crate::groups::{GroupBy, Groups, Label};
use crate::options::{self, Look, OptionError};
use crate::scope::Scope;

/// The longest line that is shown whole, in characters.
const LONGEST_LINE: usize = 2000;

/// Options of [`source`].
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SourceOptions {
    /// Show this function, file or line of a file: Cache.add, cache.ml, cache.ml:42
    ///
    /// The last parts of a name are enough if no other name ends with them.
    #[arg(long, value_name = "NAME", default_value = "")]
    pub name: String,

    /// Show all lines of the file, not only those near memory
    #[arg(long)]
    pub all: bool,

    /// Show this many lines before and after each line with memory
    #[arg(long, default_value_t = 3, value_name = "LINES", value_parser = options::number(0, 1000))]
    pub context: usize,

    /// Options for the display of functions
    #[command(flatten)]
    #[serde(flatten)]
    pub look: Look,
}

impl Default for SourceOptions {
    fn default() -> Self {
        options::defaults()
    }
}

impl SourceOptions {
    /// Fails without a name.
    pub fn validate(&self) -> Result<(), OptionError> {
        if self.name.is_empty() {
            let message = "is missing; give a function, a file, or FILE:LINE";
            return Err(OptionError::new("name", "", message));
        }
        Ok(())
    }
}

/// The file of a trace whose text is wanted.
#[derive(Clone, Copy, Debug)]
pub struct WantedSource<'a> {
    /// The file as the trace names it.
    pub file: &'a str,
    /// True if only functions of the standard library are in it.
    pub is_standard: bool,
}

/// A source file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The file that was read.
    pub path: String,
    /// Its text.
    pub text: String,
    /// The time of its last change, in microseconds since the Unix epoch.
    pub modified: Option<u64>,
}

/// Finds the text of a file, or the reason why there is none.
pub type SourceLookup<'a> = &'a dyn Fn(WantedSource<'_>) -> Result<SourceFile, String>;

/// A name that is not that of one function or file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// Nothing has the name.
    #[error("the trace has no {0}")]
    Missing(String),
    /// Several functions or files have the name.
    #[error("{count} {kind} end with `{name}`: {}; give one of them", list(.first, *.count))]
    Ambiguous {
        /// The name.
        name: String,
        /// The candidates: functions or files.
        kind: &'static str,
        /// The first of them.
        first: Vec<String>,
        /// Their number.
        count: usize,
    },
}

fn list(first: &[String], count: usize) -> String {
    let more = match count - first.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", first.join(", "))
}

/// The lines of a source file and the memory that they allocate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Source {
    /// The trace and estimator of the report.
    pub subject: Subject,
    /// Seconds from the start to the peak of the whole program.
    pub peak_time: f64,
    /// The file as the trace names it.
    pub file: String,
    /// The function of the request; null if it was a file.
    pub function: Option<Label>,
    /// The lines of that function that are in stacks, or the line of the request.
    pub focus: Vec<u32>,
    /// Other files with functions of the same name.
    pub other_files: Vec<String>,
    /// The file that was read; null if there is none.
    pub path: Option<String>,
    /// The reason why the text is not known; null if it is.
    pub problem: Option<String>,
    /// The number of lines of the file; null if the text is not known.
    pub line_count: Option<u32>,
    /// True if the file was changed after the recording started.
    pub is_newer: bool,
    /// All selected blocks.
    pub total: Totals,
    /// Memory of the whole file.
    pub in_file: LineMemory,
    /// Memory of functions in the file whose line is not known; null if there is none.
    pub without_line: Option<LineMemory>,
    /// The lines that are shown, in order.
    pub lines: Vec<SourceLine>,
    /// Lines with memory that are not shown.
    pub hidden_lines: usize,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SourceLine {
    /// Its number; 1 is the first.
    pub line: u32,
    /// Its text, of a very long line the beginning; null if it is not known.
    pub text: Option<String>,
    /// Its memory; null if it has none.
    pub memory: Option<LineMemory>,
}

/// The memory of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct LineMemory {
    /// Memory allocated by the line itself.
    pub own: Totals,
    /// Memory allocated by the line and by the functions that it calls.
    pub inclusive: Totals,
    /// True if it is within the sampling error.
    pub is_noise: bool,
}

/// The lines of the file of a function, or of a file.
pub fn source(
    scope: &Scope<'_>,
    options: &SourceOptions,
    lookup: SourceLookup<'_>,
) -> Result<Source, SourceError> {
    let profile = scope.profile();
    let symbols = profile.symbols();
    let place = resolve(profile, &options.name)?;
    let groups = Groups::shared(profile, &options.look.view(GroupBy::Site));
    let peak = profile.peak(scope.estimator());
    let memory = FileLines::new(scope, &groups, place.file, peak.moment);
    let file = &symbols.files()[place.file];
    let text = lookup(WantedSource {
        file,
        is_standard: place.is_standard(profile),
    });
    let (path, problem, is_newer, texts) = match text {
        Err(problem) => (None, Some(problem), false, None),
        Ok(found) => {
            let start = profile.header().start_time;
            let is_newer = start > 0 && found.modified.is_some_and(|time| time > start);
            let texts = found.text.lines().map(shortened).collect::<Vec<_>>();
            (Some(found.path), None, is_newer, Some(texts))
        }
    };
    let line_count = texts.as_ref().map(|texts| number(texts.len()));
    let wanted = wanted_lines(&place, &memory);
    let shown = shown_lines(&wanted, &memory, line_count, options);
    let lines: Vec<SourceLine> = shown
        .iter()
        .map(|&line| SourceLine {
            line,
            text: texts
                .as_ref()
                .and_then(|texts| texts.get(line.checked_sub(1)? as usize).cloned()),
            memory: memory.of(line),
        })
        .collect();
    let with_memory = lines.iter().filter(|line| line.memory.is_some()).count();
    Ok(Source {
        subject: Subject::with_look(scope, &options.look),
        peak_time: peak.time,
        file: file.clone(),
        function: place.label(profile),
        focus: place.lines,
        other_files: place
            .other_files
            .iter()
            .map(|&file| symbols.files()[file].clone())
            .collect(),
        path,
        problem,
        line_count,
        is_newer,
        total: memory.total,
        in_file: memory.in_file,
        without_line: memory.of(0),
        hidden_lines: memory.lines().count() - with_memory,
        lines,
    })
}

/// The lines that the request is about.
fn wanted_lines(place: &Place, memory: &FileLines) -> Vec<u32> {
    if place.lines.is_empty() {
        return memory.lines().collect();
    }
    let lines = place.lines.iter().copied();
    let with_memory: Vec<u32> = lines.filter(|&line| memory.of(line).is_some()).collect();
    if place.function.is_some() && !with_memory.is_empty() {
        with_memory
    } else {
        place.lines.clone()
    }
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
