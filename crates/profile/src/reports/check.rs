//! Budgets: a gate for continuous integration.

use serde::Serialize;

use super::diff::{DiffOptions, diff};
use super::{Figures, largest};
use crate::amount::Amount;
use crate::estimate::{Estimate, Sum};
use crate::groups::{GroupBy, Groups, Label, View};
use crate::query::{Comparison, Query, QueryError, Size, TimePoint, TokenKind, size, tokens};
use crate::sampling::Estimator;
use crate::scope::Scope;
use crate::store::Profile;

/// Rows of evidence.
const EVIDENCE: usize = 5;

/// A limit, such as `allocated where inside "Parser.*" < 1GiB`.
///
/// ```
/// use heapline_profile::reports::Budget;
///
/// let budget = Budget::parse("live at peak < 200MiB").unwrap();
/// assert_eq!(budget.limit(8.0), 200.0 * 1024.0 * 1024.0);
/// assert!(Budget::parse("live at peak").is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    text: String,
    what: What,
    in_blocks: bool,
    query: Query,
    comparison: Comparison,
    limit: Size,
}

/// The quantity that a budget limits.
#[derive(Clone, Debug, PartialEq)]
enum What {
    Allocated,
    Promoted,
    /// The most that is alive at any time, of the blocks that the budget is about.
    Peak,
    LiveAt(TimePoint),
}

const EXPECTED: &str = "allocated, promoted, peak or live at TIME, optionally after blocks";

impl Budget {
    /// The query that selects its blocks.
    #[must_use]
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Returns true if it limits promotions, which not every source tells.
    #[must_use]
    pub fn is_about_promotions(&self) -> bool {
        self.what == What::Promoted
    }

    /// Understands `[blocks] allocated|promoted|peak|live at TIME [where QUERY] < AMOUNT`.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let tokens = tokens(text).map_err(|error| error.of(text))?;
        let sign = tokens.iter().rev().find_map(|token| match token.kind {
            TokenKind::Compare(comparison) => Some((token.span.clone(), comparison)),
            _ => None,
        });
        let Some((sign, comparison)) = sign else {
            return Err(error(
                text,
                text.len()..text.len(),
                "missing limit",
                "< or <= and an amount, as in `< 200MiB`",
            ));
        };
        let subject = &text[..sign.start];
        let filter = tokens.iter().find(|token| {
            token.span.end <= sign.start
                && matches!(&token.kind, TokenKind::Word(word) if word == "where")
        });
        let (measure, query) = match filter {
            None => (subject, Query::default()),
            Some(token) => {
                let query = Query::parse(&subject[token.span.end..])
                    .map_err(|error| error.within(text, token.span.end))?;
                (&subject[..token.span.start], query)
            }
        };
        let words: Vec<&str> = measure.split_whitespace().collect();
        let (in_blocks, words) = match &words[..] {
            ["blocks", rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        let amount = text[sign.end..].trim();
        // Blocks are counted in thousands, as words are.
        let limit = if in_blocks {
            size(&format!("{amount}w"))
        } else {
            size(amount)
        };
        let limit = limit.ok_or_else(|| {
            let expected = if in_blocks {
                "a number of blocks: 1000, 10k, 2M"
            } else {
                "200MiB, 1GiB, 10Mw or a number"
            };
            error(text, sign.end..text.len(), "invalid amount", expected)
        })?;
        let unknown = || {
            let start = measure.len() - measure.trim_start().len();
            let end = measure.trim_end().len().max(start);
            error(text, start..end, "unknown quantity", EXPECTED)
        };
        let what = match words {
            ["allocated"] => What::Allocated,
            ["promoted"] => What::Promoted,
            ["peak"] => What::Peak,
            ["live" | "alive", "at", time] => {
                What::LiveAt(TimePoint::parse(time).map_err(|_| unknown())?)
            }
            _ => return Err(unknown()),
        };
        Ok(Self {
            text: text.trim().to_owned(),
            what,
            in_blocks,
            query,
            comparison,
            limit,
        })
    }

    /// Understands a file of budgets: one a line; empty lines and what follows `#` do not count.
    pub fn parse_file(text: &str) -> Result<Vec<Self>, (usize, QueryError)> {
        (1..)
            .zip(text.lines())
            .map(|(number, line)| (number, without_comment(line)))
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(number, line)| Self::parse(line).map_err(|error| (number, error)))
            .collect()
    }

    /// The budget as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The limit in bytes, or in blocks.
    #[must_use]
    pub fn limit(&self, word_bytes: f64) -> f64 {
        match (self.in_blocks, self.limit) {
            (true, Size::Bytes(n) | Size::Words(n)) => n,
            (false, size) => size.bytes(word_bytes),
        }
    }

