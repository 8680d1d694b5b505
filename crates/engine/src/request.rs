//! Requests as text: parameters, keys and commands.

use clap::error::{ContextKind, ContextValue, ErrorKind as ClapErrorKind};
use clap::{Arg, ArgAction, Args, Command, FromArgMatches, Subcommand};
use heapline_profile::QueryError;
use heapline_profile::reports::DiffTreeOptions;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::ask::Ask;
use crate::cancel::Cancel;
use crate::error::{EngineError, ErrorKind};
use crate::filter::Filter;
use crate::reports::Request;
use crate::session::Session;
use crate::shell::{shell_path, shell_quote};

/// The options of a report and the blocks that it is about.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize)]
pub struct Params<O: Args> {
    /// The selected blocks.
    #[command(flatten)]
    #[serde(flatten)]
    pub filter: Filter,
    /// The report's own options.
    #[command(flatten)]
    #[serde(flatten)]
    pub options: O,
}

impl<O: Ask> Params<O> {
    /// Options about all blocks.
    pub fn all(options: O) -> Self {
        Self {
            filter: Filter::default(),
            options,
        }
    }

    pub(crate) fn ask(&self, session: &Session, cancel: &Cancel) -> Result<O::Report, EngineError> {
        session.ask(&self.filter, &self.options, cancel)
    }
}

impl Request {
    /// The definition of all requests: a subcommand for each report, with its options.
    #[must_use]
    pub fn definition() -> Command {
        Self::augment_subcommands(Command::new("heapline"))
            .no_binary_name(true)
            .disable_help_flag(true)
            .disable_help_subcommand(true)
    }

    /// Parses the name of a report and its parameters, which are the long options of its command:
    /// lists are repeated, flags are `true`, `false` or empty.
    pub fn from_pairs<N: AsRef<str>, V: AsRef<str>>(
        report: &str,
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, EngineError> {
        let definition = Self::definition();
        let Some(known) = definition.find_subcommand(report) else {
            return Err(EngineError::new(
                ErrorKind::NotFound,
                format!("no such report: `{report}`"),
            ));
        };
        let mut arguments = vec![report.to_owned()];
        arguments.extend(option_arguments(known, pairs)?);
        definition
            .try_get_matches_from(arguments)
            .and_then(|matches| Self::from_arg_matches(&matches))
            .map_err(|error| parse_error(&error))
    }

    /// The name of the report.
    #[must_use]
    pub fn name(&self) -> String {
        self.fields().0
    }

    /// The parameters that differ from their defaults, sorted by name; [`Self::from_pairs`] makes
    /// the same request of them.
    #[must_use]
    pub fn pairs(&self) -> Vec<(String, String)> {
        let (name, fields) = self.fields();
        let defaults = Self::from_pairs::<&str, &str>(&name, [])
            .map(|request| request.fields().1)
            .unwrap_or_default();
        changed_pairs(fields, &defaults)
    }

    /// The one text of a request, as in `hotspots?by=site&where=live+at+peak`: encoded as browsers
    /// do, so that the viewer finds answers in a report file by it.
    #[must_use]
    pub fn key(&self) -> String {
        let name = self.name();
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(self.pairs())
            .finish();
        match &*query {
            "" => name,
            query => format!("{name}?{query}"),
        }
    }

    /// The command that prints the answer, if there is one: `against` is the trace that `trace` is
    /// compared with.
    #[must_use]
    pub fn command_line(&self, trace: &str, against: Option<&str>) -> Option<String> {
        let words = self.arguments(trace, against)?;
        Some(format!("heapline {}", words.join(" ")))
    }

    /// The quoted arguments of the command.
    fn arguments(&self, trace: &str, against: Option<&str>) -> Option<Vec<String>> {
        let against = match self {
            Self::Complete(_) => return None,
            // The columns of a flame graph are for drawing; the command shows the tree.
            Self::Flame(params) => {
                let tree = Self::Tree(Params {
                    filter: params.filter.clone(),
                    options: params.options.tree.clone(),
                });
                return tree.arguments(trace, against);
            }
            Self::Diff(params) if params.options.sides.window.is_empty() => against,
            Self::DiffTree(params) if params.options.sides.window.is_empty() => against,
            _ => None,
        };
        let (command, flag, options) = match self {
            // The number of nodes is limited for drawing only.
            Self::DiffTree(params) => {
                let mut params = params.clone();
                params.options.max_nodes = DiffTreeOptions::default().max_nodes;
                (
                    "diff",
                    Some("--tree"),
                    Self::DiffTree(params).option_words(),
                )
            }
            _ => (&*self.name(), None, self.option_words()),
        };
        let mut words = vec![command.to_owned()];
        words.extend(against.map(|path| shell_path(path).into_owned()));
        words.push(shell_path(trace).into_owned());
        if let Self::Source(params) = self {
            words.push(shell_quote(&params.options.name).into_owned());
        }
        words.extend(flag.map(str::to_owned));
        words.extend(options);
        Some(words)
    }

    /// The options that differ from their defaults, quoted, in the order of the help text.
    pub(crate) fn option_words(&self) -> Vec<String> {
        let definition = Self::definition();
        let report = definition.find_subcommand(self.name());
        let mut pairs = self.pairs();
        if matches!(self, Self::Source(_)) {
            // Its command takes the name without an option.
            pairs.retain(|(name, _)| name != "name");
        }
        report.map_or_else(Vec::new, |report| quoted_options(report, &pairs))
    }

    /// The name of the report, and all options by name.
    fn fields(&self) -> (String, Map<String, Value>) {
        match serde_json::to_value(self) {
            Ok(Value::String(name)) => (name, Map::new()),
            Ok(Value::Object(report)) => match report.into_iter().next() {
                Some((name, Value::Object(fields))) => (name, fields),
                _ => unreachable!("options are structs"),
            },
            _ => unreachable!("a request is a name, or a name and options"),
        }
    }
}

impl<O: Args + Serialize> Params<O> {
    fn definition() -> Command {
        Self::augment_args(Command::new("options"))
            .no_binary_name(true)
            .disable_help_flag(true)
    }

