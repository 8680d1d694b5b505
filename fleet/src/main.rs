//! `heapline-fleet`: questions to many runs. `heapline fleet` runs it.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it is a program that talks to its user"
)]

mod dataset_command;
mod print;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use heapline_fleet::diff::DiffOptions;
use heapline_fleet::regressions::RegressionOptions;
use heapline_fleet::top::TopOptions;
use heapline_fleet::trend::TrendOptions;
use heapline_fleet::{
    Dataset, Engine, Measure, OutputOptions, Place, message, shell, text, with_progress,
};
use heapline_profile::query::Size;
use heapline_text::{Screen, Text};
use serde::Serialize;

use dataset_command::DatasetCommand;
use print::print;

/// Ask questions to the runs of a dataset
#[derive(Parser)]
#[command(name = "heapline-fleet", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a SQL statement on the tables runs, sites, blocks, stacks and frames
    Sql {
        #[command(flatten)]
        place: PlaceOptions,
        /// Run this statement
        #[arg(value_name = "STATEMENT")]
        statement: String,
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Read SQL statements from the terminal or standard input, and run them
    Shell {
        #[command(flatten)]
        place: PlaceOptions,
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Show the services, versions or sites that cost most
    Top {
        #[command(flatten)]
        place: PlaceOptions,
        #[command(flatten)]
        options: TopOptions,
        #[command(flatten)]
        report: ReportOptions,
    },
    /// Show an amount over days or versions
    Trend {
        #[command(flatten)]
        place: PlaceOptions,
        #[command(flatten)]
        options: TrendOptions,
        #[command(flatten)]
        report: ReportOptions,
    },
    /// Show the sites that changed between two groups of runs
    Diff {
        #[command(flatten)]
        place: PlaceOptions,
        #[command(flatten)]
        options: DiffOptions,
        #[command(flatten)]
        report: ReportOptions,
    },
    /// Show the sites that grew significantly from one version to the next
    Regressions {
        #[command(flatten)]
        place: PlaceOptions,
        #[command(flatten)]
        options: RegressionOptions,
        #[command(flatten)]
        report: ReportOptions,
    },
    /// Add to, list or check a dataset in an object store
    #[command(subcommand)]
    Dataset(DatasetCommand),
}

#[derive(Args)]
struct PlaceOptions {
    /// Read the dataset in this folder, or in an object store: `s3://BUCKET/PREFIX`
    #[arg(value_name = "DATASET")]
    dataset: String,
    /// Run statements on the Ballista cluster with this scheduler [default: in this process]
    #[arg(long, value_name = "HOST:PORT")]
    cluster: Option<String>,
    /// Limit the memory of statements that run in this process
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    memory: Size,
}

#[derive(Args)]
struct ReportOptions {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print the SQL statements of the report, and do not run it
    #[arg(long, conflicts_with = "json")]
    sql: bool,
}

impl PlaceOptions {
    async fn open(&self) -> anyhow::Result<Engine> {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "sizes are positive, and a limit above the address space is none"
        )]
        let memory = self.memory.bytes(8.0) as usize;
        let place = match &self.cluster {
            Some(scheduler) => Place::Cluster {
                scheduler: scheduler.clone(),
            },
            None => Place::Local { memory },
        };
        Engine::open(&Dataset::open(&self.dataset).await?, &place).await
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let done = runtime
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(run(arguments.command)));
    match done {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("heapline-fleet: {}", message(&error));
            ExitCode::FAILURE
        }
    }
}

/// Returns the exit code: that of a failure if there was a message.
async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Sql {
            place,
            statement,
            output,
        } => {
            let engine = place.open().await?;
            with_progress(async { output.write(engine.stream(&statement).await?).await }).await?;
        }
        Command::Shell { place, output } => {
            if !shell(&place.open().await?, &output).await? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Command::Top {
            place,
            options,
            report,
        } => {
            if report.sql {
                return print_statements(&options.statements()?);
            }
            let engine = place.open().await?;
            let top = with_progress(options.run(&engine)).await?;
            report.print(&top, options.subject.measure, text::top)?;
        }
        Command::Trend {
            place,
            options,
            report,
        } => {
            if report.sql {
                return print_statements(&options.statements()?);
            }
            let engine = place.open().await?;
            let trend = with_progress(options.run(&engine)).await?;
            report.print(&trend, options.subject.measure, text::trend)?;
        }
        Command::Diff {
            place,
            options,
            report,
        } => {
            if report.sql {
                return print_statements(&options.statements()?);
            }
            let engine = place.open().await?;
            let diff = with_progress(options.run(&engine)).await?;
            report.print(&diff, options.subject.measure, text::diff)?;
        }
        Command::Regressions {
            place,
            options,
            report,
        } => {
            let engine = place.open().await?;
            if report.sql {
                return print_statements(&options.statements(&engine).await?);
            }
            let regressions = with_progress(options.run(&engine)).await?;
            report.print(&regressions, options.subject.measure, text::regressions)?;
        }
        Command::Dataset(command) => return command.run().await,
    }
    Ok(ExitCode::SUCCESS)
}

fn print_statements(statements: &[String]) -> anyhow::Result<ExitCode> {
    for statement in statements {
        writeln!(io::stdout(), "{statement};\n")?;
    }
    Ok(ExitCode::SUCCESS)
}

impl ReportOptions {
    fn print<T: Serialize>(
        &self,
        report: &T,
        measure: Measure,
        render: fn(&T, Measure, Screen) -> Text,
    ) -> anyhow::Result<()> {
        print(report, self.json, |report, screen| {
            render(report, measure, screen)
        })
    }
}

/// A reader of the output may stop at any time.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(broken)
            || cause
                .downcast_ref::<serde_json::Error>()
                .is_some_and(|error| error.io_error_kind() == Some(io::ErrorKind::BrokenPipe))
    })
}
