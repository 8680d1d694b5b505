//! `top`: the groups that cost most.

use clap::Args;
use serde::Serialize;

use crate::engine::Engine;
use crate::groups::{groups, run_groups};
use crate::keys::{Named, named, runs_by_keys, runs_first};
use crate::question::{By, Question, Subject};
use crate::statistics::Sample;

/// The options of `top`.
#[derive(Args, Clone, Debug)]
pub struct TopOptions {
    /// Set the amount, the sites and the runs
    #[command(flatten)]
    pub subject: Subject,
    /// Group by these, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [By::Service, By::Function])]
    pub by: Vec<By>,
    /// Show this many groups
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub rows: usize,
}

/// The groups with the largest means.
#[derive(Debug, Serialize)]
pub struct Top {
    /// The unit of the amounts: `bytes` or `blocks`.
    pub unit: &'static str,
    /// The number of runs.
    pub runs: u64,
    /// The groups, the largest first.
    pub rows: Vec<TopRow>,
    /// The number of groups that are not listed.
    pub hidden_rows: usize,
}

/// A group.
#[derive(Debug, Serialize)]
pub struct TopRow {
    /// Its properties.
    pub group: Named,
    /// The mean over its runs.
    #[serde(flatten)]
    pub mean: Mean,
    /// Its share of all runs that were selected, in percent.
    pub percent: f64,
}

/// A mean over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// The number of runs, with those that have nothing.
    pub runs: u64,
    /// The mean of a run.
    pub mean: f64,
    /// Its standard error: run-to-run variation and sampling error.
    pub standard_error: f64,
    /// Half of its 95 % interval.
    pub error: f64,
}

impl From<&Sample> for Mean {
    fn from(sample: &Sample) -> Self {
        Self {
            runs: sample.runs,
            mean: sample.mean,
            standard_error: sample.standard_error(),
            error: sample.error95(),
        }
    }
}

impl TopOptions {
    /// Its statements.
    pub fn statements(&self) -> anyhow::Result<Vec<String>> {
        let by = runs_first(&self.by);
        let question = self.question(&by);
        Ok(vec![
            question.runs_statement(),
            question.groups_statement()?,
        ])
    }

    /// Answers it.
    pub async fn run(&self, engine: &Engine) -> anyhow::Result<Top> {
        let by = runs_first(&self.by);
        let question = self.question(&by);
        let runs = run_groups(engine, &question).await?;
        let counts = runs_by_keys(&runs);
        let of_runs = by.iter().filter(|by| by.is_of_runs()).count();
        let mut rows: Vec<(Vec<String>, Sample)> = groups(engine, &question)
            .await?
            .into_iter()
            .map(|group| {
                let runs = counts.get(&group.keys[..of_runs]).copied().unwrap_or(0);
                (group.keys, Sample::new(runs, &group.present))
            })
            .collect();
        rows.sort_by(|a, b| b.1.mean.total_cmp(&a.1.mean).then_with(|| a.0.cmp(&b.0)));
        let total: f64 = rows
            .iter()
            .map(|(_, sample)| sample.mean * sample.runs as f64)
            .sum();
        let hidden_rows = rows.len().saturating_sub(self.rows);
        rows.truncate(self.rows);
        let rows = rows.into_iter().map(|(keys, sample)| TopRow {
            group: named(&by, &keys),
            mean: Mean::from(&sample),
            percent: 100.0 * sample.mean * sample.runs as f64 / total.max(f64::MIN_POSITIVE),
        });
        Ok(Top {
            unit: self.subject.measure.unit(),
            runs: runs.iter().map(|group| group.runs).sum(),
            rows: rows.collect(),
            hidden_rows,
        })
    }

    fn question<'a>(&'a self, by: &'a [By]) -> Question<'a> {
        Question {
            subject: &self.subject,
            by,
            only: None,
        }
    }
}
