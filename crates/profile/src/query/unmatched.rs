//! Names in a query that do not occur in a trace.

use super::ast::{Clause, Expr, Part};
use super::pattern::Pattern;
use crate::crates::Crates;
use crate::groups::{NO_OWN_CODE, UNKNOWN};
use crate::store::Profile;

/// Lists the names that are not there, such as `function "Pasrer.*"; did you mean "Parser.*"?`.
pub(super) fn unmatched(expr: &Expr, profile: &Profile) -> Vec<String> {
    let mut names = Vec::new();
    collect(expr, profile, &mut names);
    names
}

fn collect(expr: &Expr, profile: &Profile, names: &mut Vec<String>) {
    match expr {
        Expr::All(parts) | Expr::Any(parts) => {
            for part in parts {
                collect(part, profile, names);
            }
        }
        Expr::Not(part) => collect(part, profile, names),
        Expr::Clause(Clause::Inside(part, pattern) | Clause::Site(part, pattern)) => {
            names.extend(description(*part, pattern, profile));
        }
        Expr::Clause(Clause::Chain(chain)) => {
            let missing = |pattern| description(chain.part, pattern, profile);
            names.extend(chain.names.iter().filter_map(missing));
        }
        Expr::Clause(_) => {}
    }
}

/// Describes a name that is not there.
pub(super) fn description(part: Part, pattern: &Pattern, profile: &Profile) -> Option<String> {
    if is_there(part, pattern, profile) {
        return None;
    }
    let kind = match part {
        Part::Function => "function",
        Part::File => "file",
        Part::Module => "module",
        Part::Crate => "crate",
        Part::Place => "place",
    };
    let text = pattern.text();
    Some(match similar(part, pattern, profile) {
        Some(similar) => format!("{kind} {text}; did you mean {}?", similar.text()),
        None => match containing(part, pattern, profile) {
            Some(meant) => format!("{kind} {text}; did you mean {meant}?"),
            None => format!("{kind} {text}"),
        },
    })
}

/// A condition for a word that is part of names: `module "Typexp"` or `/typexp/i` in place of the function `typexp`.
fn containing(part: Part, pattern: &Pattern, profile: &Profile) -> Option<String> {
    let word = pattern.text().strip_prefix('"')?.strip_suffix('"')?;
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_');
    if part != Part::Function || !is_word {
        return None;
    }
    let mut modules = profile.symbols().modules().iter();
    let is_meant = |module: &&String| {
        let (_, last) = module.rsplit_once('.').unwrap_or(("", module));
        last.eq_ignore_ascii_case(word)
    };
    if let Some(module) = modules.find(is_meant) {
        return Some(format!("module {}", Pattern::literal(module).text()));
    }
    let anywhere = Pattern::regex(word, true).ok()?;
    is_there(part, &anywhere, profile).then(|| anywhere.text().to_owned())
}

/// The pattern that was most likely meant: the same with the parts of a name that exists.
fn similar(part: Part, pattern: &Pattern, profile: &Profile) -> Option<Pattern> {
    let symbols = profile.symbols();
    let similar = match part {
        Part::Function => {
            let names = symbols.functions().iter();
            pattern.similar('.', names.map(|function| &*function.name))
        }
        Part::File => pattern.similar('/', symbols.files().iter().map(|file| &**file)),
        Part::Module => pattern.similar('.', symbols.modules().iter().map(|module| &**module)),
        Part::Crate => {
            let crates = Crates::new(symbols);
            pattern.similar('.', crates.names().iter().map(|name| &**name))
        }
        Part::Place => {
            let places: Vec<String> = places(profile).collect();
            pattern.similar('/', places.iter().map(|place| &**place))
        }
    }?;
    is_there(part, &similar, profile).then_some(similar)
}

pub(super) fn is_there(part: Part, pattern: &Pattern, profile: &Profile) -> bool {
    let symbols = profile.symbols();
    if pattern.matches(UNKNOWN) || pattern.matches(NO_OWN_CODE) {
        return true;
    }
    match part {
        Part::Place => places(profile).any(|place| pattern.matches(&place)),
        Part::Function => pattern.functions(symbols.functions()).iter().any(|&is| is),
        Part::File => symbols
            .files()
            .iter()
            .any(|file| pattern.matches_file(file)),
        Part::Module => pattern.modules(symbols.modules()).iter().any(|&is| is),
        Part::Crate => Crates::new(symbols)
            .names()
            .iter()
            .any(|name| pattern.matches(name)),
    }
}

/// The places of all code in the source.
fn places(profile: &Profile) -> impl Iterator<Item = String> {
    let symbols = profile.symbols();
    symbols.frames().ids().map(|frame| symbols.place(frame))
}
