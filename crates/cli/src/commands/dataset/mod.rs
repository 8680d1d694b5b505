//! `heapline dataset`.

mod add;
mod check;
mod list;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use heapline_text::Screen;

use super::fleet;

/// Collect the profiles of many runs in Parquet tables that SQL engines query
///
/// A dataset is a folder with tables of runs, allocation sites, sampled blocks, stacks and frames. docs/dataset.md
/// describes them, with recipes for DuckDB, polars and Spark. Datasets in object stores (s3://) need the program
/// heapline-fleet.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Add(add::Args),
    List(list::Args),
    Check(check::Args),
}

/// The dataset that a command is about.
#[derive(Clone, Debug, clap::Args)]
struct Address {
    /// Dataset: a folder, or an address such as `s3://bucket/profiles`
    #[arg(value_name = "DATASET")]
    dataset: PathBuf,
}

/// Returns true for the addresses of datasets in object stores.
pub(super) fn is_remote(dataset: &Path) -> bool {
    let address = dataset.to_string_lossy();
    address
        .split_once("://")
        .is_some_and(|(scheme, _)| scheme.bytes().all(|c| c.is_ascii_alphanumeric()))
}

impl Args {
    pub(crate) fn run(self, screen: Screen) -> anyhow::Result<ExitCode> {
        let address = match &self.command {
            Command::Add(args) => &args.address,
            Command::List(args) => &args.address,
            Command::Check(args) => &args.address,
        };
        if is_remote(&address.dataset) {
            return fleet::run_same_arguments("dataset");
        }
        match self.command {
            Command::Add(args) => args.run(),
            Command::List(args) => args.run(screen),
            Command::Check(args) => args.run(),
        }
    }
}
