//! Memory that is freed soon after it was allocated.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use serde::{Serialize, Serializer};

use super::{Figures, Subject, largest};
use crate::amount::Amount;
use crate::groups::{GroupBy, Groups, Label};
use crate::options::{self, Look, MAX_ROWS};
use crate::query::{self, TimePoint};
use crate::scope::Scope;
use crate::selection::Stay;
use crate::short_lives::ShortLives;
use crate::store::NEVER;

/// Options of [`temporary`].
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TemporaryOptions {
    /// Group by
    #[arg(long, value_enum, default_value_t = GroupBy::Site)]
    pub by: GroupBy,

    /// Count blocks that lived no longer than this, such as 10ms or 1.5s
    #[arg(long, default_value = "10ms", value_name = "DURATION")]
    pub within: Within,

    /// Limit the number of rows
    #[arg(long, short = 'n', alias = "top", default_value_t = 10, value_name = "N", value_parser = options::number(0, MAX_ROWS))]
    pub rows: usize,

    /// Which functions are shown, and how
    #[command(flatten)]
    #[serde(flatten)]
    pub look: Look,
}

impl Default for TemporaryOptions {
    fn default() -> Self {
        options::defaults()
    }
}

/// The longest lifetime of temporary blocks in microseconds, written `10ms` or `1.5s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Within(pub u64);

impl FromStr for Within {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match query::time_point(text) {
            Some(TimePoint::Micros(micros)) => Ok(Self(micros)),
            _ => Err("expected a duration such as 10ms or 1.5s"),
        }
    }
}

impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The largest unit that is exact, so that every duration has one text.
        let (unit, name) = [(1_000_000, "s"), (1000, "ms")]
            .into_iter()
            .find(|(unit, _)| self.0.is_multiple_of(*unit))
            .unwrap_or((1, "us"));
        write!(f, "{}{name}", self.0 / unit)
    }
}

impl Serialize for Within {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Memory that is freed soon after it was allocated.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Temporary {
    /// The blocks in scope.
    pub subject: Subject,
    /// The kind of the groups.
    pub by: GroupBy,
    /// Seconds that temporary blocks live at most.
    pub within: f64,
    /// All groups together.
    pub total: TemporaryFigures,
    /// The groups with the most temporary memory, largest first.
    pub rows: Vec<TemporaryGroup>,
    /// Groups with temporary memory that are not shown.
    pub hidden_rows: usize,
}

/// A group with temporary memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TemporaryGroup {
    /// The name of the group.
    pub label: Label,
    /// Its memory.
    #[serde(flatten)]
    pub figures: TemporaryFigures,
}

/// Temporary memory and what it is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TemporaryFigures {
    /// Memory that was freed in time.
    pub temporary: Figures,
    /// The part of it that was promoted to the major heap before.
    pub promoted: Figures,
    /// All memory that was allocated.
    pub allocated: Figures,
}

/// The temporary memory among the blocks in scope.
#[must_use]
pub fn temporary(scope: &Scope<'_>, options: &TemporaryOptions) -> Temporary {
    let look = options.look.of_list(options.by);
    let groups = Groups::shared(scope.profile(), &look.view(options.by));
    let marks = TemporaryMarks::new(scope, options);
    let by_group = groups.sums_of(scope, |stay| marks.of(stay));
    temporary_of_sums(scope, options, &groups, &by_group)
}

/// Tells which blocks are temporary.
pub(super) struct TemporaryMarks<'a>(ShortLives<'a>);

impl<'a> TemporaryMarks<'a> {
    pub(super) fn new(scope: &Scope<'a>, options: &TemporaryOptions) -> Self {
        Self(ShortLives::new(scope.profile(), options.within.0))
    }

    /// The marks of a block: temporary, temporary and promoted, and one that all blocks have.
    #[inline]
    pub(super) fn of(&self, stay: Stay) -> [bool; 3] {
        let is_temporary = stay.death != NEVER && self.0.has(stay, stay.birth, stay.death);
        [is_temporary, is_temporary && stay.is_promoted(), true]
    }
}

/// The temporary memory among the blocks in scope, given the sums of each mark by group.
pub(super) fn temporary_of_sums(
    scope: &Scope<'_>,
    options: &TemporaryOptions,
    groups: &Groups,
    by_group: &[[Amount; 3]],
) -> Temporary {
    let look = options.look.of_list(options.by);
    let Within(within) = options.within;
    let mut total = [Amount::default(); 3];
    for sums in by_group {
        for (total, sum) in total.iter_mut().zip(sums) {
            *total += *sum;
        }
    }
    let bytes: Vec<f64> = by_group.iter().map(|[sum, ..]| sum.bytes.value).collect();
    let order = largest(&bytes, usize::MAX);
    let shown = &order[..order.len().min(options.rows)];
    let rows = shown.iter().map(|&group| TemporaryGroup {
        label: groups.labels[group].clone(),
        figures: figures(by_group[group].map(|sum| Figures::new(&sum))),
    });
    Temporary {
        subject: Subject::with_look(scope, &look),
        by: options.by,
        within: within as f64 / 1e6,
        total: figures(total.map(|sum| Figures::of_total(scope, &sum))),
        rows: rows.collect(),
        hidden_rows: order.len() - shown.len(),
    }
}

fn figures([temporary, promoted, allocated]: [Figures; 3]) -> TemporaryFigures {
    TemporaryFigures {
        temporary,
        promoted,
        allocated,
    }
}

#[cfg(test)]
mod tests {
    use heapline_model::{Batch, Birth, Damage, InputSize, Space};

    use super::*;
    use crate::query::Query;
    use crate::sampling::Estimator;
    use crate::store::{Store, StoreOptions};
    use crate::testing::exact_header;

    #[test]
    fn durations_have_one_text() {
        for text in ["0s", "10ms", "1500ms", "250us", "90s"] {
            assert_eq!(text.parse::<Within>().unwrap().to_string(), text);
        }
        assert_eq!("1.5s".parse::<Within>().unwrap().to_string(), "1500ms");
        assert!("10".parse::<Within>().is_err());
    }

    /// Blocks of 100 bytes that live 1 to 10 ms and for ever, every other one promoted.
    #[test]
    fn blocks_count_that_died_in_time() {
        let mut store = Store::new(exact_header(), StoreOptions::default());
        let birth = Birth {
            size: 100,
            samples: 1,
            space: Space::Native,
            ..Birth::default()
        };
        let mut batch = Batch::default();
        for block in 0..11 {
            batch.birth(0, 0, block, birth, [].into_iter());
        }
        for block in 1..11 {
            if block % 2 == 0 {
                batch.promotion(block * 1000, 0, block);
            }
            batch.death(block * 1000, 0, block);
        }
        store.append(&batch);
        let profile = store.finish(Damage::default(), InputSize::default());
        let scope = Scope::new(&profile, &Query::default(), Estimator::default());
        // Whole numbers, since every block was recorded.
        let bytes = |within: u64| {
            let options = TemporaryOptions {
                within: Within(within),
                ..TemporaryOptions::default()
            };
            let total = temporary(&scope, &options).total;
            [total.temporary, total.promoted, total.allocated]
                .map(|figures| format!("{}", figures.bytes.value))
        };
        assert_eq!(bytes(999), ["0", "0", "1100"]);
        assert_eq!(bytes(5000), ["500", "200", "1100"]);
        assert_eq!(bytes(1_000_000), ["1000", "500", "1100"]);
    }
}
