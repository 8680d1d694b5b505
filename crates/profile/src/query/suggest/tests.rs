//! Tests of suggestions.

use std::collections::HashSet;

use proptest::prelude::*;

use super::super::words::{FIELDS, Need};
use super::*;
use crate::query::Query;

const OCAML: Capabilities = Capabilities {
    lifetimes: true,
    promotions: true,
    gc_parameters: true,
    lanes: true,
    sizes: true,
};
const NATIVE: Capabilities = Capabilities {
    promotions: false,
    gc_parameters: false,
    ..OCAML
};
const SNAPSHOTS: Capabilities = Capabilities {
    lifetimes: false,
    promotions: false,
    gc_parameters: false,
    lanes: false,
    sizes: false,
};

fn all_names() -> Vec<Name> {
    let names = ["List.map", "Mix.( * )", "é \"quoted\" \\", "two words"];
    names
        .iter()
        .map(|name| Name {
            name: (*name).to_owned(),
            bytes: 1.0,
        })
        .collect()
}

fn found(text: &str, tells: Capabilities) -> Suggestions {
    let names = all_names();
    let cursor = text.find('|').unwrap_or(text.len());
    suggest(&text.replacen('|', "", 1), cursor, tells, 20, |_| &names)
}

/// The suggested words; the cursor is at `|`, or at the end.
fn words(text: &str) -> Vec<String> {
    let items = found(text, OCAML).items.into_iter();
    let words = items.filter(|item| item.name.is_none());
    words.map(|item| item.text).collect()
}

/// The text after each of the suggestions was taken.
fn taken(text: &str, tells: Capabilities) -> Vec<String> {
    let Suggestions { replace, items, .. } = found(text, tells);
    let plain = text.replacen('|', "", 1);
    let (before, after) = (&plain[..replace.start], &plain[replace.end..]);
    let items = items.iter();
    items
        .map(|item| format!("{before}{}{after}", item.text))
        .collect()
}

/// All queries that can be put together from suggestions, with at most so many of them.
fn queries(text: &str, tells: Capabilities, steps: usize, found: &mut Vec<String>) {
    for next in taken(text, tells) {
        let is_joint = next.ends_with(" and") || next.ends_with(" or");
        if Query::parse(&next).is_ok() {
            found.push(next.clone());
        }
        if steps > 1 && !is_joint && !next.ends_with("not") {
            queries(&format!("{next} "), tells, steps - 1, found);
        }
    }
}

#[test]
fn every_field_is_suggested_and_leads_to_a_query() {
    let suggested = words("");
    for &(name, field, own) in FIELDS {
        let mut same = FIELDS.iter().filter(|(_, other, _)| *other == field);
        assert!(same.any(|(.., words)| !words.is_empty()), "{name}");
        for word in own {
            assert!(suggested.iter().any(|text| text == word.text), "{name}");
            assert_eq!(word.text.split(' ').next(), Some(name));
        }
    }
    for text in suggested {
        let mut all = Vec::new();
        queries(&format!("{text} "), OCAML, 3, &mut all);
        assert!(text == "not" || !all.is_empty(), "{text}");
    }
}

/// A suggestion that was taken leaves a query, or one that only lacks something at its end.
fn assert_valid(text: &str) {
    if let Err(error) = Query::parse(text) {
        assert_eq!(
            (error.start, error.end),
            (text.len(), text.len()),
            "{error}"
        );
    }
}

#[test]
fn every_suggestion_parses() {
    let mut texts = vec![
        String::new(),
        "not (".to_owned(),
        "size > 1k and ".to_owned(),
    ];
    let mut seen = HashSet::new();
    for _ in 0..4 {
        let next: Vec<String> = texts.iter().flat_map(|text| taken(text, OCAML)).collect();
        for text in &next {
            assert_valid(text.trim_start_matches("not ("));
        }
        // With a space, and without if more may follow at once.
        texts = next
            .iter()
            .flat_map(|text| [format!("{text} "), text.clone()])
            .filter(|text| seen.insert(text.clone()))
            .filter(|text| text.split(' ').count() < 6)
            .collect();
    }
    assert!(seen.contains("inside module \"two words\" and "));
    assert!(seen.contains("lifetime in 1s..10ms"));
}