    /// Checks a profile against the budget.
    #[must_use]
    pub fn check(&self, profile: &Profile, estimator: Estimator) -> Verdict {
        let scope = Scope::new(profile, &self.query, estimator);
        let scope = match &self.what {
            What::Allocated => scope,
            What::Promoted => scope.promoted(),
            What::Peak => scope.at_own_peak(),
            What::LiveAt(time) => scope.live_at(time.moment(profile, estimator)),
        };
        let total = scope.total();
        let value = if self.in_blocks {
            profile.sampling().blocks(&total)
        } else {
            profile.sampling().bytes(&total)
        };
        let limit = self.limit(profile.sampling().word_bytes());
        let outcome = outcome(self.comparison, value, limit);
        Verdict {
            budget: self.text.clone(),
            in_blocks: self.in_blocks,
            value,
            limit,
            outcome,
            evidence: if outcome == Outcome::Kept {
                Vec::new()
            } else {
                evidence(&scope, self.in_blocks)
            },
            before: None,
            excess: None,
        }
    }
}

fn error(text: &str, span: std::ops::Range<usize>, message: &str, expected: &str) -> QueryError {
    QueryError {
        query: text.to_owned(),
        start: span.start,
        end: span.end,
        message: message.to_owned(),
        expected: expected.to_owned(),
    }
}

/// The text before what begins with `#`.
fn without_comment(line: &str) -> &str {
    // A quote that is not closed is an error that the parser will tell.
    let comment = tokens(line).ok().and_then(|tokens| {
        tokens
            .into_iter()
            .find(|token| matches!(&token.kind, TokenKind::Word(word) if word.starts_with('#')))
    });
    let end = comment.map_or_else(|| plain_comment(line), |token| token.span.start);
    &line[..end]
}

/// A line that is all comment may have anything in it.
fn plain_comment(line: &str) -> usize {
    if line.trim_start().starts_with('#') {
        0
    } else {
        line.len()
    }
}

/// The verdicts on all budgets of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// True if the trace passes.
    pub passed: bool,
    /// The number of flaws found in the trace.
    pub flaws: u64,
    /// Allocations that are known to be missing from a damaged trace.
    pub lost_allocations: u64,
    /// One per budget.
    pub verdicts: Vec<Verdict>,
}

/// The result of checking a budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The budget.
    pub budget: String,
    /// True if it counts blocks rather than bytes.
    pub in_blocks: bool,
    /// The estimated value.
    pub value: Estimate,
    /// The limit.
    pub limit: f64,
    /// The outcome.
    pub outcome: Outcome,
    /// The functions that take most, if it was not.
    pub evidence: Vec<Evidence>,
    /// The value in the other trace; null if the limit is not another trace.
    pub before: Option<Estimate>,
    /// The amount by which the limit is exceeded, with the errors of both traces, which determines
    /// the outcome. Null if the limit is not another trace.
    pub excess: Option<Estimate>,
}

/// The outcome of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole 95 % interval is within the limit.
    Kept,
    /// The whole 95 % interval is beyond the limit.
    Broken,
    /// The limit is in the interval: more samples are needed to tell.
    TooClose,
}

/// A function that takes a part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// Its name.
    pub label: Label,
    /// Its memory.
    pub figures: Figures,
    /// The increase over the other trace; null if there is none.
    pub change: Option<Estimate>,
}

fn outcome(comparison: Comparison, value: Estimate, limit: f64) -> Outcome {
    match (
        comparison.holds(&value.low, &limit),
        comparison.holds(&value.high, &limit),
    ) {
        (true, true) => Outcome::Kept,
        (false, false) => Outcome::Broken,
        _ => Outcome::TooClose,
    }
}

fn evidence(scope: &Scope<'_>, in_blocks: bool) -> Vec<Evidence> {
    let groups = Groups::shared(scope.profile(), &by_function());
    let sums = groups.sums(scope);
    let key = |sum: &Amount| {
        if in_blocks {
            sum.blocks.value
        } else {
            sum.bytes.value
        }
    };
    let keys: Vec<f64> = sums.iter().map(key).collect();
    largest(&keys, EVIDENCE)
        .into_iter()
        .map(|group| Evidence {
            label: groups.labels[group].clone(),
            figures: Figures::new(&sums[group]),
            change: None,
        })
        .collect()
}

fn by_function() -> View {
    View {
        by: GroupBy::Function,
        ..View::default()
    }
}

