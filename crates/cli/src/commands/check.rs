//! `heapline check`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use heapline_profile::reports::{self, Budget, Check, Outcome, Verdict};
use heapline_profile::{Estimator, Profile};
use heapline_text::{self as text, Context as TextContext, Screen};

use crate::input::Input;
use crate::question::{Json, load, share, warn_of_unmatched};

/// Check memory budgets; exit with code 1 if one is broken
///
/// A budget is broken if the whole 95 % interval of the estimate is beyond its limit. If the limit is
/// inside the interval, the budget is too close to call, which passes unless --sure is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline check trace.ctf --budget 'live at peak < 200MiB'
  heapline check trace.ctf --budget 'allocated where inside \"Parser.*\" < 1GiB'
  heapline check trace.ctf --budgets limits.txt --sure
  heapline check trace.ctf --against base.ctf --tolerance 5%

Syntax of budgets: [blocks] allocated|promoted|peak|live at TIME [where QUERY] < AMOUNT")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Check a budget (repeatable)
    #[arg(long, value_name = "BUDGET")]
    budget: Vec<String>,

    /// Check the budgets in a file, one per line; # starts a comment
    #[arg(long, value_name = "FILE")]
    budgets: Option<PathBuf>,

    /// Check that memory use is not higher than in this trace
    ///
    /// Compares memory allocated, live at the peak and live at the end.
    #[arg(long, value_name = "TRACE")]
    against: Option<PathBuf>,

    /// Allow this increase over the --against trace
    #[arg(long, default_value = "0%", value_name = "SHARE", value_parser = share, requires = "against")]
    tolerance: f64,

    /// Warn instead of failing if a name in a budget is not in the trace
    #[arg(long)]
    allow_missing: bool,

    /// Fail also if a budget is too close to call or the trace is damaged
    #[arg(long)]
    sure: bool,

    /// Select how samples are scaled to totals
    #[arg(long, value_enum, default_value_t)]
    estimator: Estimator,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<ExitCode> {
        let budgets = self.all_budgets()?;
        if budgets.is_empty() && self.against.is_none() {
            anyhow::bail!(
                "nothing to check; give --budget, --budgets or --against, \
                 such as --budget 'live at peak < 200MiB'"
            );
        }
        let profile = load(&self.input, false)?;
        for budget in &budgets {
            if budget.is_about_promotions() && !profile.header().tells.promotions {
                anyhow::bail!(
                    "cannot check '{}': this source does not tell promotions",
                    budget.text()
                );
            }
            self.check_names(budget, &profile)?;
        }
        let mut verdicts: Vec<Verdict> = budgets
            .iter()
            .map(|budget| budget.check(&profile, self.estimator))
            .collect();
        if let Some(base) = &self.against {
            let base = load(&self.input.reading.input(base), false)?;
            verdicts.extend(reports::check_against(
                &base,
                &profile,
                self.tolerance,
                self.estimator,
            ));
        }
        let passed = verdicts.iter().all(|verdict| match verdict.outcome {
            Outcome::Kept => true,
            Outcome::TooClose => !self.sure,
            Outcome::Broken => false,
        });
        let flaws = profile.damage().count;
        // The amounts of a damaged trace are too low.
        let passed = passed && !(self.sure && flaws > 0);
        let report = Check {
            passed,
            flaws,
            lost_allocations: profile.damage().lost_allocations,
            verdicts,
        };
        self.json.print(&report, |report| {
            text::check(report, &TextContext::new(screen))
        })?;
        Ok(ExitCode::from(u8::from(!passed)))
    }

    /// Refuses a budget with a name that is not in the trace: it would always be kept.
    fn check_names(&self, budget: &Budget, profile: &Profile) -> anyhow::Result<()> {
        if self.allow_missing {
            warn_of_unmatched(budget.query(), profile);
            return Ok(());
        }
        match budget.query().unmatched(profile).first() {
            None => Ok(()),
            Some(name) => anyhow::bail!(
                "cannot check '{}': the trace has no {name} (--allow-missing checks it anyway)",
                budget.text()
            ),
        }
    }

    fn all_budgets(&self) -> anyhow::Result<Vec<Budget>> {
        let mut budgets = Vec::new();
        for text in &self.budget {
            budgets.push(Budget::parse(text).context("cannot parse --budget")?);
        }
        if let Some(path) = &self.budgets {
            let name = path.display();
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
            let more = Budget::parse_file(&text).map_err(|(line, error)| {
                anyhow::Error::new(error).context(format!("{name}:{line}"))
            })?;
            budgets.extend(more);
        }
        Ok(budgets)
    }
}
