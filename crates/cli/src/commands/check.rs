//! `heapline check`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use heapline_profile::reports::{self, Budget, Check, Outcome, Verdict};
use heapline_profile::{Estimator, Profile};
use heapline_text::{self as text, Context as TextContext, Screen};

use crate::input::Input;
use crate::question::{Json, load, share, warn_of_unmatched};

/// Check that a trace keeps to budgets; exit with 1 if it does not
///
/// A budget is broken if the whole 95 % interval of the estimate is beyond it. If the limit is
/// inside the interval, it is too close to call: that is said, and passes, unless --sure is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline check trace.ctf --budget 'live at peak < 200MiB'
  heapline check trace.ctf --budget 'allocated where inside \"Parser.*\" < 1GiB'
  heapline check trace.ctf --budgets limits.txt --sure
  heapline check trace.ctf --against base.ctf --tolerance 5%

A budget is: [blocks] allocated|promoted|peak|live at TIME [where QUERY] < AMOUNT")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// A budget; may be given several times
    #[arg(long, value_name = "BUDGET")]
    budget: Vec<String>,

    /// A file of budgets, one a line; what follows # does not count
    #[arg(long, value_name = "FILE")]
    budgets: Option<PathBuf>,

    /// Another trace: allocated, live at peak and live at end may not be more than there
    #[arg(long, value_name = "TRACE")]
    against: Option<PathBuf>,

    /// How much more than in the other trace is allowed
    #[arg(long, default_value = "0%", value_name = "SHARE", value_parser = share, requires = "against")]
    tolerance: f64,

    /// Check budgets also if nothing in the trace has a name that they use, instead of failing
    #[arg(long)]
    allow_missing: bool,

    /// Fail also if it is too close to call, or if the trace is damaged
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
                "there is nothing to check; give --budget, --budgets or --against, \
                 as in --budget 'live at peak < 200MiB'"
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
            let base = Input {
                trace: base.clone(),
                strict: self.input.strict,
            };
            let base = load(&base, false)?;
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
        // A damaged trace has less than there was.
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

    /// A budget for a name that nothing has would always be kept.
    fn check_names(&self, budget: &Budget, profile: &Profile) -> anyhow::Result<()> {
        if self.allow_missing {
            warn_of_unmatched(budget.query(), profile);
            return Ok(());
        }
        match budget.query().unmatched(profile).first() {
            None => Ok(()),
            Some(name) => anyhow::bail!(
                "cannot check '{}': the trace has no {name} (--allow-missing checks it all the same)",
                budget.text()
            ),
        }
    }

    fn all_budgets(&self) -> anyhow::Result<Vec<Budget>> {
        let mut budgets = Vec::new();
        for text in &self.budget {
            budgets.push(Budget::parse(text).context("cannot understand --budget")?);
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
