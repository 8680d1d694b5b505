//! `shell`: statements, one after another.

use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

use anyhow::Context;
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};

use crate::dataset::TABLES;
use crate::engine::Engine;
use crate::output::OutputOptions;
use crate::progress::with_progress;
use crate::statements::Statements;

const HISTORY: &str = "fleet-history";
const MOST_HISTORY: usize = 1000;

/// Reads statements, each ended by a semicolon, and runs them. On a terminal, errors do not end it; of
/// other inputs, all statements are run, and the result is false if one failed.
pub async fn shell(engine: &Engine, output: &OutputOptions) -> anyhow::Result<bool> {
    if io::stdin().is_terminal() {
        interactive(engine, output).await?;
        return Ok(true);
    }
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .context("cannot read statements from standard input")?;
    let mut statements = Statements::default();
    let mut is_well = true;
    let complete = statements.add(&text);
    for statement in complete.into_iter().chain(statements.rest()) {
        is_well &= run(engine, output, &statement).await;
    }
    Ok(is_well)
}

async fn interactive(engine: &Engine, output: &OutputOptions) -> anyhow::Result<()> {
    let config = Config::builder()
        .max_history_size(MOST_HISTORY)?
        .auto_add_history(false)
        .build();
    let mut editor = DefaultEditor::with_config(config)?;
    let history = history();
    if let Some(path) = &history {
        // There is none the first time.
        let _ = editor.load_history(path);
    }
    eprintln!(
        "Tables: {}. End statements with `;`. \\d TABLE shows columns, \\q quits.",
        TABLES.join(", ")
    );
    let mut statements = Statements::default();
    loop {
        let prompt = if statements.is_empty() {
            "heapline> "
        } else {
            "     ...> "
        };
        // The editor blocks; nothing else is to be done meanwhile.
        let line = match tokio::task::block_in_place(|| editor.readline(prompt)) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                statements = Statements::default();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        };
        if statements.is_empty() {
            match line.trim() {
                "\\q" | "quit" | "exit" => break,
                command if command.starts_with("\\d") => {
                    run(engine, output, &described(&command[2..])).await;
                    continue;
                }
                _ => {}
            }
        }
        for statement in statements.add(&line) {
            editor.add_history_entry(format!("{};", statement.replace('\n', " ")))?;
            run(engine, output, &statement).await;
        }
    }
    if let Some(path) = &history {
        editor
            .save_history(path)
            .with_context(|| format!("cannot write the history to {}", path.display()))?;
    }
    Ok(())
}

/// `\d` lists tables, `\d TABLE` columns.
fn described(table: &str) -> String {
    match table.trim() {
        "" => "show tables".to_owned(),
        table => format!("describe {table}"),
    }
}

/// Runs a statement; returns false, after a message, if it failed or was interrupted.
async fn run(engine: &Engine, output: &OutputOptions, statement: &str) -> bool {
    let done = with_progress(async { output.write(engine.stream(statement).await?).await });
    let result = tokio::select! {
        result = done => result,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    if let Err(error) = &result {
        eprintln!("heapline-fleet: {}", crate::message(error));
    }
    result.is_ok()
}

fn history() -> Option<PathBuf> {
    let base = match std::env::var_os("XDG_STATE_HOME") {
        Some(base) => PathBuf::from(base),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".local/state"),
    };
    let folder = base.join("heapline");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join(HISTORY))
}
