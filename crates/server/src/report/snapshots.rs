//! The report of a heap snapshot: what is retained, by all groupings, and the paths to the largest groups and of the largest
//! sites.

use std::io::Write;
use std::sync::Arc;

use clap::ValueEnum as _;
use heapline_engine::{Cancel, EngineError, Params, Report, Request, SnapshotSession};
use heapline_heap::reports::{
    DominatorsOptions, FindingsOptions, RetainedBy, RetainedOptions, WhyOptions,
};
use heapline_profile::Share;
use heapline_profile::query::Pattern;
use heapline_profile::reports::DiffOptions;

use super::{Question, ReportError, write_answers};
use crate::loader::Loaded;
use crate::trace::Subjects;

/// Rows of the page's tables and lists.
const ROWS: usize = 1000;
const PATHS: usize = 100;
const FINDINGS: usize = 20;
const CHANGES: usize = 200;

/// The number of groups and sites that paths can be asked for, of each kind.
const ASKED: usize = 25;

/// Writes a report. `progress` is told how many of how many questions are answered.
pub fn write_snapshot_report(
    subjects: &Subjects,
    session: &Arc<SnapshotSession>,
    progress: &(dyn Fn(usize, usize) + Sync),
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let questions = questions(session)
        .map_err(|error| ReportError::Unanswered("retained".to_owned(), error))?;
    let session = Loaded::Snapshots(Arc::clone(session));
    write_answers(
        subjects,
        &session,
        (Vec::new(), None),
        &questions,
        progress,
        out,
    )
}

/// The requests of the page: `ui/src/heap/questions.ts` is the other side of this.
fn questions(session: &SnapshotSession) -> Result<Vec<Vec<Question>>, EngineError> {
    let why = |change: &dyn Fn(&mut WhyOptions)| {
        let mut options = WhyOptions {
            rows: PATHS,
            ..WhyOptions::default()
        };
        change(&mut options);
        Request::Why(options)
    };
    let all_paths = why(&|_| {});
    let mut requests = vec![
        Request::Dominators(DominatorsOptions {
            min: Share(0.001),
            ..DominatorsOptions::default()
        }),
        all_paths.clone(),
        Request::Findings(FindingsOptions { rows: FINDINGS }),
    ];
    if session.against().is_some() {
        requests.push(Request::Diff(Params::all(DiffOptions {
            rows: CHANGES,
            ..DiffOptions::default()
        })));
    }
    let mut groups = Vec::new();
    for &by in RetainedBy::value_variants() {
        let mut details = Vec::new();
        let retained = Request::Retained(RetainedOptions {
            by,
            rows: ROWS,
            ..RetainedOptions::default()
        });
        for name in names(session, &retained)? {
            let pattern = Pattern::glob(&name);
            if matches!(by, RetainedBy::Closure | RetainedBy::Kind) {
                details.push(why(&|options| options.kind = Some(pattern.clone())));
                continue;
            }
            details.push(why(&|options| options.held_by = Some(pattern.clone())));
            details.push(why(&|options| options.through = Some(pattern.clone())));
            details.push(Request::Retained(RetainedOptions {
                at: Some(name),
                rows: ROWS,
                ..RetainedOptions::default()
            }));
        }
        requests.push(retained);
        groups.push(details);
    }
    let sites = names(session, &all_paths)?;
    let paths_of = |name: &String| {
        let pattern = Pattern::glob(name);
        why(&|options| options.site = Some(pattern.clone()))
    };
    groups.push(sites.iter().map(paths_of).collect());
    groups.insert(0, requests);
    // Kinds of roots are no nodes of the tree, so that there are no paths to what they hold.
    let is_answered = |request: &Request| session.answer(request, &Cancel::default()).is_ok();
    let answered = |requests: Vec<Request>| {
        let requests = requests.into_iter().filter(is_answered);
        requests.map(Question::new).collect()
    };
    Ok(groups.into_iter().map(answered).collect())
}

/// The largest groups or sites of an answer that can be asked about.
fn names(session: &SnapshotSession, request: &Request) -> Result<Vec<String>, EngineError> {
    let answer = session.answer(request, &Cancel::default())?;
    let names: Vec<String> = match &answer.report {
        Report::Retained(report) => {
            let rows = report.rows.iter().filter(|row| !row.is_shared);
            rows.map(|row| row.name.clone()).collect()
        }
        Report::Why(report) => {
            let sites = report.sites.iter();
            sites.map(|site| site.site.name.clone()).collect()
        }
        _ => Vec::new(),
    };
    Ok(names.into_iter().take(ASKED).collect())
}