    /// Parses options that are no report's, such as those of an export, as [`Request::from_pairs`] does.
    pub fn from_pairs<N: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, EngineError> {
        let definition = Self::definition();
        let arguments = option_arguments(&definition, pairs)?;
        definition
            .try_get_matches_from(arguments)
            .and_then(|matches| Self::from_arg_matches(&matches))
            .map_err(|error| parse_error(&error))
    }

    /// The options that differ from their defaults, quoted, for a command.
    #[must_use]
    pub fn option_words(&self) -> Vec<String> {
        let fields = |params: &Self| match serde_json::to_value(params) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let defaults = Self::from_pairs::<&str, &str>([]);
        let defaults = defaults.map_or_else(|_| Map::new(), |params| fields(&params));
        quoted_options(&Self::definition(), &changed_pairs(fields(self), &defaults))
    }
}

/// The arguments of a command for parameters, which are its long options.
fn option_arguments<N: AsRef<str>, V: AsRef<str>>(
    command: &Command,
    pairs: impl IntoIterator<Item = (N, V)>,
) -> Result<Vec<String>, EngineError> {
    let mut arguments = Vec::new();
    for (name, value) in pairs {
        let (name, value) = (name.as_ref(), value.as_ref());
        let Some(option) = command
            .get_arguments()
            .find(|arg| arg.get_long() == Some(name))
        else {
            let message = format!("no such parameter: `{name}`");
            return Err(EngineError::parameter(name, value, message));
        };
        match (is_flag(option), value) {
            (false, _) => arguments.push(format!("--{name}={value}")),
            (true, "" | "true") => arguments.push(format!("--{name}")),
            (true, "false") => {}
            (true, _) => {
                let message = format!("`{name}` must be true or false");
                return Err(EngineError::parameter(name, value, message));
            }
        }
    }
    Ok(arguments)
}

/// The fields that differ from their defaults, as parameters, sorted by name.
fn changed_pairs(
    fields: Map<String, Value>,
    defaults: &Map<String, Value>,
) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = fields
        .into_iter()
        .filter(|(name, value)| defaults.get(name) != Some(value))
        .flat_map(|(name, value)| {
            let texts = texts(value).into_iter();
            texts.map(move |text| (name.clone(), text))
        })
        .collect();
    // Stable: the order of several values of one parameter may count.
    pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
    pairs
}

/// Parameters as quoted options of a command, in the order of its help text.
fn quoted_options(command: &Command, pairs: &[(String, String)]) -> Vec<String> {
    let mut words = Vec::new();
    for option in command.get_arguments() {
        let long = option.get_long().unwrap_or_default();
        for (_, value) in pairs.iter().filter(|(name, _)| name == long) {
            words.push(if is_flag(option) {
                format!("--{long}")
            } else if value.starts_with('-') {
                format!("--{long}={}", shell_quote(value))
            } else {
                format!("--{long} {}", shell_quote(value))
            });
        }
    }
    words
}

fn is_flag(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::SetTrue)
}

/// The values of an option as they are given.
fn texts(value: Value) -> Vec<String> {
    match value {
        Value::Null | Value::Bool(false) => Vec::new(),
        Value::String(text) => vec![text],
        Value::Array(values) => values.into_iter().flat_map(texts).collect(),
        other => vec![other.to_string()],
    }
}

/// Translates clap's error to the names of parameters.
fn parse_error(error: &clap::Error) -> EngineError {
    let context = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let option = context(ContextKind::InvalidArg);
    let name = option
        .trim_start_matches('-')
        .split([' ', '='])
        .next()
        .unwrap_or_default();
    let value = context(ContextKind::InvalidValue);
    let source = std::error::Error::source(error);
    if let Some(error) = source.and_then(|source| source.downcast_ref::<QueryError>()) {
        return EngineError::query(name, error);
    }
    let message = match (error.kind(), error.get(ContextKind::ValidValue), source) {
        (ClapErrorKind::InvalidValue, Some(ContextValue::Strings(values)), _) => {
            format!("`{name}` must be one of: {}", values.join(", "))
        }
        (ClapErrorKind::ArgumentConflict, ..) => format!("`{name}` is given more than once"),
        (_, _, Some(source)) => format!("`{name}`: {source}"),
        _ => error.to_string(),
    };
    EngineError::parameter(name, &value, message)
}
