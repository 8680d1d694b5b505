//! Names in a query that nothing in a trace is called.

use super::ast::{Clause, Expr, Part};
use super::pattern::Pattern;
use crate::store::Profile;

/// What is looked for and is not there, such as `function "Pasrer.*"`.
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
            if !is_there(*part, pattern, profile) {
                let kind = match part {
                    Part::Function => "function",
                    Part::File => "file",
                    Part::Module => "module",
                };
                names.push(format!("{kind} {}", pattern.text()));
            }
        }
        Expr::Clause(_) => {}
    }
}

fn is_there(part: Part, pattern: &Pattern, profile: &Profile) -> bool {
    let symbols = &profile.symbols;
    match part {
        Part::Function => symbols
            .functions()
            .iter()
            .any(|function| pattern.matches_function(function)),
        Part::File => symbols
            .files()
            .iter()
            .any(|file| pattern.matches_file(file)),
        Part::Module => symbols
            .modules()
            .iter()
            .any(|module| pattern.matches(module)),
    }
}
