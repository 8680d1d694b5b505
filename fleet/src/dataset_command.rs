//! `heapline-fleet dataset`: adds to, lists and checks datasets in object stores.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use heapline_dataset::{Labels, RunList, text};
use heapline_fleet::{Added, Bucket, message, with_progress};

use crate::print::print;

#[derive(Subcommand)]
pub(crate) enum DatasetCommand {
    /// Add traces, each as a run
    Add {
        #[command(flatten)]
        address: Address,
        /// Add these traces
        #[arg(value_name = "TRACE", required = true)]
        traces: Vec<PathBuf>,
        /// Label the runs, such as version=1.4; may be repeated [default: none]
        #[arg(long, value_name = "KEY=VALUE")]
        label: Vec<String>,
    },
    /// List the runs
    List {
        #[command(flatten)]
        address: Address,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check that all runs are complete and consistent; exit with code 1 if not
    ///
    /// Fetches all tables, run by run.
    Check {
        #[command(flatten)]
        address: Address,
        /// Remove what adds that were killed left behind more than a day ago
        #[arg(long)]
        repair: bool,
    },
}

#[derive(Args)]
pub(crate) struct Address {
    /// Use this dataset, which `add` creates if it does not exist: `s3://BUCKET/PREFIX`
    #[arg(value_name = "URL")]
    dataset: String,
}

impl Address {
    fn open(&self, command: &str) -> anyhow::Result<Bucket> {
        let dataset = &self.dataset;
        Bucket::parse(dataset)?
            .with_context(|| format!("{dataset} is a folder; use: heapline dataset {command}"))
    }
}

impl DatasetCommand {
    pub(crate) async fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Add {
                address,
                traces,
                label,
            } => add(&address.open("add")?, traces, label).await,
            Self::List { address, json } => list(&address.open("list")?, *json).await,
            Self::Check { address, repair } => check(&address.open("check")?, *repair).await,
        }
    }
}

async fn add(bucket: &Bucket, traces: &[PathBuf], labels: &[String]) -> anyhow::Result<ExitCode> {
    let labels = Labels::parse(labels)?;
    let mut out = io::stdout();
    let mut code = ExitCode::SUCCESS;
    for trace in traces {
        let name = trace.display();
        let added = with_progress(bucket.add(trace, &labels)).await;
        let line = match added.with_context(|| format!("cannot add {name}")) {
            Ok(Added::New(run)) => format!("{name}: added as {run}"),
            Ok(Added::Known(run)) => format!("{name}: already there as {run}"),
            Err(error) => {
                eprintln!("heapline-fleet: {}", message(&error));
                code = ExitCode::from(2);
                continue;
            }
        };
        out.write_all(text::line(&line).as_bytes())?;
    }
    Ok(code)
}

async fn list(bucket: &Bucket, json: bool) -> anyhow::Result<ExitCode> {
    let mut runs = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for info in with_progress(bucket.run_infos()).await? {
        match info {
            Ok(info) => runs.push(info),
            Err(error) => {
                eprintln!("heapline-fleet: {}", message(&error.into()));
                code = ExitCode::from(2);
            }
        }
    }
    print(&RunList { runs }, json, |list, screen| {
        text::runs(&list.runs, screen)
    })?;
    Ok(code)
}

async fn check(bucket: &Bucket, repair: bool) -> anyhow::Result<ExitCode> {
    let verdict = with_progress(bucket.check(repair)).await?;
    io::stdout().write_all(text::verdict(&verdict, repair).as_bytes())?;
    Ok(ExitCode::from(u8::from(!verdict.is_good(repair))))
}
