//! Compares two groups of runs, site by site.

use std::collections::{BTreeMap, HashMap};

use anyhow::bail;
use serde::Serialize;

use crate::engine::Engine;
use crate::groups::{Group, RunGroup, groups, run_groups};
use crate::keys::{Named, named, runs_by_keys, runs_first};
use crate::question::{By, Question, Subject};
use crate::statistics::{Change, Present, Sample, benjamini_hochberg};
use crate::top::Mean;

/// The share of false discoveries that is accepted among changes called significant.
pub const FALSE_DISCOVERY_RATE: f64 = 0.05;

/// Two groups of runs to compare, among the runs of a stratum such as a service.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The other properties of the runs, which both groups share.
    pub stratum: Vec<String>,
    /// The value of the compared property before.
    pub before: String,
    /// Its value after.
    pub after: String,
}

/// A comparison of runs that differ in a property.
#[derive(Debug)]
pub struct Comparing {
    /// The property.
    pub compared: By,
    /// The properties of strata, and then of sites.
    pub by: Vec<By>,
}

impl Comparing {
    /// Splits the properties of a command into the compared one, which is the first of runs, and others.
    pub fn new(by: &[By]) -> anyhow::Result<Self> {
        let mut by = runs_first(by);
        if !by.first().is_some_and(|by| by.is_of_runs()) {
            bail!("--by needs a property of runs to compare, such as version");
        }
        Ok(Self {
            compared: by.remove(0),
            by,
        })
    }

    fn strata(&self) -> usize {
        self.by.iter().filter(|by| by.is_of_runs()).count()
    }

    /// All properties, as the question has them.
    fn all(&self) -> Vec<By> {
        let mut all = vec![self.compared];
        all.extend(&self.by);
        all
    }

    /// The statement that counts runs.
    pub(crate) fn runs_statement(&self, subject: &Subject) -> String {
        Question {
            subject,
            by: &self.all(),
            only: None,
        }
        .runs_statement()
    }

    /// The runs of the dataset, by the compared property and stratum.
    pub(crate) async fn runs(
        &self,
        engine: &Engine,
        subject: &Subject,
    ) -> anyhow::Result<Vec<RunGroup>> {
        run_groups(
            engine,
            &Question {
                subject,
                by: &self.all(),
                only: None,
            },
        )
        .await
    }

    /// The statement that has the groups of the compared runs.
    pub(crate) fn groups_statement(
        &self,
        subject: &Subject,
        pairs: &[Pair],
    ) -> anyhow::Result<String> {
        self.question(subject, &self.all(), pairs)
            .groups_statement()
    }

    /// Compares the pairs.
    pub(crate) async fn compare(
        &self,
        engine: &Engine,
        subject: &Subject,
        runs: &[RunGroup],
        pairs: &[Pair],
    ) -> anyhow::Result<Comparison> {
        let all = self.all();
        let groups = groups(engine, &self.question(subject, &all, pairs)).await?;
        Ok(Comparison::new(self, runs, &groups, pairs))
    }

    fn question<'a>(&self, subject: &'a Subject, by: &'a [By], pairs: &[Pair]) -> Question<'a> {
        let mut values: Vec<String> = pairs
            .iter()
            .flat_map(|pair| [pair.before.clone(), pair.after.clone()])
            .collect();
        values.sort();
        values.dedup();
        Question {
            subject,
            by,
            only: Some((self.compared, values)),
        }
    }
}

/// The changes of all groups.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The changes, the largest first.
    pub rows: Vec<ChangeRow>,
    /// The number of changes that were tested for significance.
    pub tested: usize,
    /// The number of significant ones.
    pub significant: usize,
}

/// The change of a group.
#[derive(Debug, Serialize)]
pub struct ChangeRow {
    /// The properties of the group.
    pub group: Named,
    /// The value of the compared property before.
    pub before_name: String,
    /// Its value after.
    pub after_name: String,
    /// The mean before.
    pub before: Mean,
    /// The mean after.
    pub after: Mean,
    /// The difference of the means.
    pub change: f64,
    /// Half of its 95 % interval.
    pub error: f64,
    /// The difference in percent; `None` if there was nothing before.
    pub percent: Option<f64>,
    /// The probability of such a difference by chance; `None` if one run is all there is.
    pub p: Option<f64>,
    /// `p` adjusted for the number of groups.
    pub q: Option<f64>,
    /// True if `q` is at most the false discovery rate.
    pub is_significant: bool,
}

/// The values of each name, by compared property.
type ByName<'a> = BTreeMap<&'a [String], HashMap<&'a str, &'a Present>>;

impl Comparison {
    /// Compares groups of which the first property is the compared one, and the next are of strata.
    #[must_use]
    pub fn new(comparing: &Comparing, runs: &[RunGroup], groups: &[Group], pairs: &[Pair]) -> Self {
        let counts = runs_by_keys(runs);
        let strata = comparing.strata();
        // By stratum, then by name; a value for each compared property.
        let mut by_stratum: HashMap<&[String], ByName<'_>> = HashMap::new();
        for group in groups {
            let (value, keys) = (&group.keys[0], &group.keys[1..]);
            let names = by_stratum.entry(&keys[..strata]).or_default();
            names.entry(keys).or_default().insert(value, &group.present);
        }
        let mut rows = Vec::new();
        for pair in pairs {
            let count = |value: &str| {
                let mut keys = vec![value.to_owned()];
                keys.extend(pair.stratum.iter().cloned());
                counts.get(&keys[..]).copied().unwrap_or(0)
            };
            let (before_runs, after_runs) = (count(&pair.before), count(&pair.after));
            if before_runs == 0 || after_runs == 0 {
                continue;
            }
            for (keys, values) in by_stratum.get(&pair.stratum[..]).into_iter().flatten() {
                let sample = |value: &str, runs| match values.get(value) {
                    Some(present) => Sample::new(runs, present),
                    None => Sample::zero(runs),
                };
                let before = sample(&pair.before, before_runs);
                let after = sample(&pair.after, after_runs);
                if before.mean == 0.0 && after.mean == 0.0 {
                    continue;
                }
                rows.push(ChangeRow::new(
                    named(&comparing.by, keys),
                    pair,
                    &before,
                    &after,
                ));
            }
        }
        let p: Vec<f64> = rows.iter().filter_map(|row| row.p).collect();
        let mut adjusted = benjamini_hochberg(&p).into_iter();
        for row in &mut rows {
            row.q = row.p.and_then(|_| adjusted.next());
            row.is_significant = row.q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE);
        }
        rows.sort_by(|a, b| {
            let size = b.change.abs().total_cmp(&a.change.abs());
            size.then_with(|| {
                a.group
                    .0
                    .iter()
                    .map(|(_, key)| key)
                    .cmp(b.group.0.iter().map(|(_, key)| key))
            })
        });
        Self {
            tested: p.len(),
            significant: rows.iter().filter(|row| row.is_significant).count(),
            rows,
        }
    }
}

impl ChangeRow {
    fn new(group: Named, pair: &Pair, before: &Sample, after: &Sample) -> Self {
        let change = Change::between(before, after);
        Self {
            group,
            before_name: pair.before.clone(),
            after_name: pair.after.clone(),
            before: Mean::from(before),
            after: Mean::from(after),
            change: change.value,
            error: change.error95,
            percent: (before.mean != 0.0).then(|| 100.0 * change.value / before.mean),
            p: change.p,
            q: None,
            is_significant: false,
        }
    }
}
