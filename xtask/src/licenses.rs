//! `cargo xtask licenses`: every dependency has a licence that `deny.toml` allows, and is listed in
//! `THIRD-PARTY-NOTICES.md`; those of `heapline-fleet` have files of their own.
//!
//! It applies the rule of `cargo deny check licenses`, for machines without cargo-deny.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use spdx::{Expression, ParseMode};
use toml_edit::{DocumentMut, Item};

use crate::command::{Outcome, cargo, root};
use crate::workspace::read_toml;

/// A program that is distributed.
struct Program {
    package: &'static str,
    manifest: &'static str,
    rules: &'static str,
    notices: &'static str,
}

const PROGRAMS: [Program; 2] = [
    Program {
        package: "heapline-cli",
        manifest: "Cargo.toml",
        rules: "deny.toml",
        notices: "THIRD-PARTY-NOTICES.md",
    },
    Program {
        package: "heapline-fleet",
        manifest: "fleet/Cargo.toml",
        rules: "fleet/deny.toml",
        notices: "fleet/THIRD-PARTY-NOTICES.md",
    },
];

/// The notices after this line are generated.
const MARKER: &str = "<!-- cargo xtask licenses --write -->\n";

/// Checks all licences; `write` updates the lists of the notices instead of comparing them.
pub(crate) fn check(write: bool) -> Outcome {
    PROGRAMS.iter().try_for_each(|program| program.check(write))
}

impl Program {
    fn check(&self, write: bool) -> Outcome {
        let rules = Rules::read(&read_toml(&root().join(self.rules))?);
        let all = self.dependencies(&["--workspace", "--edges=normal,build"])?;
        let refused: Vec<String> = all
            .iter()
            .filter_map(|(name, license)| {
                let problem = rules.check(name, license).err()?;
                Some(format!("  {name}: {problem}"))
            })
            .collect();
        if !refused.is_empty() {
            return Err(format!(
                "{} does not allow the licences of these dependencies:\n{}",
                self.rules,
                refused.join("\n")
            ));
        }
        println!(
            "{} allows the licences of all {} dependencies",
            self.rules,
            all.len()
        );

        let notices = self.notices;
        let package = format!("--package={}", self.package);
        let linked = self.dependencies(&[&package, "--edges=normal,no-proc-macro"])?;
        let path = root().join(notices);
        let text =
            fs::read_to_string(&path).map_err(|error| format!("cannot read {notices}: {error}"))?;
        let (by_hand, listed) = text
            .split_once(MARKER)
            .ok_or_else(|| format!("{notices} lacks the line {MARKER}"))?;
        let list = list(&linked);
        if write {
            fs::write(&path, format!("{by_hand}{MARKER}{list}"))
                .map_err(|error| format!("cannot write {notices}: {error}"))
        } else if listed == list {
            Ok(())
        } else {
            Err(format!(
                "{notices} is out of date; run: cargo xtask licenses --write"
            ))
        }
    }

    /// The names and licences of other people's packages, for all platforms.
    fn dependencies(&self, options: &[&str]) -> Outcome<BTreeSet<(String, String)>> {
        let tree = [
            "tree",
            "--quiet",
            "--locked",
            "--manifest-path",
            self.manifest,
            "--target=all",
            "--prefix=none",
            "--format={p}\t{l}",
        ];
        let text = cargo(&[&tree[..], options].concat()).output()?;
        Ok(text
            .lines()
            .map(|line| line.trim_end_matches(" (*)"))
            .filter_map(|line| line.split_once('\t'))
            // Ours have a path.
            .filter(|(package, _)| !package.contains(" (/"))
            .map(|(package, license)| {
                let name = package.split(' ').next().unwrap_or_default();
                (name.to_owned(), license.to_owned())
            })
            .collect())
    }
}

/// The list of the notices, by licence.
fn list(dependencies: &BTreeSet<(String, String)>) -> String {
    let mut by_license: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, license) in dependencies {
        by_license.entry(license).or_default().push(name);
    }
    let mut text = String::from("\n| licence | packages |\n| --- | --- |\n");
    for (license, names) in by_license {
        // Writing to a string does not fail.
        let _ = writeln!(text, "| {license} | {} |", names.join(", "));
    }
    text
}

/// The rules for licences in `deny.toml`.
struct Rules {
    allowed: BTreeSet<String>,
    /// Licences that single packages may have.
    exceptions: BTreeSet<(String, String)>,
}

impl Rules {
    fn read(deny: &DocumentMut) -> Self {
        let strings = |item: Option<&Item>| -> Vec<String> {
            let array = item.and_then(Item::as_array).into_iter().flatten();
            array
                .filter_map(|value| Some(value.as_str()?.to_owned()))
                .collect()
        };
        let licenses = &deny["licenses"];
        let exceptions = licenses
            .get("exceptions")
            .and_then(Item::as_array_of_tables)
            .into_iter()
            .flatten()
            .flat_map(|table| {
                let name = table.get("crate").and_then(Item::as_str).unwrap_or("");
                let allowed = strings(table.get("allow")).into_iter();
                allowed.map(move |license| (name.to_owned(), license))
            });
        Self {
            allowed: strings(licenses.get("allow")).into_iter().collect(),
            exceptions: exceptions.collect(),
        }
    }

    fn check(&self, name: &str, license: &str) -> Outcome {
        let expression = Expression::parse_mode(license, ParseMode::LAX)
            .map_err(|error| format!("{license:?} is no licence: {}", error.reason))?;
        let allowed = expression.evaluate(|requirement| {
            let license = requirement.to_string();
            self.allowed.contains(&license) || self.exceptions.contains(&(name.to_owned(), license))
        });
        if allowed {
            Ok(())
        } else {
            Err(license.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let deny = "[licenses]\nallow = [\"MIT\", \"Unicode-3.0\"]\n\
                    [[licenses.exceptions]]\ncrate = \"inferno\"\nallow = [\"CDDL-1.0\"]\n";
        Rules::read(&deny.parse().unwrap())
    }

    #[test]
    fn one_of_several_licences_is_enough() {
        for license in [
            "MIT",
            "Apache-2.0 OR MIT",
            "MIT/Apache-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR MIT",
        ] {
            assert_eq!(rules().check("some", license), Ok(()));
        }
    }

    #[test]
    fn what_is_not_allowed_is_refused() {
        for license in ["GPL-3.0-only", "MIT AND Apache-2.0", "CDDL-1.0", "", "Free"] {
            assert!(rules().check("some", license).is_err(), "{license}");
        }
    }

    #[test]
    fn an_exception_is_for_one_package() {
        assert_eq!(rules().check("inferno", "CDDL-1.0"), Ok(()));
        assert!(rules().check("inferno2", "CDDL-1.0").is_err());
    }
}
