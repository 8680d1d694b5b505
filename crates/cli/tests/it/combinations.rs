//! Random combinations of options: reports, export formats and printed tables have the same figures of a selection.

use std::path::Path;
use std::process::Command;

use flate2::read::GzDecoder;
use heapline_engine::{Cancel, Params, Request, Session};
use heapline_export::pprof::proto::Profile;
use heapline_export::{StackFormat, StackOptions, csv};
use prost::Message;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;

use crate::api::session;

const COMBINATIONS: usize = 300;
/// One in so many is also asked of the program itself: a process takes longer than all else.
const PRINTED: usize = 6;

const TRACES: [&str; 4] = [
    "mix-ocaml53/trace.ctf",
    "mix-ocaml413/trace.ctf",
    "generated/domains.ctf",
    "spacetime/mix/spacetime.profile.zst",
];

const QUERIES: [&str; 12] = [
    "size >= 64B",
    "size < 1KiB",
    "heap = minor",
    "heap = major",
    "live at peak",
    "live at end",
    "inside /tree|add|list/i",
    "not inside \"Stdlib.*\"",
    "module = \"Mix\"",
    "allocated < 50%",
    "allocated in 20%..80%",
    "alive at 90%",
];

const LIVE: [&str; 4] = ["peak", "end", "50%", "90%"];
const GROUPINGS: [&str; 8] = [
    "site", "function", "file", "module", "crate", "domain", "size", "address",
];

