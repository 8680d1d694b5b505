//! `source`: the lines of a file with their memory.

use heapline_profile::Estimate;
use heapline_profile::reports::{LineMemory, Source, SourceLine};

use crate::own_code::own_code;
use crate::page::Page;
use crate::sanitize::sanitize;
use crate::screen::Context;
use crate::styled::{Line, Style, Text};
use crate::table::{Align, Table};
use crate::units::{bytes, bytes_or_dash, estimated_bytes, percent_number, plural, seconds};
use crate::width::start;
use crate::{NO_SAMPLES, SNAPSHOTS_ONLY};

/// Columns between two tab stops.
const TAB: usize = 4;

/// Columns between the figures and the text of a line.
const GAP: usize = 2;

/// Stands for lines that are not shown.
const OMITTED: &str = "...";

/// Renders the lines of a file.
#[must_use]
pub fn source(report: &Source, context: &Context<'_>) -> Text {
    let mut page = Page::new(context.screen);
    let file = sanitize(&report.file);
    page.title(&match &report.function {
        Some(function) => format!("{} in {file}", sanitize(&function.name)),
        None => file.into_owned(),
    });
    if report.subject.sampled_blocks == 0 {
        page.note(NO_SAMPLES);
    } else {
        page.line(&Line::plain(&figures(report)));
    }
    if let Some(path) = report.path.as_ref().filter(|path| **path != report.file) {
        page.note(&format!("Read from {}.", sanitize(path)));
    }
    if let Some(problem) = &report.problem {
        let style = Style::Warning;
        page.line(&Line::new(
            &format!("No text: {}.", sanitize(problem)),
            style,
        ));
    }
    if !report.lines.is_empty() {
        page.gap();
        page.lines(lines(report, context));
    }
    notes(&mut page, report);
    page.finish()
}

/// The memory of the whole file in words.
fn figures(report: &Source) -> String {
    let inclusive = report.in_file.inclusive.allocated.bytes;
    format!(
        "{} allocated in this file, {} with callees ({} % of {}).",
        estimated_bytes(report.in_file.own.allocated.bytes),
        estimated_bytes(inclusive),
        percent_number(inclusive.value, report.total.allocated.bytes.value),
        bytes(report.total.allocated.bytes.value),
    )
}

fn notes(page: &mut Page, report: &Source) {
    page.note(&format!("The peak is at {}.", seconds(report.peak_time)));
    own_code(page, &report.subject);
    if let Some(memory) = &report.without_line {
        let bytes = estimated_bytes(memory.inclusive.allocated.bytes);
        page.note(&format!("{bytes} of this file without a known line."));
    }
    if report.hidden_lines > 0 {
        let lines = plural(report.hidden_lines as u64, "more line");
        page.note(&format!("{lines} with memory in this file (see --all)."));
    }
    if !report.other_files.is_empty() {
        let files = sanitize(&report.other_files.join(", ")).into_owned();
        page.note(&format!("Functions of this name are also in {files}."));
    }
    if !report.subject.tells.sizes {
        page.note(SNAPSHOTS_ONLY);
    }
    if !report.subject.is_exact {
        page.note(
            "±: 95 % interval of the first column. Dimmed figures are within the sampling error.",
        );
    }
    let last = report.lines.last();
    if report
        .line_count
        .is_some_and(|count| last.is_some_and(|last| last.line > count))
    {
        page.note(
            "The file has fewer lines than when the program was built: it is another version.",
        );
    } else if report.is_newer {
        page.note("The file was changed after the recording started: lines may have moved.");
    }
}

/// The figures of each line, its number and its text.
fn lines(report: &Source, context: &Context<'_>) -> Vec<Line> {
    let columns = [
        ("allocated", Align::Right),
        ("with callees", Align::Right),
        ("at peak", Align::Right),
        ("at end", Align::Right),
        ("line", Align::Right),
    ];
    let mut table = Table::new(context.screen, &columns, 4).droppable(&[2, 3]);
    let mut texts = vec![(None, Style::Plain)];
    let mut next = None;
    for line in &report.lines {
        if report.path.is_some() && next.is_some_and(|next| line.line != next) {
            let mut cells = vec![(String::new(), Style::Faint); columns.len()];
            OMITTED.clone_into(&mut cells[columns.len() - 1].0);
            table.row(cells);
            texts.push((None, Style::Plain));
        }
        next = Some(line.line + 1);
        table.row(cells(line));
        let style = match line.memory {
            Some(_) => Style::Title,
            None => Style::Plain,
        };
        texts.push((line.text.as_deref(), style));
    }
    let lines = table.lines().into_iter().zip(texts);
    lines
        .map(|(mut line, (text, style))| {
            if let Some(text) = text {
                let room = context.screen.room_beside(line.columns() + GAP);
                line.push(&" ".repeat(GAP), Style::Plain);
                line.push(&start(&sanitize(&without_tabs(text)), room), style);
            }
            line
        })
        .collect()
}

fn cells(line: &SourceLine) -> Vec<(String, Style)> {
    let number = (line.line.to_string(), Style::Faint);
    let Some(memory) = &line.memory else {
        let mut cells = vec![(String::new(), Style::Plain); 4];
        cells.push(number);
        return cells;
    };
    let style = if memory.is_noise {
        Style::Faint
    } else {
        Style::Plain
    };
    let LineMemory { own, inclusive, .. } = memory;
    vec![
        (estimate_or_dash(own.allocated.bytes), style),
        (bytes(inclusive.allocated.bytes.value), style),
        (bytes_or_dash(inclusive.live_at_peak.bytes), style),
        (bytes_or_dash(inclusive.live_at_end.bytes), style),
        number,
    ]
}

fn estimate_or_dash(estimate: Estimate) -> String {
    if estimate.value == 0.0 {
        "-".to_owned()
    } else {
        estimated_bytes(estimate)
    }
}

/// Replaces tabs by spaces.
fn without_tabs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, part) in text.split('\t').enumerate() {
        if i > 0 {
            let filled = out.chars().count() % TAB;
            out.extend(std::iter::repeat_n(' ', TAB - filled));
        }
        out.push_str(part);
    }
    out
}
