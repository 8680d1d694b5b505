//! Finds conditions about things that a source does not tell.

use heapline_model::Capabilities;

use super::Query;
use super::amount::TimePoint;
use super::ast::{Clause, Expr};
use super::words::Need;

/// Why a query cannot be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untold {
    /// The source does not tell of something.
    #[error("this source does not tell {0}")]
    Of(&'static str),
    /// The query needs to know what became of blocks between two moments.
    #[error(
        "this source has snapshots only, which do not tell what became of blocks in between; \
         a query can be about one moment"
    )]
    Between,
    /// The query is about a moment, and the report about others.
    #[error(
        "this source has snapshots only, which do not tell what became of blocks in between; \
         `hotspots`, `tree` and `flame` can show one moment"
    )]
    OtherMoments,
}

impl Query {
    /// The first thing that it asks for and a source does not tell. `many` is true if the report
    /// is about several moments itself.
    #[must_use]
    pub fn untold(&self, tells: Capabilities, many: bool) -> Option<Untold> {
        let mut clauses = Vec::new();
        if let Some(expr) = &self.expr {
            collect(expr, &mut clauses);
        }
        let mut needs = clauses.iter().map(|clause| clause.need());
        let thing = needs.find_map(|need| match need {
            Need::Sizes if !tells.sizes => Some("the sizes of blocks"),
            Need::Lanes if !tells.lanes => Some("domains"),
            Need::Lifetimes if !tells.lifetimes => Some("when blocks died"),
            // Not asked of `promotions`: `heap = native` selects the blocks of a Rust program.
            Need::Promotions if !tells.lifetimes => Some("promotions"),
            _ => None,
        });
        if let Some(thing) = thing {
            return Some(Untold::Of(thing));
        }
        match clauses.iter().filter(|clause| is_of_time(clause)).count() {
            _ if tells.lifetimes => None,
            0 => None,
            1 if !many => None,
            1 => Some(Untold::OtherMoments),
            _ => Some(Untold::Between),
        }
    }
}

impl Query {
    /// Returns true if it is about some moment or time.
    pub(crate) fn is_of_time(&self) -> bool {
        self.has(is_of_time)
    }

    /// Returns true if it is about what is live at the peak.
    pub(crate) fn is_of_peak(&self) -> bool {
        self.has(|clause| matches!(clause, Clause::LiveAt(TimePoint::Peak)))
    }

    fn has(&self, is_it: impl Fn(&Clause) -> bool) -> bool {
        let mut clauses = Vec::new();
        if let Some(expr) = &self.expr {
            collect(expr, &mut clauses);
        }
        clauses.into_iter().any(is_it)
    }
}

impl Clause {
    fn need(&self) -> Need {
        match self {
            Self::LiveAt(_)
            | Self::Allocated(_)
            | Self::Inside(..)
            | Self::Site(..)
            | Self::Chain(_)
            | Self::Line(_)
            | Self::Address(_) => Need::Nothing,
            Self::LiveIn(_) | Self::Collected(_) | Self::Lifetime(_) => Need::Lifetimes,
            Self::Promoted(_) | Self::Heap(_) => Need::Promotions,
            Self::Size(_) | Self::Samples(_) => Need::Sizes,
            Self::Domain(_) => Need::Lanes,
        }
    }
}

/// The moments at which blocks are to be live.
pub(super) fn moments(expr: &Expr) -> impl Iterator<Item = &TimePoint> {
    let mut clauses = Vec::new();
    collect(expr, &mut clauses);
    clauses.into_iter().filter_map(|clause| match clause {
        Clause::LiveAt(time) => Some(time),
        _ => None,
    })
}

fn is_of_time(clause: &Clause) -> bool {
    matches!(clause, Clause::LiveAt(_) | Clause::Allocated(_))
}

fn collect<'a>(expr: &'a Expr, clauses: &mut Vec<&'a Clause>) {
    match expr {
        Expr::All(parts) | Expr::Any(parts) => {
            for part in parts {
                collect(part, clauses);
            }
        }
        Expr::Not(part) => collect(part, clauses),
        Expr::Clause(clause) => clauses.push(clause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_answer_questions_about_one_moment() {
        let tells = Capabilities {
            lifetimes: false,
            promotions: false,
            gc_parameters: false,
            lanes: false,
            sizes: false,
        };
        let untold = |text: &str, many| Query::parse(text).unwrap().untold(tells, many);
        assert_eq!(untold("inside \"List.*\"", true), None);
        assert_eq!(untold("live at peak and site = f", false), None);
        assert_eq!(untold("live at peak", true), Some(Untold::OtherMoments));
        assert_eq!(
            untold("live at peak and not live at end", false),
            Some(Untold::Between)
        );
        assert_eq!(
            untold("lifetime > 1s", false),
            Some(Untold::Of("when blocks died"))
        );
        assert_eq!(
            untold("not (size > 1k or line = 3)", false),
            Some(Untold::Of("the sizes of blocks"))
        );
        assert_eq!(
            untold("heap = major", false),
            Some(Untold::Of("promotions"))
        );
        let all = Capabilities {
            lifetimes: true,
            promotions: true,
            gc_parameters: true,
            lanes: true,
            sizes: true,
        };
        let query = Query::parse("live at peak and not live at end and lifetime > 1s").unwrap();
        assert_eq!(query.untold(all, true), None);
    }
}