/// Compares a profile to an earlier one: what was allocated, what was alive at the peak, and what
/// was alive at the end may not be more than before by more than a share of it.
#[must_use]
pub fn check_against(
    base: &Profile,
    profile: &Profile,
    tolerance: f64,
    estimator: Estimator,
) -> Vec<Verdict> {
    let all = |profile| Scope::new(profile, &Query::default(), estimator);
    let (before, after) = (all(base), all(profile));
    [
        ("allocated", before.clone(), after.clone()),
        ("live at peak", before.at_peak(), after.at_peak()),
        ("live at end", before.at_end(), after.at_end()),
    ]
    .into_iter()
    .map(|(name, before, after)| no_more(name, &before, &after, tolerance))
    .collect()
}

fn no_more(name: &str, before: &Scope<'_>, after: &Scope<'_>, tolerance: f64) -> Verdict {
    let (old, new): (Amount, Amount) = (before.total(), after.total());
    let allowed = old.bytes.scaled(1.0 + tolerance);
    // What is too much has the errors of both sides.
    let excess = new
        .bytes
        .change(allowed, Sum::default())
        .estimate_of_change();
    let outcome = outcome(Comparison::AtMost, excess, 0.0);
    let evidence = if outcome == Outcome::Kept {
        Vec::new()
    } else {
        let options = DiffOptions {
            rows: usize::MAX,
            ..DiffOptions::default()
        };
        diff(before, after, &options)
            .rows
            .into_iter()
            .filter(|row| row.change.bytes.value > 0.0)
            .take(EVIDENCE)
            .map(|row| Evidence {
                label: row.label,
                figures: row.change.after,
                change: Some(row.change.bytes),
            })
            .collect()
    };
    Verdict {
        budget: format!("{name} at most {:.0} % more than before", 100.0 * tolerance),
        in_blocks: false,
        value: after.profile().sampling().bytes(&new),
        limit: allowed.value,
        outcome,
        evidence,
        before: Some(before.profile().sampling().bytes(&old)),
        excess: Some(excess),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_understood() {
        let budget = Budget::parse("allocated where inside \"a < b\" and size > 3 < 1GiB").unwrap();
        assert_eq!(budget.query.text(), "inside \"a < b\" and size > 3");
        assert_eq!(budget.limit, Size::Bytes(1_073_741_824.0));
        let budget = Budget::parse("blocks live at 90% <= 10").unwrap();
        assert!(budget.in_blocks);
        assert_eq!(budget.comparison, Comparison::AtMost);
    }

    #[test]
    fn budgets_read_queries_as_queries_are_read() {
        for query in [
            "file = src/parser.ml",
            "inside /foo\\/bar/",
            "inside \"a where b\"",
            "size ≤ 3",
        ] {
            let budget = Budget::parse(&format!("allocated\twhere {query} < 1GiB")).unwrap();
            assert_eq!(budget.query, Query::parse(query).unwrap(), "{query}");
        }
    }

    #[test]
    fn blocks_are_counted_in_thousands() {
        let budget = Budget::parse("blocks allocated < 1.5M").unwrap();
        assert!((budget.limit(8.0) - 1.5e6).abs() < 1e-6);
        assert!(Budget::parse("blocks allocated < 1MiB").is_err());
    }

    #[test]
    fn errors_point_at_the_place() {
        let text = "allocated where sise > 3 < 1GiB";
        let error = Budget::parse(text).unwrap_err();
        assert_eq!(&text[error.start..error.end], "sise");
        let text = "leaked < 3";
        let error = Budget::parse(text).unwrap_err();
        assert_eq!(&text[error.start..error.end], "leaked");
        for text in ["", "<", "peak < lots", "peak", "live at < 3", "< 3 <"] {
            assert!(Budget::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn files_have_comments() {
        let file = "# limits\npeak < 1GiB # for now\n\nallocated where inside \"#\" < 1GiB\n";
        assert_eq!(Budget::parse_file(file).unwrap().len(), 2);
        assert_eq!(Budget::parse_file("peak < 1\npeek < 1").unwrap_err().0, 2);
    }

    #[test]
    fn what_is_uncertain_is_said_to_be() {
        let value = Estimate {
            value: 10.0,
            error: 2.0,
            low: 8.0,
            high: 12.0,
        };
        assert_eq!(outcome(Comparison::Less, value, 13.0), Outcome::Kept);
        assert_eq!(outcome(Comparison::Less, value, 11.0), Outcome::TooClose);
        assert_eq!(outcome(Comparison::Less, value, 7.0), Outcome::Broken);
        assert_eq!(outcome(Comparison::AtLeast, value, 7.0), Outcome::Kept);
    }
}
