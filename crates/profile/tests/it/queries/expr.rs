//! Queries as trees, and what they mean for a single block.

use proptest::prelude::*;

use super::model::{Block, Frame, Model};

/// A query as a tree of our own.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    Is(Clause),
}

#[derive(Clone, Debug)]
pub(crate) enum Clause {
    LiveAt(Time),
    LiveIn(Time, Time),
    /// `allocated`, `collected` or `promoted`.
    Happened(&'static str, When),
    /// A field with a number, its unit, and what the unit is worth.
    Number(&'static str, Test, &'static str, f64),
    Heap(bool, &'static str),
    /// A field, a pattern, and whether it is `!=`.
    Name(&'static str, &'static str, bool),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Time {
    Start,
    Peak,
    End,
    Micros(u64),
    Percent(u8),
}

#[derive(Clone, Debug)]
pub(crate) enum When {
    Ever,
    In(Time, Time),
    At(&'static str, Time),
}

#[derive(Clone, Debug)]
pub(crate) enum Test {
    Is(&'static str, u64),
    In(u64, u64),
}

impl Expr {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::And(a, b) => format!("({}) and ({})", a.text(), b.text()),
            Self::Or(a, b) => format!("({} or {})", a.text(), b.text()),
            Self::Not(a) => format!("not ({})", a.text()),
            Self::Is(clause) => clause.text(),
        }
    }

    pub(crate) fn mentions_heap(&self) -> bool {
        match self {
            Self::And(a, b) | Self::Or(a, b) => a.mentions_heap() || b.mentions_heap(),
            Self::Not(a) => a.mentions_heap(),
            Self::Is(clause) => matches!(clause, Clause::Heap(..)),
        }
    }

    pub(crate) fn holds(&self, stay: &Stay<'_>) -> bool {
        match self {
            Self::And(a, b) => a.holds(stay) && b.holds(stay),
            Self::Or(a, b) => a.holds(stay) || b.holds(stay),
            Self::Not(a) => !a.holds(stay),
            Self::Is(clause) => stay.is(clause),
        }
    }
}

impl Clause {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::LiveAt(time) => format!("live at {}", time.text()),
            Self::LiveIn(from, to) => format!("ALIVE in {}..{}", from.text(), to.text()),
            Self::Happened(what, When::Ever) => (*what).to_owned(),
            Self::Happened(what, When::In(a, b)) => format!("{what} in {}..{}", a.text(), b.text()),
            Self::Happened(what, When::At(sign, time)) => format!("{what} {sign} {}", time.text()),
            Self::Number(field, Test::Is(sign, n), unit, _) => format!("{field}{sign}{n}{unit}"),
            Self::Number(field, Test::In(a, b), unit, _) => {
                format!("{field} in {a}{unit} .. {b} {unit}")
            }
            Self::Heap(is_it, heap) => format!("heap {} {heap}", if *is_it { "=" } else { "!=" }),
            Self::Name(field, pattern, false) => format!("{field} {pattern}"),
            Self::Name(field, pattern, true) => format!("{field} != {pattern}"),
        }
    }
}

impl Time {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Start => "start".into(),
            Self::Peak => "peak".into(),
            Self::End => "end".into(),
            Self::Micros(micros) => format!("{micros}us"),
            Self::Percent(percent) => format!("{percent}%"),
        }
    }

    /// Returns true if an event has happened before it, or at the latest at it.
    pub(crate) fn is_after(self, event: usize, model: &Model, or_equal: bool) -> bool {
        let by_time =
            |micros: u64| model.times[event] < micros || (or_equal && model.times[event] == micros);
        let end = model.times.last().copied().unwrap_or(0);
        match self {
            Self::Start => false,
            Self::Peak => event < model.peak,
            Self::End => true,
            Self::Micros(micros) => by_time(micros),
            // Half a microsecond is rounded up.
            Self::Percent(percent) => by_time((end * u64::from(percent) + 50) / 100),
        }
    }
}

/// A block, or a part of its life.
pub(crate) struct Stay<'a> {
    pub(crate) model: &'a Model,
    pub(crate) block: &'a Block,
    pub(crate) start: usize,
    pub(crate) end: Option<usize>,
    pub(crate) heap: &'static str,
}

