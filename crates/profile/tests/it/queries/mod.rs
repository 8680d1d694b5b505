//! Queries against a second opinion: each block asked by itself, the plainest way.

mod errors;
mod expr;
mod model;

use heapline_profile::query::TimePoint;
use heapline_profile::{Query, Scope, Selection};
use heapline_testkit::property_config;
use heapline_trace::Source;
use proptest::prelude::*;

use errors::survives;
use expr::{Expr, Stay, Time, any_clause, any_expr};
use model::{COUNT, MODELS, Model};

/// Compares the answers of a query for one trace.
fn assert_same(model: &Model, expr: &Expr) {
    let text = expr.text();
    let query = Query::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let scope = Scope::new(&model.profile, &query, COUNT);
    let heap = |source| match source {
        Source::Minor => "minor",
        Source::Major => "major",
        Source::External => "external",
    };
    // For each block, the parts of its life that are selected.
    let parts: Vec<Vec<(usize, Option<usize>)>> = model
        .blocks
        .iter()
        .map(|block| {
            let stay = |start, end, heap| Stay {
                model,
                block,
                start,
                end,
                heap,
            };
            let stays = match block.promotion {
                Some(promotion) if expr.mentions_heap() => vec![
                    stay(block.birth, Some(promotion), heap(block.source)),
                    stay(promotion, block.death, "major"),
                ],
                _ => vec![stay(block.birth, block.death, heap(block.source))],
            };
            let selected = stays.into_iter().filter(|stay| expr.holds(stay));
            selected.map(|stay| (stay.start, stay.end)).collect()
        })
        .collect();
    let time = |event: usize| model.times[event];
    let chosen = || {
        model
            .blocks
            .iter()
            .zip(&parts)
            .filter(|(_, parts)| !parts.is_empty())
    };
    let expected: Vec<_> = chosen()
        .map(|(block, _)| {
            let (birth, promotion, death) = (block.birth, block.promotion, block.death);
            (
                time(birth),
                promotion.map(time),
                death.map(time),
                block.length,
                block.domain,
            )
        })
        .collect();
    let mut answer = Vec::new();
    scope.for_each_block(|b| {
        answer.push((b.allocated, b.promoted, b.collected, b.size / 8, b.lane));
    });
    assert_eq!(answer, expected, "{text}");
    assert_eq!(scope.selection().len(), expected.len(), "{text}");
    // What is alive when shows the parts.
    for percent in [0, 10, 35, 50, 77, 100] {
        let at = Time::Percent(percent);
        let moment = TimePoint::parse(&at.text())
            .unwrap()
            .moment(&model.profile, COUNT);
        let live = |(start, end): &(usize, Option<usize>)| {
            at.is_after(*start, model, true) && end.is_none_or(|end| !at.is_after(end, model, true))
        };
        let samples: u64 = chosen()
            .filter(|(_, parts)| parts.iter().any(live))
            .map(|(block, _)| block.samples)
            .sum();
        assert_eq!(
            scope.live_at(moment).total().samples,
            samples,
            "{text} at {percent} %"
        );
    }
}

proptest! {
    #![proptest_config(property_config(1500))]

    #[test]
    fn each_condition_means_what_it_says(clause in any_clause(), trace in 0..5_usize) {
        assert_same(&MODELS[trace], &Expr::Is(clause));
    }

    #[test]
    fn conditions_can_be_joined(expr in any_expr(), trace in 0..5_usize) {
        assert_same(&MODELS[trace], &expr);
    }

    #[test]
    fn logic_holds(a in any_expr(), b in any_expr(), trace in 0..5_usize) {
        let model = &MODELS[trace];
        let (a_text, b_text) = (format!("({})", a.text()), format!("({})", b.text()));
        let select = |query: String| model.select(&query);
        let same = |a: String, b: String| prop_assert_eq_of(&select(a), &select(b));
        same(format!("not not ({a_text})"), a_text.clone())?;
        same(format!("not ({a_text} and {b_text})"), format!("not {a_text} or not {b_text}"))?;
        same(format!("not ({a_text} or {b_text})"), format!("not {a_text} and not {b_text}"))?;
        same(format!("({a_text}) and ({b_text})"), format!("({b_text}) and ({a_text})"))?;
        let none = select(format!("({a_text}) and not ({a_text})"));
        prop_assert!(none.is_empty());
        let all = select(format!("({a_text}) or not ({a_text})"));
        prop_assert_eq!(all.len(), model.profile.len());
    }

    #[test]
    fn no_text_is_too_odd(text in "\\PC{0,60}", control in "[\\x00-\\x7f]{0,40}") {
        for text in [text, control] {
            survives(&text);
        }
    }

    #[test]
    fn damaged_queries_are_refused_or_understood(
        expr in any_expr(),
        at in any::<prop::sample::Index>(),
        len in 0..6_usize,
        put in "[a-z0-9 ()\"'/.,<=>!%@*µ≤\\\\]{0,4}",
    ) {
        let mut chars: Vec<char> = expr.text().chars().collect();
        let start = at.index(chars.len());
        let end = (start + len).min(chars.len());
        chars.splice(start..end, put.chars());
        survives(&chars.into_iter().collect::<String>());
    }
}

fn prop_assert_eq_of(a: &Selection, b: &Selection) -> Result<(), TestCaseError> {
    prop_assert!(a == b);
    Ok(())
}