#[test]
fn only_what_the_source_tells_is_suggested() {
    let fields = |tells| -> Vec<String> {
        let items = found("not ", tells).items.into_iter();
        items.map(|item| item.text).collect()
    };
    let missing = |tells| -> Vec<String> {
        let told = fields(tells);
        let all = fields(OCAML).into_iter();
        all.filter(|word| !told.contains(word)).collect()
    };
    assert_eq!(missing(NATIVE), ["promoted", "heap"]);
    assert_eq!(
        missing(SNAPSHOTS),
        [
            "live in",
            "collected",
            "promoted",
            "size",
            "lifetime",
            "heap",
            "domain",
            "samples"
        ]
    );
    let texts = |text, tells| -> Vec<String> {
        let items = found(text, tells).items.into_iter();
        items.map(|item| item.text).collect()
    };
    assert_eq!(texts("live ", SNAPSHOTS), ["at"]);
    assert_eq!(texts("heap = ", NATIVE), ["external", "native"]);
}

/// Conditions are suggested by the needs of words, and refused by those of clauses.
#[test]
fn what_is_suggested_is_not_refused() {
    for tells in [OCAML, NATIVE, SNAPSHOTS] {
        let mut all = Vec::new();
        queries("", tells, 4, &mut all);
        assert!(all.len() > 100);
        for text in all {
            let query = Query::parse(&text).unwrap();
            assert_eq!(query.untold(tells, false), None, "{text}");
        }
    }
    for word in FIELDS.iter().flat_map(|(.., words)| *words) {
        let mut all = Vec::new();
        queries(&format!("{} ", word.text), OCAML, 3, &mut all);
        let refused = all.iter().all(|text| {
            let query = Query::parse(text).unwrap();
            query.untold(SNAPSHOTS, false).is_some()
        });
        assert_eq!(refused, word.need != Need::Nothing, "{}", word.text);
    }
}

#[test]
fn words_fit_after_what_was_typed() {
    assert_eq!(words("li"), ["live at", "live in", "lifetime", "line"]);
    assert_eq!(words("LIVE AT P"), ["peak"]);
    assert_eq!(words("live at peak"), ["peak"]);
    assert_eq!(words("size "), [">=", "<=", ">", "<", "=", "in"]);
    assert_eq!(words("size >="), ["64KiB", "1KiB", "16w"]);
    assert_eq!(words("heap = "), ["major", "minor", "external", "native"]);
    assert_eq!(words("heap ma"), ["major"]);
    assert_eq!(words("collected ")[..2], ["in", ">="]);
    assert_eq!(words("collected in st"), ["start..peak"]);
    assert_eq!(words("domain in "), ["1.."]);
    assert_eq!(words("(size > 1k and not "), words(""));
    assert!(words("inside \"an").is_empty());
    assert!(words("nothing > ").is_empty());
}

#[test]
fn a_complete_condition_is_followed_by_and_or_or() {
    for text in [
        "size >= 64KiB ",
        "live at peak ",
        "inside \"A b\" ",
        "inside A.b ",
        "heap = major ",
        "inside module \"M\" ",
        "allocated in 1s..2s ",
        "allocated in 90%.. ",
        "(size > 1 or (promoted and line = 3)) ",
        "lifetim > 2s and size < 3 ",
    ] {
        assert_eq!(
            words(text)[words(text).len() - 2..],
            ["and", "or"],
            "{text}"
        );
    }
}

#[test]
fn ranges_can_be_typed_bound_by_bound() {
    assert_eq!(words("live in 1s..p"), ["peak"]);
    assert_eq!(taken("live in 1s..p", OCAML), ["live in 1s..peak"]);
    assert_eq!(words("size in 2w.."), ["64KiB", "1KiB", "16w"]);
    assert_eq!(words("lifetime in 1ms.."), ["1s", "10ms"]);
    assert_eq!(words("lifetime in 1kw.."), ["1MiB"]);
}

