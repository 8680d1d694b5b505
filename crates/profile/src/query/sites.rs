//! Queries that allocation sites alone can answer, for other stores than [`Profile`](crate::Profile).

use super::Query;
use super::ast::{Clause, Expr, Heap, Part, Test};
use super::pattern::Pattern;
use super::token::Comparison;

/// A condition on allocation sites: the innermost frame of blocks, and the heap they are allocated on.
#[derive(Clone, Debug, PartialEq)]
pub enum SiteCondition {
    /// All of these hold.
    All(Vec<Self>),
    /// At least one of these holds.
    Any(Vec<Self>),
    /// This does not hold.
    Not(Box<Self>),
    /// The function matches.
    Function(Pattern),
    /// The [path or the file name](Pattern::matches_file) matches.
    File(Pattern),
    /// The module matches.
    Module(Pattern),
    /// The line is at least `from` and less than `to`.
    Line {
        /// The first line, if it is bounded.
        from: Option<u64>,
        /// One past the last line, if it is bounded.
        to: Option<u64>,
    },
    /// The blocks are outside of OCaml's heaps, in this space: `external` or `native`.
    Space(&'static str),
}

/// Why the sites of a trace do not answer a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BeyondSites {
    /// It is about callers.
    #[error("`{0}` needs whole stacks, and a site has only its innermost function")]
    Stacks(&'static str),
    /// It is about single blocks.
    #[error("`{0}` needs single blocks, and a site has only their sums")]
    Blocks(&'static str),
    /// It is about blocks that may have been promoted.
    #[error("`heap = {0}` needs the stays of single blocks: promoted blocks were on both heaps")]
    Heap(&'static str),
    /// It is about the exact place of the code.
    #[error("`{0}` is more than is known of a site; use `function`, `file` and `line`")]
    Place(&'static str),
    /// It is about crates.
    #[error("`crate` needs the functions of the whole program, and a site has only its own")]
    Crate,
}

impl Query {
    /// The query as a condition on sites; `None` if it matches all blocks.
    pub fn on_sites(&self) -> Result<Option<SiteCondition>, BeyondSites> {
        self.expr.as_ref().map(condition).transpose()
    }
}

fn condition(expr: &Expr) -> Result<SiteCondition, BeyondSites> {
    let all = |parts: &[Expr]| parts.iter().map(condition).collect::<Result<Vec<_>, _>>();
    Ok(match expr {
        Expr::All(parts) => SiteCondition::All(all(parts)?),
        Expr::Any(parts) => SiteCondition::Any(all(parts)?),
        Expr::Not(part) => SiteCondition::Not(Box::new(condition(part)?)),
        Expr::Clause(clause) => single(clause)?,
    })
}

fn single(clause: &Clause) -> Result<SiteCondition, BeyondSites> {
    Err(match clause {
        Clause::Site(Part::Function, pattern) => {
            return Ok(SiteCondition::Function(pattern.clone()));
        }
        Clause::Site(Part::File, pattern) => return Ok(SiteCondition::File(pattern.clone())),
        Clause::Site(Part::Module, pattern) => return Ok(SiteCondition::Module(pattern.clone())),
        Clause::Line(test) => return Ok(lines(*test)),
        Clause::Heap(Heap::External) => return Ok(SiteCondition::Space("external")),
        Clause::Heap(Heap::Native) => return Ok(SiteCondition::Space("native")),
        Clause::Heap(Heap::Minor) => BeyondSites::Heap("minor"),
        Clause::Heap(Heap::Major) => BeyondSites::Heap("major"),
        Clause::Site(Part::Crate, _) => BeyondSites::Crate,
        Clause::Site(Part::Place, _) => BeyondSites::Place("place"),
        Clause::Address(_) => BeyondSites::Place("address"),
        Clause::Inside(..) => BeyondSites::Stacks("inside"),
        Clause::Chain(chain) if chain.own.is_some() => BeyondSites::Stacks("own"),
        Clause::Chain(chain) if chain.hidden.is_empty() => BeyondSites::Stacks("called by"),
        Clause::Chain(_) => BeyondSites::Stacks("hiding"),
        Clause::LiveAt(_) => BeyondSites::Blocks("live at"),
        Clause::LiveIn(_) => BeyondSites::Blocks("live in"),
        Clause::Allocated(_) => BeyondSites::Blocks("allocated"),
        Clause::Collected(_) => BeyondSites::Blocks("collected"),
        Clause::Promoted(_) => BeyondSites::Blocks("promoted"),
        Clause::Size(_) => BeyondSites::Blocks("size"),
        Clause::Lifetime(_) => BeyondSites::Blocks("lifetime"),
        Clause::Samples(_) => BeyondSites::Blocks("samples"),
        Clause::Domain(_) => BeyondSites::Blocks("domain"),
    })
}

fn lines(test: Test<u64>) -> SiteCondition {
    let between = |from, to| SiteCondition::Line { from, to };
    let next = |line: u64| Some(line.saturating_add(1));
    match test {
        Test::In(from, to) => between(from, to),
        Test::Is(Comparison::Equal, line) => between(Some(line), next(line)),
        Test::Is(Comparison::NotEqual, line) => {
            SiteCondition::Not(Box::new(between(Some(line), next(line))))
        }
        Test::Is(Comparison::Less, line) => between(None, Some(line)),
        Test::Is(Comparison::AtMost, line) => between(None, next(line)),
        Test::Is(Comparison::More, line) => between(next(line), None),
        Test::Is(Comparison::AtLeast, line) => between(Some(line), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_sites(text: &str) -> Result<Option<SiteCondition>, BeyondSites> {
        Query::parse(text).unwrap().on_sites()
    }

    #[test]
    fn conditions_on_the_innermost_frame_are_kept() {
        let all = SiteCondition::All(vec![
            SiteCondition::Function(Pattern::glob("Parser.*")),
            SiteCondition::Not(Box::new(SiteCondition::Any(vec![
                SiteCondition::File(Pattern::regex("gen", false).unwrap()),
                SiteCondition::Space("native"),
            ]))),
            SiteCondition::Line {
                from: Some(4),
                to: None,
            },
        ]);
        let query = "site = Parser.* and not (file = /gen/ or heap = native) and line > 3";
        assert_eq!(on_sites(query), Ok(Some(all)));
        assert_eq!(on_sites(""), Ok(None));
    }

    #[test]
    fn queries_on_blocks_and_callers_are_refused() {
        for (query, why) in [
            ("inside f", BeyondSites::Stacks("inside")),
            ("own function = f", BeyondSites::Stacks("own")),
            ("function = f called by g", BeyondSites::Stacks("called by")),
            ("site = f and size > 3", BeyondSites::Blocks("size")),
            ("not live at peak", BeyondSites::Blocks("live at")),
            ("heap = major", BeyondSites::Heap("major")),
            ("crate = serde", BeyondSites::Crate),
            ("place = a.ml", BeyondSites::Place("place")),
        ] {
            assert_eq!(on_sites(query), Err(why), "{query}");
        }
    }
}
