//! `diff`: changes between two groups of runs.

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use crate::compare::{ChangeRow, Comparing, Comparison, Pair};
use crate::engine::Engine;
use crate::groups::RunGroup;
use crate::question::{By, Subject};

/// The options of `diff`.
#[derive(Args, Clone, Debug)]
pub struct DiffOptions {
    /// Take runs with this value of the compared property as before
    #[arg(value_name = "A")]
    pub before: String,
    /// Take runs with this value of the compared property as after
    #[arg(value_name = "B")]
    pub after: String,
    /// Set the amount, the sites and the runs
    #[command(flatten)]
    pub subject: Subject,
    /// Compare runs by the first property of runs in this list, and group by the others
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [By::Version, By::Function])]
    pub by: Vec<By>,
    /// Show this many groups
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub rows: usize,
    /// Show only significant changes
    #[arg(long)]
    pub significant: bool,
}

/// The changes between two groups of runs.
#[derive(Debug, Serialize)]
pub struct Diff {
    /// The unit of the amounts: `bytes` or `blocks`.
    pub unit: &'static str,
    /// The name of the property in which the runs differ.
    pub compared: &'static str,
    /// Its value before.
    pub before: String,
    /// Its value after.
    pub after: String,
    /// The number of runs before.
    pub before_runs: u64,
    /// The number of runs after.
    pub after_runs: u64,
    /// The number of groups that were tested.
    pub tested: usize,
    /// The number of significant changes.
    pub significant: usize,
    /// The largest changes.
    pub rows: Vec<ChangeRow>,
    /// The number of changes that are not listed.
    pub hidden_rows: usize,
}

impl DiffOptions {
    fn comparing(&self) -> anyhow::Result<Comparing> {
        let mut by = self.by.clone();
        // `--by version` alone compares functions.
        if by.iter().all(|by| by.is_of_runs()) {
            by.push(By::Function);
        }
        Comparing::new(&by)
    }

    /// The statements: the second compares what the first has counted.
    pub fn statements(&self) -> anyhow::Result<Vec<String>> {
        let comparing = self.comparing()?;
        let pair = self.pair(Vec::new());
        Ok(vec![
            comparing.runs_statement(&self.subject),
            comparing.groups_statement(&self.subject, &[pair])?,
        ])
    }

    /// Answers it.
    pub async fn run(&self, engine: &Engine) -> anyhow::Result<Diff> {
        let comparing = self.comparing()?;
        let runs = comparing.runs(engine, &self.subject).await?;
        let name = comparing.compared.name();
        for value in [&self.before, &self.after] {
            if count(&runs, value) == 0 {
                let mut known: Vec<&str> = runs.iter().map(|group| &*group.keys[0]).collect();
                known.sort_unstable();
                known.dedup();
                known.truncate(20);
                bail!(
                    "no run has the {name} {value:?}; there are: {}",
                    known.join(", ")
                );
            }
        }
        let mut strata: Vec<Vec<String>> =
            runs.iter().map(|group| group.keys[1..].to_vec()).collect();
        strata.sort();
        strata.dedup();
        let pairs: Vec<Pair> = strata
            .into_iter()
            .map(|stratum| self.pair(stratum))
            .collect();
        let Comparison {
            mut rows,
            tested,
            significant,
        } = comparing
            .compare(engine, &self.subject, &runs, &pairs)
            .await?;
        if self.significant {
            rows.retain(|row| row.is_significant);
        }
        let hidden_rows = rows.len().saturating_sub(self.rows);
        rows.truncate(self.rows);
        Ok(Diff {
            unit: self.subject.measure.unit(),
            compared: name,
            before: self.before.clone(),
            after: self.after.clone(),
            before_runs: count(&runs, &self.before),
            after_runs: count(&runs, &self.after),
            tested,
            significant,
            rows,
            hidden_rows,
        })
    }

    fn pair(&self, stratum: Vec<String>) -> Pair {
        Pair {
            stratum,
            before: self.before.clone(),
            after: self.after.clone(),
        }
    }
}

/// The number of runs with this value of the compared property.
fn count(runs: &[RunGroup], value: &str) -> u64 {
    runs.iter()
        .filter(|group| group.keys[0] == value)
        .map(|group| group.runs)
        .sum()
}
