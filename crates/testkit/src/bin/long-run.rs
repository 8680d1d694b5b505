//! Writes the trace of a simulated server that runs for hours:
//! `long-run [--bytes 8G | --allocations N] [--seed 1] [--domains 1] OUT`, with `-` for stdout.
//! Sizes may end in K, M, G or T, which are powers of 1024. Totals go to stderr.

use std::fs::File;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use heapline_testkit::long_run::{Length, LongRun, LongRunTotals};

const USAGE: &str = "usage: long-run [--bytes SIZE | --allocations N] [--seed N] [--domains N] OUT";

fn main() -> ExitCode {
    let mut stderr = io::stderr();
    let Some((run, out)) = parse(std::env::args().skip(1)) else {
        let _ = writeln!(stderr, "{USAGE}");
        return ExitCode::from(2);
    };
    let start = Instant::now();
    match write(&run, &out) {
        Ok(totals) => {
            let seconds = start.elapsed().as_secs_f64();
            let _ = writeln!(
                stderr,
                "{} bytes in {seconds:.1} s ({:.1} MB/s): {} events, {} blocks, {} promoted, {} collected, {} simulated s",
                totals.bytes,
                totals.bytes as f64 / seconds / 1e6,
                totals.events(),
                totals.allocations,
                totals.promotions,
                totals.collections,
                totals.duration / 1_000_000,
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(stderr, "cannot write {out}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(run: &LongRun, out: &str) -> io::Result<LongRunTotals> {
    if out == "-" {
        run.write(io::stdout().lock())
    } else {
        run.write(File::create(out)?)
    }
}

/// The run that the arguments describe, and where it goes.
fn parse(mut arguments: impl Iterator<Item = String>) -> Option<(LongRun, String)> {
    let mut run = LongRun {
        length: Length::Bytes(1 << 30),
        ..LongRun::default()
    };
    let mut out = None;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bytes" => run.length = Length::Bytes(size(&arguments.next()?)?),
            "--allocations" => run.length = Length::Allocations(arguments.next()?.parse().ok()?),
            "--seed" => run.seed = arguments.next()?.parse().ok()?,
            "--domains" => run.domains = arguments.next()?.parse().ok().filter(|&n| n > 0)?,
            option if option.starts_with("--") => return None,
            _ if out.is_some() => return None,
            _ => out = Some(argument),
        }
    }
    Some((run, out?))
}

/// Bytes: a number and a unit, such as `512M`.
fn size(text: &str) -> Option<u64> {
    let units = ["K", "M", "G", "T"];
    let unit = units.iter().position(|&unit| text.ends_with(unit));
    let (digits, factor) = match unit {
        Some(at) => (
            &text[..text.len() - 1],
            1024_u64.pow(u32::try_from(at).ok()? + 1),
        ),
        None => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}