impl Stay<'_> {
    pub(crate) fn is(&self, clause: &Clause) -> bool {
        let model = self.model;
        let never = |end: Option<usize>, holds: &dyn Fn(usize) -> bool| end.is_none_or(holds);
        match clause {
            Clause::LiveAt(time) => {
                time.is_after(self.start, model, true)
                    && never(self.end, &|end| !time.is_after(end, model, true))
            }
            Clause::LiveIn(from, to) => {
                // A range the wrong way round has nothing in it.
                let backwards = |event: usize| {
                    from.is_after(event, model, false) && !to.is_after(event, model, false)
                };
                !(0..model.times.len()).any(backwards)
                    && to.is_after(self.start, model, false)
                    && never(self.end, &|end| !from.is_after(end, model, false))
            }
            Clause::Happened(what, when) => {
                let event = match *what {
                    "allocated" => Some(self.start),
                    "collected" => self.end.filter(|end| self.block.death == Some(*end)),
                    _ => self.block.promotion,
                };
                event.is_some_and(|event| happened(model, event, when))
            }
            Clause::Number(field, test, _, unit) => {
                let last = model.times.len() - 1;
                let end = self.end.unwrap_or(last);
                let site = self.block.stack.last();
                let value = match *field {
                    "size" => 8.0 * self.block.length as f64,
                    "samples" => self.block.samples as f64,
                    "domain" => f64::from(self.block.domain),
                    "line" => site.map_or(f64::NAN, |frame| frame.line as f64),
                    "lifetime" if *unit < 2.0 => {
                        (model.times[end] - model.times[self.start]) as f64
                    }
                    "lifetime" => {
                        let samples = model.allocated[end] - model.allocated[self.start];
                        samples as f64 * model.bytes_per_sample
                    }
                    _ => unreachable!(),
                };
                let worth = |n: u64| n as f64 * unit;
                match *test {
                    Test::Is(sign, n) => value.is_finite() && compare(sign, value, worth(n)),
                    Test::In(a, b) => worth(a) <= value && value < worth(b),
                }
            }
            Clause::Heap(is_it, heap) => (self.heap == *heap) == *is_it,
            Clause::Name(field, pattern, negated) => {
                let stack = &self.block.stack;
                let found = match field.strip_prefix("inside") {
                    Some(part) => stack
                        .iter()
                        .any(|frame| matches(frame, part.trim(), pattern)),
                    None => match stack.last() {
                        Some(frame) => matches(frame, field, pattern),
                        None => text_matches("(unknown)", pattern),
                    },
                };
                found != *negated
            }
        }
    }
}

pub(crate) fn happened(model: &Model, event: usize, when: &When) -> bool {
    let before = |time: &Time| time.is_after(event, model, false);
    let by = |time: &Time| time.is_after(event, model, true);
    match when {
        When::Ever => true,
        When::In(from, to) => !before(from) && before(to),
        When::At(sign, time) => match *sign {
            "<" => before(time),
            "<=" | "≤" => by(time),
            ">" => !by(time),
            ">=" => !before(time),
            "=" => by(time) && !before(time),
            _ => before(time) || !by(time),
        },
    }
}

pub(crate) fn compare(sign: &str, a: f64, b: f64) -> bool {
    match sign {
        "<" => a < b,
        "<=" | "≤" => a <= b,
        ">" => a > b,
        ">=" => a >= b,
        "=" => (a - b).abs() < 1e-9,
        _ => (a - b).abs() >= 1e-9,
    }
}

pub(crate) fn matches(frame: &Frame, part: &str, pattern: &str) -> bool {
    match part {
        "file" => {
            let name = frame.file.rsplit('/').next().unwrap_or_default();
            text_matches(&frame.file, pattern) || text_matches(name, pattern)
        }
        "module" => {
            let module = frame.function.split_once('.').map(|(module, _)| module);
            text_matches(module.unwrap_or("(no module)"), pattern)
        }
        _ => text_matches(&frame.function, pattern),
    }
}

/// `*` is any text, `?` any character.
fn glob(text: &[u8], pattern: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', rest @ ..] => (0..=text.len()).any(|skip| glob(&text[skip..], rest)),
        [b'?', rest @ ..] => !text.is_empty() && glob(&text[1..], rest),
        [c, rest @ ..] => text.first() == Some(c) && glob(&text[1..], rest),
    }
}

