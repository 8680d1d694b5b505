//! Files that the page saves: the selection in the formats of other tools, and the report file.

use std::sync::Arc;

use clap::ValueEnum as _;
use heapline_engine::{
    EngineError, ErrorKind, Params, Session, check_lifetimes, check_time, shell_path, shell_quote,
};
use heapline_export::{StackFormat, StackOptions};

use crate::report::{ReportOptions, write_report};
use crate::trace::Subjects;

/// Characters of a name that the browser saves a file by.
const LONGEST_NAME: usize = 80;

/// A request for a file.
#[derive(Clone, Debug)]
pub(crate) enum FileRequest {
    Export {
        format: StackFormat,
        params: Params<StackOptions>,
    },
    /// The report file, which opens in a state.
    Report { state: Option<String> },
}

/// A file, and the command that writes it.
#[derive(Debug)]
pub(crate) struct SavedFile {
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) content: Vec<u8>,
    pub(crate) session: Arc<Session>,
}

impl FileRequest {
    /// Parses a request by its name and its encoded parameters. `None` if the name is not that of a file.
    pub(crate) fn parse(name: &str, query: &str) -> Option<Result<Self, EngineError>> {
        let pairs = form_urlencoded::parse(query.as_bytes());
        match name {
            "export" => Some(export(pairs)),
            "report" => Some(report(pairs)),
            _ => None,
        }
    }

    /// Writes the file; only its name and its command if `is_written` is false.
    pub(crate) fn answer(
        &self,
        subjects: &Subjects,
        session: Arc<Session>,
        is_written: bool,
    ) -> Result<SavedFile, EngineError> {
        let mut content = Vec::new();
        if is_written {
            self.write(subjects, &session, &mut content)?;
        }
        let name = self.name(session.path());
        Ok(SavedFile {
            command: self.command(&name, &session),
            name,
            content,
            session,
        })
    }

    fn write(
        &self,
        subjects: &Subjects,
        session: &Arc<Session>,
        out: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        let failed = |error: &dyn std::fmt::Display| {
            EngineError::new(
                ErrorKind::Internal,
                format!("cannot write the file: {error}"),
            )
        };
        match self {
            Self::Export { format, params } => {
                let profile = &session.trace().profile;
                params.filter.check(profile)?;
                if let Some(at) = &params.options.at {
                    check_time("at", at, profile)?;
                }
                if format.has_times() {
                    check_lifetimes("the times of single blocks, which this format has", profile)?;
                }
                let scope = params.filter.scope(profile).showing(&params.options.look);
                let written = format.write(&scope, &params.options, out);
                written.map_err(|error| failed(&error))
            }
            Self::Report { state } => {
                let options = ReportOptions {
                    slices: ReportOptions::SLICES,
                    state: state.clone(),
                };
                let session = Arc::new(session.with_plain_names());
                let subjects = subjects.with_plain_names();
                let written = write_report(&subjects, &session, &options, &|_, _| {}, out);
                written.map_err(|error| failed(&error))
            }
        }
    }

    /// The name of the file: that of the trace with another ending.
    fn name(&self, path: &str) -> String {
        let name = path.rsplit('/').next().unwrap_or_default();
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let safe: String = stem
            .trim_start_matches(['.', '-'])
            .chars()
            .take(LONGEST_NAME)
            .map(|c| match c {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' => c,
                _ => '_',
            })
            .collect();
        let ending = match self {
            Self::Export { format, .. } => format.ending(),
            Self::Report { .. } => ".html",
        };
        match &*safe {
            "" => format!("heapline{ending}"),
            safe => format!("{safe}{ending}"),
        }
    }

    /// The command that writes the file.
    fn command(&self, name: &str, session: &Session) -> String {
        let mut words = vec!["heapline".to_owned()];
        let path = shell_path(session.path()).into_owned();
        match self {
            Self::Export { format, params } => {
                words.extend(["export".to_owned(), path, "--format".to_owned()]);
                let format = format.to_possible_value();
                words.extend(format.map(|format| format.get_name().to_owned()));
                words.extend(params.option_words());
            }
            Self::Report { state } => {
                words.extend(["report".to_owned(), path]);
                let against = session.against_path();
                words.extend(against.map(|path| format!("--against {}", shell_path(path))));
                let state = state.as_ref();
                words.extend(state.map(|state| format!("--state {}", shell_quote(state))));
            }
        }
        words.push(format!("-o {}", shell_quote(name)));
        words.join(" ")
    }
}

fn export(pairs: form_urlencoded::Parse<'_>) -> Result<FileRequest, EngineError> {
    let mut format = None;
    let mut rest = Vec::new();
    for (name, value) in pairs {
        if name != "format" {
            rest.push((name, value));
            continue;
        }
        format = Some(StackFormat::from_str(&value, false).map_err(|_| {
            let message =
                "`format` must be one of: pprof, collapsed, speedscope, firefox, perfetto";
            EngineError::parameter("format", &value, message.to_owned())
        })?);
    }
    let missing = || EngineError::parameter("format", "", "`format` is missing".to_owned());
    let format = format.ok_or_else(missing)?;
    let params: Params<StackOptions> = Params::from_pairs(rest)?;
    let mut given = params.options.given();
    if let Some(option) = given.find(|option| !format.honours(option)) {
        let message = format!("`{option}` does not apply to this format");
        return Err(EngineError::parameter(option, "", message));
    }
    Ok(FileRequest::Export { format, params })
}

fn report(pairs: form_urlencoded::Parse<'_>) -> Result<FileRequest, EngineError> {
    let mut state = None;
    for (name, value) in pairs {
        if name != "state" {
            let message = format!("no such parameter: `{name}`");
            return Err(EngineError::parameter(&name, &value, message));
        }
        state = Some(value.into_owned());
    }
    Ok(FileRequest::Report { state })
}
