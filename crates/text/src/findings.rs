//! Findings about a trace, in sentences.

use heapline_profile::reports::{Phrase, TraceFinding};

use crate::page::Page;
use crate::sanitize::sanitize;
use crate::screen::Context;
use crate::styled::{Line, Style};
use crate::units::{count, estimated_bytes, rate, seconds};

/// Columns before the text of a finding.
const INDENT: usize = 5;

/// Adds the findings, each with the command that shows it.
pub(crate) fn findings(page: &mut Page, findings: &[TraceFinding], context: &Context<'_>) {
    if findings.is_empty() {
        return;
    }
    page.title("Findings");
    for (number, finding) in (1..).zip(findings) {
        let mut line = Line::plain(&format!("  {number}. "));
        push_sentence(&mut line, &finding.sentence);
        page.wrapped(&line, INDENT);
        if let Some(suggest) = context.suggest {
            let arguments = arguments(finding);
            let arguments: Vec<&str> = arguments.iter().map(|argument| &**argument).collect();
            let command = suggest(&finding.report, &arguments);
            // Commands are copied: they stay on one line.
            page.lines(vec![
                Line::plain(&" ".repeat(INDENT)).with(&command, Style::Faint),
            ]);
        }
    }
}

/// Adds a sentence to a line.
pub(crate) fn push_sentence(line: &mut Line, sentence: &[Phrase]) {
    for phrase in sentence {
        let (text, style) = phrase_text(phrase);
        line.push(&text, style);
    }
}

/// The options of the command, one shell word each.
fn arguments(finding: &TraceFinding) -> Vec<String> {
    let parameters = finding.parameters.iter();
    parameters
        .flat_map(|(name, value)| {
            let option = format!("--{name}");
            match &**value {
                "true" => vec![option],
                value => vec![option, value.to_owned()],
            }
        })
        .collect()
}

fn phrase_text(phrase: &Phrase) -> (String, Style) {
    match phrase {
        Phrase::Text(text) => (text.clone(), Style::Plain),
        Phrase::Name(name) => (sanitize(name).into_owned(), Style::Label),
        Phrase::Bytes(estimate) => (estimated_bytes(*estimate), Style::Plain),
        Phrase::BytesPerSecond(estimate) => {
            (format!("{}/s", estimated_bytes(*estimate)), Style::Plain)
        }
        Phrase::Percent(percent) => (format!("{percent:.1} %"), Style::Plain),
        Phrase::Seconds(time) => (seconds(*time), Style::Plain),
        Phrase::Count(n) => (count(*n), Style::Plain),
        Phrase::Rate(of) => (rate(*of), Style::Plain),
        Phrase::AtEnd(_) => ("at the end".to_owned(), Style::Plain),
    }
}