/// The options of a combination: those that select blocks, and those that name them.
struct Combination {
    filter: Vec<(&'static str, String)>,
    look: Vec<(&'static str, String)>,
    by: &'static str,
}

impl Combination {
    fn draw(random: &mut Xoshiro256PlusPlus) -> Self {
        let mut filter = Vec::new();
        for _ in 0..random.random_range(0..3) {
            filter.push(("where", pick(random, &QUERIES)));
        }
        if random.random_bool(0.4) {
            filter.push(("live", pick(random, &LIVE)));
        }
        if random.random_bool(0.3) {
            filter.push(("estimator", "count".to_owned()));
        }
        let mut look = Vec::new();
        if random.random_bool(0.4) {
            look.push(("hide", "Stdlib.*".to_owned()));
        }
        if random.random_bool(0.3) {
            look.push(("own-code", "true".to_owned()));
        }
        let by = GROUPINGS.choose(random).unwrap();
        Self { filter, look, by }
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        [&self.filter[..], &self.look[..]].concat()
    }
}

fn pick(random: &mut Xoshiro256PlusPlus, from: &[&'static str]) -> String {
    (*from.choose(random).unwrap()).to_owned()
}

/// The answer to a request, or the error that all reports give.
fn ask(
    session: &Session,
    report: &str,
    options: &[(&'static str, String)],
) -> Result<Value, String> {
    let pairs = options.iter().map(|(name, value)| (*name, value.as_str()));
    let request = Request::from_pairs(report, pairs).map_err(|error| error.to_string())?;
    let answer = session.answer(&request, &Cancel::default());
    let answer = answer.map_err(|error| error.to_string())?;
    Ok(serde_json::from_slice(&answer.json().unwrap()).unwrap())
}

/// The numbers of an estimate of bytes and blocks.
fn figures(of: &Value) -> Vec<f64> {
    let mut numbers = Vec::new();
    for unit in ["bytes", "blocks"] {
        for field in ["value", "error", "low", "high"] {
            numbers.push(of[unit][field].as_f64().unwrap_or(f64::NAN));
        }
    }
    numbers.push(of["samples"].as_f64().unwrap());
    numbers
}

/// Sums in another order differ in their last digits.
fn assert_same(left: &[f64], right: &[f64], what: &str) {
    let scale = left.iter().fold(1.0_f64, |scale, x| scale.max(x.abs()));
    let is_same =
        |(a, b): (&f64, &f64)| (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * scale;
    let same = left.len() == right.len() && left.iter().zip(right).all(is_same);
    assert!(same, "{what}: {left:?} {right:?}");
}

#[test]
fn all_reports_and_formats_have_the_same_figures() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(34);
    let sessions = TRACES.map(|name| session(name, None));
    let mut not_empty = 0;
    for number in 0..COMBINATIONS {
        let session = sessions.choose(&mut random).unwrap();
        let combination = Combination::draw(&mut random);
        let what = format!("{number}: {} {:?}", session.path(), combination.options());
        not_empty += usize::from(compare(session, &combination, &what));
        if number % PRINTED == 0 {
            compare_printed(session, &combination, &what);
        }
    }
    assert!(not_empty > COMBINATIONS / 2, "{not_empty}");
}

/// Compares the figures of a combination; false if there are none, because nothing is selected or the trace does not tell.
fn compare(session: &Session, combination: &Combination, what: &str) -> bool {
    let all_rows = [
        ("by", combination.by.to_owned()),
        ("rows", "100000".to_owned()),
    ];
    let options = combination.options();
    let hotspots = match ask(session, "hotspots", &[&options[..], &all_rows].concat()) {
        Ok(hotspots) => hotspots,
        Err(error) if error.starts_with("cannot group by") => return false,
        Err(error) => {
            // What a trace does not tell is an error everywhere, with the same reason.
            let tree = ask(session, "tree", &options);
            assert_eq!(tree.err(), Some(error), "{what}");
            let blocks = ask(session, "blocks", &combination.filter);
            assert!(blocks.is_err(), "{what}");
            return false;
        }
    };
    let total = figures(&hotspots["total"]["allocated"]);
    let mut hidden = options.clone();
    hidden.retain(|(name, _)| *name != "own-code");
    for (report, options) in [
        ("tree", &options),
        // It prints whole stacks, whosever code it is.
        ("blocks", &hidden),
        // It names no functions.
        ("stats", &combination.filter),
    ] {
        match ask(session, report, options) {
            Ok(answer) => {
                assert_same(
                    &total,
                    &figures(&answer["total"]),
                    &format!("{what}: {report}"),
                );
            }
            // Spacetime has no single blocks.
            Err(error) => assert!(what.contains("spacetime"), "{what}: {report}: {error}"),
        }
    }
    let rows = hotspots["rows"].as_array().unwrap();
    let values = rows.iter().map(|row| &row["allocated"]["bytes"]["value"]);
    let sum = values.map(|value| value.as_f64().unwrap_or(f64::NAN)).sum();
    assert_same(&total[..1], &[sum], &format!("{what}: rows"));
    compare_exports(session, combination, &total, what);
    total[0] > 0.0
}

/// Compares what other tools get.
fn compare_exports(session: &Session, combination: &Combination, total: &[f64], what: &str) {
    let params = Params::<StackOptions>::from_pairs(combination.options()).unwrap();
    let profile = &session.trace().profile;
    let scope = params.filter.scope(profile).showing(&params.options.look);
    let write = |format: StackFormat| {
        let mut out = Vec::new();
        format.write(&scope, &params.options, &mut out).unwrap();
        out
    };

    let folded = String::from_utf8(write(StackFormat::Collapsed)).unwrap();
    let weights = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1);
    let weights: Vec<f64> = weights.map(|weight| weight.parse().unwrap()).collect();
    // Each stack is rounded once.
    let rounding = 0.5 * weights.len() as f64 + 1e-6 * total[0];
    let sum: f64 = weights.iter().sum();
    assert!(
        (sum - total[0]).abs() <= rounding,
        "{what}: collapsed {sum} {}",
        total[0]
    );

    let mut proto = Vec::new();
    std::io::Read::read_to_end(
        &mut GzDecoder::new(&write(StackFormat::Pprof)[..]),
        &mut proto,
    )
    .unwrap();
    let proto = Profile::decode(&proto[..]).unwrap();
    let column = |name: &str| {
        let mut types = proto.sample_type.iter();
        let name_of = |number: i64| &*proto.string_table[usize::try_from(number).unwrap()];
        types.position(|kind| name_of(kind.r#type) == name).unwrap()
    };
    let bytes = column("alloc_space");
    let sum = proto
        .sample
        .iter()
        .map(|sample| sample.value[bytes] as f64)
        .sum::<f64>();
    let rounding = 0.5 * proto.sample.len() as f64 + 1e-6 * total[0];
    assert!(
        (sum - total[0]).abs() <= rounding,
        "{what}: pprof {sum} {}",
        total[0]
    );

    let mut table = Vec::new();
    csv(&scope, &mut table).unwrap();
    let table = String::from_utf8(table).unwrap();
    let mut lines = table.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let Some(place) = names.iter().position(|name| *name == "estimated_bytes") else {
        assert!(what.contains("spacetime"), "{what}: {names:?}");
        return;
    };
    // Only the last column, the stack, has commas.
    let cells = lines.map(|line| line.split(',').nth(place).unwrap());
    let sum: f64 = cells
        .map(|cell| cell.parse::<f64>().unwrap_or(f64::NAN))
        .sum();
    assert!(
        (sum - total[0]).abs() <= 1e-6 * total[0].max(1.0),
        "{what}: CSV {sum} {}",
        total[0]
    );
}

/// Compares what the program prints, as JSON and as a table.
fn compare_printed(session: &Session, combination: &Combination, what: &str) {
    let mut options = combination.options();
    options.push(("by", combination.by.to_owned()));
    let answer = ask(session, "hotspots", &options);
    let print = |format: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heapline"));
        command.args(["hotspots", session.path(), "--format", format]);
        for (name, value) in &options {
            command.arg(format!("--{name}"));
            command.args(Some(value).filter(|value| *value != "true"));
        }
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        (
            output.status.success(),
            String::from_utf8(output.stdout).unwrap(),
            error,
        )
    };
    let (is_printed, json, error) = print("json");
    assert_eq!(is_printed, answer.is_ok(), "{what}: {error}");
    let Ok(answer) = answer else {
        return;
    };
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json, answer, "{what}");
    let (_, text, _) = print("text");
    for row in answer["rows"].as_array().unwrap().iter().take(3) {
        let name = row["label"]["name"].as_str().unwrap();
        let name = Path::new(name)
            .file_name()
            .map_or(name, |name| name.to_str().unwrap());
        let bytes = row["allocated"]["bytes"]["value"].as_f64().unwrap();
        let lines = text.lines().filter(|line| line.contains(name));
        let shown: Vec<f64> = lines.filter_map(first_amount).collect();
        let error = row["allocated"]["bytes"]["error"].as_f64().unwrap_or(0.0);
        // A value has as many digits as its error deserves.
        let rounding = 0.006 * bytes + 0.05 * error + 1.0;
        let is_near = |shown: &f64| (shown - bytes).abs() <= rounding;
        assert!(
            shown.iter().any(is_near),
            "{what}: {name} {bytes} in\n{text}"
        );
    }
}

/// The first number with a unit of bytes in a line, such as `12.2 MiB`.
fn first_amount(line: &str) -> Option<f64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let units = [("B", 0), ("KiB", 1), ("MiB", 2), ("GiB", 3)];
    let (place, power) = words.iter().enumerate().find_map(|(place, word)| {
        let unit = units.iter().find(|(unit, _)| unit == word)?;
        Some((place, unit.1))
    })?;
    // The value may have an error between it and its unit.
    let before = &words[..place];
    let value = before.split(|word| *word == "±").next()?.last()?;
    Some(value.parse::<f64>().ok()? * 1024_f64.powi(power))
}