#[test]
fn names_are_suggested_where_they_fit() {
    let kind = |text| found(text, OCAML).names;
    assert_eq!(kind("inside Par"), Some(GroupBy::Function));
    assert_eq!(kind("inside module "), Some(GroupBy::Module));
    assert_eq!(kind("inside module \"Std"), Some(GroupBy::Module));
    assert_eq!(kind("inside crate /st"), Some(GroupBy::Crate));
    assert_eq!(kind("site != "), Some(GroupBy::Function));
    assert_eq!(kind("file = "), Some(GroupBy::File));
    assert_eq!(kind("file "), Some(GroupBy::File));
    assert_eq!(kind("size > "), None);
    assert_eq!(words("inside "), ["module", "file", "crate", "place"]);
}

#[test]
fn names_are_quoted_so_that_they_match_themselves() {
    for (typed, expected) in [
        ("inside LIST", "inside \"List.map\""),
        ("inside \"two w", "inside \"two words\""),
        ("inside module words", "inside module \"two words\""),
        ("site = \"Mix.( \\*", "site = \"Mix.( \\* )\""),
        ("site = /é", "site = \"é \\\"quoted\\\" \\\\\""),
    ] {
        assert_eq!(taken(typed, OCAML), [expected], "{typed}");
        assert!(Query::parse(expected).is_ok());
    }
}

#[test]
fn in_the_middle_of_a_text_the_whole_word_is_replaced() {
    for (typed, expected) in [
        ("lif|et > 2s", "lifetime > 2s"),
        ("size > 1k and pro|", "size > 1k and promoted"),
        (
            "heap = ma|x and live at end",
            "heap = major and live at end",
        ),
        ("heap=mi|(", "heap=minor("),
        (
            "inside \"two|\" and live at end",
            "inside \"two words\" and live at end",
        ),
        (
            "inside \"two| or three\" and live at end",
            "inside \"two words\" and live at end",
        ),
        (
            "inside \"two|s and site = \"List.map\"",
            "inside \"two words\" and site = \"List.map\"",
        ),
        (
            "site = /ist|/i or promoted",
            "site = \"List.map\" or promoted",
        ),
    ] {
        assert_eq!(taken(typed, OCAML), [expected], "{typed}");
    }
    // Between words, nothing is replaced.
    let found = found("size |> 1k", OCAML);
    assert_eq!((found.replace, found.items.len()), (5..5, 6));
}

#[test]
fn the_number_of_names_is_limited() {
    let names = all_names();
    let found = suggest("site ", 5, OCAML, 2, |_| &names);
    assert_eq!(found.items.len(), 2 + 2);
}

/// Each of these takes minutes if something is quadratic, or overflows the stack if it is
/// recursive.
#[test]
fn long_texts_are_handled() {
    for part in [
        "(",
        "not ",
        "a",
        "é",
        "\"",
        "\\",
        "/",
        "..",
        "<",
        "size > 3 and ",
        "inside 'a' ",
        "inside /((((/ or ",
    ] {
        let text = part.repeat(100_000);
        for at in [0, 1, text.len() / 2, text.len()] {
            let found = suggest(&text, at, OCAML, 20, |_| &[]);
            assert!(text.get(found.replace).is_some(), "{part}");
        }
    }
    let text = format!("{}li", "inside /a{9}{9}{9}/ and ".repeat(10_000));
    let found = suggest(&text, text.len(), OCAML, 20, |_| &[]);
    assert_eq!(found.items.len(), 4);
}

proptest! {
    /// Any text, with the cursor anywhere.
    #[test]
    fn any_text_has_suggestions_that_can_be_taken(
        text in prop_oneof![
            any::<String>(),
            r#"((live|in|at|size|inside|module|and|or|not|\.\.|[<>=!(),"'/\\é ]|50%|1s) ?){0,8}"#,
        ],
        cursor in 0..40_usize,
    ) {
        let names = all_names();
        let found = suggest(&text, cursor, OCAML, 20, |_| &names);
        prop_assert!(text.get(found.replace.clone()).is_some());
        prop_assert!(found.replace.start <= cursor);
    }
}
