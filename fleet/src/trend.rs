//! `trend`: an amount over days or versions.

use std::collections::BTreeMap;

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use crate::compare::FALSE_DISCOVERY_RATE;
use crate::engine::Engine;
use crate::groups::{RunGroup, groups, run_groups};
use crate::keys::{Named, named, runs_first};
use crate::question::{By, Question, Subject};
use crate::statistics::{Change, Present, Sample, benjamini_hochberg};
use crate::top::Mean;

/// The options of `trend`.
#[derive(Args, Clone, Debug)]
pub struct TrendOptions {
    /// Set the amount, the sites and the runs
    #[command(flatten)]
    pub subject: Subject,
    /// Follow the first of these properties of runs, and show the others apart
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [By::Day])]
    pub by: Vec<By>,
}

/// An amount over days or versions.
#[derive(Debug, Serialize)]
pub struct Trend {
    /// The unit of the amounts: `bytes` or `blocks`.
    pub unit: &'static str,
    /// The name of the property that is followed.
    pub over: &'static str,
    /// The series: one, unless there are more properties.
    pub series: Vec<TrendSeries>,
    /// The number of steps that were tested.
    pub tested: usize,
    /// The number of significant steps.
    pub significant: usize,
}

/// The points of the runs that share the other properties.
#[derive(Debug, Serialize)]
pub struct TrendSeries {
    /// The other properties.
    pub group: Named,
    /// The points, in order.
    pub points: Vec<TrendPoint>,
}

/// The runs of a day or a version.
#[derive(Debug, Serialize)]
pub struct TrendPoint {
    /// The day or the version.
    pub name: String,
    /// The mean of its runs.
    #[serde(flatten)]
    pub mean: Mean,
    /// The change since the point before.
    pub step: Option<Step>,
}

/// A change since the point before.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Step {
    /// The difference of the means.
    pub change: f64,
    /// Half of its 95 % interval.
    pub error: f64,
    /// The difference in percent; `None` if there was nothing before.
    pub percent: Option<f64>,
    /// The probability of such a difference by chance; `None` if one run is all there is.
    pub p: Option<f64>,
    /// `p` adjusted for the number of steps.
    pub q: Option<f64>,
    /// True if `q` is at most the false discovery rate.
    pub is_significant: bool,
}

impl TrendOptions {
    fn properties(&self) -> anyhow::Result<Vec<By>> {
        let by = runs_first(&self.by);
        if let Some(by) = by.iter().find(|by| !by.is_of_runs()) {
            bail!(
                "--by {} is of sites; select sites with --where, such as 'site = \"Parser.*\"'",
                by.name()
            );
        }
        if by.is_empty() {
            bail!("--by needs a property to follow, such as day");
        }
        Ok(by)
    }

    /// Its statements.
    pub fn statements(&self) -> anyhow::Result<Vec<String>> {
        let by = self.properties()?;
        let question = Question {
            subject: &self.subject,
            by: &by,
            only: None,
        };
        Ok(vec![
            question.runs_statement(),
            question.groups_statement()?,
        ])
    }

    /// Answers it.
    pub async fn run(&self, engine: &Engine) -> anyhow::Result<Trend> {
        let by = self.properties()?;
        let question = Question {
            subject: &self.subject,
            by: &by,
            only: None,
        };
        let mut runs = run_groups(engine, &question).await?;
        let present: BTreeMap<Vec<String>, Present> = groups(engine, &question)
            .await?
            .into_iter()
            .map(|group| (group.keys, group.present))
            .collect();
        // Versions have no order of their own, but their first runs have.
        runs.sort_by(|a, b| (a.started_us, &a.keys).cmp(&(b.started_us, &b.keys)));
        let mut series = series(&by, &runs, &present);
        let mut steps: Vec<&mut Step> = series
            .iter_mut()
            .flat_map(|series| &mut series.points)
            .filter_map(|point| point.step.as_mut())
            .filter(|step| step.p.is_some())
            .collect();
        let p: Vec<f64> = steps.iter().filter_map(|step| step.p).collect();
        for (step, q) in steps.iter_mut().zip(benjamini_hochberg(&p)) {
            step.q = Some(q);
            step.is_significant = q <= FALSE_DISCOVERY_RATE;
        }
        let significant = steps.iter().filter(|step| step.is_significant).count();
        Ok(Trend {
            unit: self.subject.measure.unit(),
            over: by[0].name(),
            series,
            tested: p.len(),
            significant,
        })
    }
}

fn series(
    by: &[By],
    runs: &[RunGroup],
    present: &BTreeMap<Vec<String>, Present>,
) -> Vec<TrendSeries> {
    let mut samples: BTreeMap<&[String], Vec<(&str, Sample)>> = BTreeMap::new();
    for group in runs {
        let sample = match present.get(&group.keys) {
            Some(present) => Sample::new(group.runs, present),
            None => Sample::zero(group.runs),
        };
        samples
            .entry(&group.keys[1..])
            .or_default()
            .push((&group.keys[0], sample));
    }
    let points = |samples: &[(&str, Sample)]| -> Vec<TrendPoint> {
        let before = std::iter::once(None).chain(samples.iter().map(Some));
        let point =
            |((name, sample), before): (&(&str, Sample), Option<&(&str, Sample)>)| TrendPoint {
                name: (*name).to_owned(),
                mean: Mean::from(sample),
                step: before.map(|(_, before)| Step::between(before, sample)),
            };
        samples.iter().zip(before).map(point).collect()
    };
    samples
        .iter()
        .map(|(keys, samples)| TrendSeries {
            group: named(&by[1..], keys),
            points: points(samples),
        })
        .collect()
}

impl Step {
    fn between(before: &Sample, after: &Sample) -> Self {
        let change = Change::between(before, after);
        Self {
            change: change.value,
            error: change.error95,
            percent: (before.mean != 0.0).then(|| 100.0 * change.value / before.mean),
            p: change.p,
            q: None,
            is_significant: false,
        }
    }
}
