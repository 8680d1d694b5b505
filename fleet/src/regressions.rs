//! `regressions`: significant growth from one version of a service to the next.

use std::collections::BTreeMap;

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use crate::compare::{ChangeRow, Comparing, Comparison, Pair};
use crate::engine::Engine;
use crate::groups::RunGroup;
use crate::question::{By, Subject};

/// The options of `regressions`.
#[derive(Args, Clone, Debug)]
pub struct RegressionOptions {
    /// Set the amount, the sites and the runs
    #[command(flatten)]
    pub subject: Subject,
    /// Group by these properties of sites, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [By::Function])]
    pub by: Vec<By>,
    /// Compare to this version [default: the one before --after]
    #[arg(long, value_name = "VERSION")]
    pub before: Option<String>,
    /// Compare this version [default: the newest, by its first run]
    #[arg(long, value_name = "VERSION")]
    pub after: Option<String>,
    /// Show this many groups
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub rows: usize,
}

/// The significant growths of all services.
#[derive(Debug, Serialize)]
pub struct Regressions {
    /// The unit of the amounts: `bytes` or `blocks`.
    pub unit: &'static str,
    /// The services and the versions that are compared.
    pub services: Vec<Compared>,
    /// Services that have no two versions to compare.
    pub not_compared: Vec<String>,
    /// The number of groups that were tested.
    pub tested: usize,
    /// The growths, the largest first.
    pub rows: Vec<ChangeRow>,
    /// The number of growths that are not listed.
    pub hidden_rows: usize,
}

/// The versions of a service that are compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The service.
    pub service: String,
    /// The version before.
    pub before: String,
    /// The number of its runs.
    pub before_runs: u64,
    /// The version after.
    pub after: String,
    /// The number of its runs.
    pub after_runs: u64,
}

impl RegressionOptions {
    fn comparing(&self) -> anyhow::Result<Comparing> {
        if let Some(by) = self.by.iter().find(|by| by.is_of_runs()) {
            bail!(
                "--by {} is of runs; regressions compares the versions of each service",
                by.name()
            );
        }
        let mut by = vec![By::Version, By::Service];
        by.extend(&self.by);
        Comparing::new(&by)
    }

    /// The statements: the second depends on the versions that the first one finds.
    pub async fn statements(&self, engine: &Engine) -> anyhow::Result<Vec<String>> {
        let comparing = self.comparing()?;
        let runs = comparing.runs(engine, &self.subject).await?;
        let (services, _) = self.services(&runs);
        Ok(vec![
            comparing.runs_statement(&self.subject),
            comparing.groups_statement(&self.subject, &pairs(&services))?,
        ])
    }

    /// Answers it.
    pub async fn run(&self, engine: &Engine) -> anyhow::Result<Regressions> {
        let comparing = self.comparing()?;
        let runs = comparing.runs(engine, &self.subject).await?;
        let (services, not_compared) = self.services(&runs);
        if services.is_empty() {
            bail!(
                "no service has runs of two versions to compare; add traces with the label `version`"
            );
        }
        let Comparison {
            mut rows, tested, ..
        } = comparing
            .compare(engine, &self.subject, &runs, &pairs(&services))
            .await?;
        rows.retain(|row| row.is_significant && row.change > 0.0);
        let hidden_rows = rows.len().saturating_sub(self.rows);
        rows.truncate(self.rows);
        Ok(Regressions {
            unit: self.subject.measure.unit(),
            services,
            not_compared,
            tested,
            rows,
            hidden_rows,
        })
    }

    /// The versions to compare of each service, and the services without.
    fn services(&self, runs: &[RunGroup]) -> (Vec<Compared>, Vec<String>) {
        let mut by_service: BTreeMap<&str, Vec<&RunGroup>> = BTreeMap::new();
        for group in runs {
            let versions = by_service.entry(&group.keys[1]).or_default();
            // Runs without a version are neither old nor new.
            if !group.keys[0].is_empty() {
                versions.push(group);
            }
        }
        let mut compared = Vec::new();
        let mut others = Vec::new();
        for (service, mut versions) in by_service {
            versions.sort_by_key(|group| group.started_us);
            match self.versions(&versions) {
                Some((before, after)) => compared.push(Compared {
                    service: service.to_owned(),
                    before: before.keys[0].clone(),
                    before_runs: before.runs,
                    after: after.keys[0].clone(),
                    after_runs: after.runs,
                }),
                None => others.push(service.to_owned()),
            }
        }
        (compared, others)
    }

    /// The two versions to compare, of those of a service, the oldest first.
    fn versions<'a>(&self, versions: &[&'a RunGroup]) -> Option<(&'a RunGroup, &'a RunGroup)> {
        let find = |name: &str| versions.iter().position(|group| group.keys[0] == name);
        let before = match &self.before {
            Some(name) => Some(find(name)?),
            None => None,
        };
        let after = match &self.after {
            Some(name) => find(name)?,
            None => versions.iter().rposition(|_| true)?,
        };
        let before = before.map_or_else(|| after.checked_sub(1), Some)?;
        (before != after).then(|| (versions[before], versions[after]))
    }
}

fn pairs(services: &[Compared]) -> Vec<Pair> {
    let pair = |compared: &Compared| Pair {
        stratum: vec![compared.service.clone()],
        before: compared.before.clone(),
        after: compared.after.clone(),
    };
    services.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(version: &str, service: &str, started_us: i64) -> RunGroup {
        RunGroup {
            keys: vec![version.to_owned(), service.to_owned()],
            runs: 3,
            started_us,
        }
    }

    fn options(before: Option<&str>, after: Option<&str>) -> RegressionOptions {
        RegressionOptions {
            subject: Subject::default(),
            by: vec![By::Function],
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
            rows: 20,
        }
    }

    #[test]
    fn the_newest_version_started_last() {
        let runs = [
            group("1.9", "a", 5),
            group("1.10", "a", 7),
            group("1.8", "a", 1),
            group("", "a", 9),
            group("1.10", "b", 2),
        ];
        let names = |options: RegressionOptions| {
            let (compared, others) = options.services(&runs);
            let compared: Vec<_> = compared
                .into_iter()
                .map(|c| (c.service, c.before, c.after))
                .collect();
            (compared, others)
        };
        let of_a = |before: &str, after: &str| {
            (
                vec![("a".to_owned(), before.to_owned(), after.to_owned())],
                vec!["b".to_owned()],
            )
        };
        assert_eq!(names(options(None, None)), of_a("1.9", "1.10"));
        assert_eq!(names(options(None, Some("1.9"))), of_a("1.8", "1.9"));
        assert_eq!(names(options(Some("1.8"), None)), of_a("1.8", "1.10"));
        assert_eq!(names(options(Some("2.0"), None)).0, []);
    }
}
