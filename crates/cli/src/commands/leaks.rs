//! `heapline leaks`.

use anstyle::Style;
use heapline_profile::GrowthShape;
use heapline_profile::reports::{self, LeakOptions, Leaks};

use crate::draw::{Align, BAD, FAINT, Page, Table, WARN, sparkline};
use crate::question::{By, Json, Look, Question, quoted};
use crate::units::{
    bytes, count, estimated_bytes, estimated_change, label, percent, seconds, share,
};

/// Show what grows and never dies
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline leaks trace.ctf
  heapline leaks trace.ctf --by function --tail 20%
  heapline leaks trace.ctf --where 'heap = major and not inside \"Cache.*\"'")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    /// What is put together
    #[arg(long, value_enum, default_value_t = By::Site)]
    by: By,

    /// How old memory must be to count, as a share of the run: what is young may still die
    #[arg(long, default_value = "10%", value_name = "SHARE", value_parser = tail)]
    tail: f64,

    /// How many rows at most
    #[arg(long, default_value_t = 10, value_name = "N")]
    rows: usize,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    json: Json,
}

fn tail(text: &str) -> Result<f64, String> {
    match share(text)? {
        share if share <= 0.5 => Ok(share),
        _ => Err("it must be half of the run at most".to_owned()),
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let options = LeakOptions {
            view: self.look.view(self.by)?,
            tail: self.tail,
            rows: self.rows,
            ..LeakOptions::default()
        };
        let profile = self.question.load()?;
        let scope = self.question.scope(&profile)?;
        let report = reports::leaks(&scope, &options);
        self.json.print(&report, |report| self.text(report))
    }

    fn text(&self, report: &Leaks) -> String {
        let mut page = Page::default();
        page.title(&format!(
            "{} at the end is older than {}; since half-way that changed by {}",
            estimated_bytes(report.retained.bytes),
            seconds(report.min_age),
            estimated_change(report.growth)
        ));
        page.note(&format!(
            "A leak here: more memory older than {} ({} of the run) at the end than half-way,",
            seconds(report.min_age),
            percent(report.tail, 1.0)
        ));
        page.note("by more than the error of the difference.");
        page.gap();
        if report.rows.is_empty() {
            page.line(format_args!("Nothing is known to grow."));
        } else {
            let mut table = Table::new(
                &[
                    ("growth", Align::Right),
                    ("per second", Align::Right),
                    ("kept at end", Align::Right),
                    ("shape", Align::Left),
                    ("live over time", Align::Left),
                    (report.by.name(), Align::Left),
                ],
                5,
            )
            .droppable(&[1, 4, 2]);
            for row in &report.rows {
                let (shape, style) = shape(row.shape);
                let live: Vec<f64> = row
                    .live
                    .chunks(row.live.len().div_ceil(24))
                    .filter_map(|chunk| chunk.last().copied())
                    .collect();
                table.row(vec![
                    (estimated_change(row.growth), style),
                    (format!("{}/s", bytes(row.growth_per_second)), Style::new()),
                    (bytes(row.retained.bytes.value), Style::new()),
                    (shape.to_owned(), style),
                    (sparkline(&live), Style::new()),
                    (label(&row.label), Style::new()),
                ]);
            }
            page.block(&table.finish());
        }
        if report.hidden_rows > 0 {
            page.note(&format!(
                "{} more grow; --rows shows them.",
                count(report.hidden_rows as u64)
            ));
        }
        if report.steady_groups > 0 {
            page.note(&format!(
                "{} others keep {} and are not known to grow.",
                count(report.steady_groups as u64),
                bytes(report.steady.bytes.value)
            ));
        }
        let first = report.rows.first();
        if let Some(condition) = first.and_then(|row| self.by.condition(&row.label)) {
            page.next(&[(
                self.question.command(
                    "tree",
                    &format!(" --live end --bottom-up --where {}", quoted(&condition)),
                ),
                "who calls the first one",
            )]);
        }
        page.finish()
    }
}

fn shape(shape: GrowthShape) -> (&'static str, Style) {
    match shape {
        GrowthShape::Linear => ("linear", BAD),
        GrowthShape::Bounded => ("bounded", Style::new()),
        GrowthShape::Burst => ("burst", WARN),
        GrowthShape::Periodic => ("periodic", Style::new()),
        GrowthShape::Irregular => ("irregular", WARN),
        GrowthShape::Unclear => ("unclear", FAINT),
    }
}