/// Globs in quotes or without, and parts of names in slashes.
pub(crate) fn text_matches(text: &str, pattern: &str) -> bool {
    if let Some(part) = pattern.strip_prefix('/') {
        return match part.strip_suffix("/i") {
            Some(part) => text.to_lowercase().contains(&part.to_lowercase()),
            None => text.contains(part.trim_end_matches('/')),
        };
    }
    glob(text.as_bytes(), pattern.trim_matches('"').as_bytes())
}

const SIGNS: [&str; 8] = ["=", "!=", "<>", "<", "<=", "≤", ">", ">="];

fn any_time() -> impl Strategy<Value = Time> {
    prop_oneof![
        Just(Time::Start),
        Just(Time::Peak),
        Just(Time::End),
        (0..=100_u8).prop_map(Time::Percent),
        (0..3000_u64).prop_map(Time::Micros),
    ]
}

fn any_number(
    field: &'static str,
    most: u64,
    unit: &'static str,
    worth: f64,
) -> impl Strategy<Value = Clause> {
    let test = prop_oneof![
        3 => (prop::sample::select(&SIGNS[..]), 0..most).prop_map(|(sign, n)| Test::Is(sign, n)),
        1 => (0..most, 0..most).prop_map(|(a, b)| Test::In(a, b)),
    ];
    test.prop_map(move |test| Clause::Number(field, test, unit, worth))
}

pub(crate) fn any_clause() -> impl Strategy<Value = Clause> {
    let span = || (any_time(), any_time());
    let when = prop_oneof![
        1 => Just(When::Ever),
        2 => span().prop_map(|(a, b)| When::In(a, b)),
        3 => (prop::sample::select(&SIGNS[..]), any_time()).prop_map(|(sign, t)| When::At(sign, t)),
    ];
    let names = ["inside", "inside function", "inside file", "inside module"];
    let fields = ["site", "function", "file", "module"];
    let patterns = [
        "\"Module1*\"",
        "/function0/",
        "/MODULE2/i",
        "\"module?.ml\"",
        "\"*7\"",
        "/x/",
    ];
    prop_oneof![
        any_time().prop_map(Clause::LiveAt),
        span().prop_map(|(a, b)| Clause::LiveIn(a, b)),
        (
            prop::sample::select(vec!["allocated", "collected", "promoted"]),
            when
        )
            .prop_filter("all are allocated", |(what, when)| {
                *what != "allocated" || !matches!(when, When::Ever)
            })
            .prop_map(|(what, when)| Clause::Happened(what, when)),
        any_number("size", 200, "", 1.0),
        any_number("size", 400, "KiB", 1024.0),
        any_number("size", 20, "w", 8.0),
        any_number("samples", 4, "", 1.0),
        any_number("domain", 4, "", 1.0),
        any_number("line", 70, "", 1.0),
        any_number("lifetime", 1500, "us", 1.0),
        any_number("lifetime", 1500, "KiB", 1024.0),
        any_number("lifetime", 80, "kw", 8000.0),
        (
            any::<bool>(),
            prop::sample::select(vec!["minor", "major", "external"])
        )
            .prop_map(|(is_it, heap)| Clause::Heap(is_it, heap)),
        (
            prop::sample::select(names.to_vec()),
            prop::sample::select(patterns.to_vec())
        )
            .prop_map(|(field, pattern)| Clause::Name(field, pattern, false)),
        (
            prop::sample::select(fields.to_vec()),
            prop::sample::select(patterns.to_vec()),
            any::<bool>()
        )
            .prop_map(|(field, pattern, negated)| Clause::Name(field, pattern, negated)),
    ]
}

pub(crate) fn any_expr() -> impl Strategy<Value = Expr> {
    any_clause()
        .prop_map(Expr::Is)
        .prop_recursive(4, 12, 2, |inner| {
            let pair = || (inner.clone(), inner.clone());
            prop_oneof![
                pair().prop_map(|(a, b)| Expr::And(a.into(), b.into())),
                pair().prop_map(|(a, b)| Expr::Or(a.into(), b.into())),
                inner.clone().prop_map(|a| Expr::Not(a.into())),
            ]
        })
}
