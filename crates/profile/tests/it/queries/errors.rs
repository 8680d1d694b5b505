//! Texts that are not queries.

use heapline_profile::Query;
use heapline_profile::query::{TimePoint, Window};
use heapline_profile::reports::Budget;

use super::model::{COUNT, MODELS};

/// Parses a text as everything that it might be. The place of an error is a part of the text.
pub(crate) fn survives(text: &str) {
    let budget = format!("allocated where {text} < 3MiB");
    let errors = [
        Query::parse(text).err(),
        Window::parse(text).err(),
        TimePoint::parse(text).err(),
        Budget::parse(text).err(),
        Budget::parse(&budget).err(),
    ];
    for error in errors.into_iter().flatten() {
        assert!(
            error.query.get(error.start..error.end).is_some(),
            "{error:?}"
        );
        assert!(!error.to_string().is_empty());
    }
    if let Ok(query) = Query::parse(text) {
        let _ = query.select(&MODELS[0].profile, COUNT);
    }
}

/// Keywords are the same in upper and lower case, wherever they stand.
#[test]
fn upper_case_is_as_good() {
    for (lower, upper) in [
        ("live in 10us.. and size > 3", "LIVE IN 10us.. AND size > 3"),
        ("size in 1.. or heap = minor", "size in 1.. OR HEAP = Minor"),
        ("not collected or size > 3", "NOT Collected OR SIZE > 3"),
    ] {
        assert_eq!(MODELS[0].select(lower), MODELS[0].select(upper), "{upper}");
    }
}

#[test]
fn errors_mark_the_place_and_say_what_is_wrong() {
    for (text, marked, message) in [
        ("sise > 3", "sise", "unknown field `sise`"),
        ("live at peak and sise > 3", "sise", "unknown field `sise`"),
        ("size", "", "missing comparison"),
        ("size 3", "3", "missing comparison"),
        ("size > much", "much", "invalid value for this field"),
        ("size > 3s", "3s", "invalid value for this field"),
        ("size >", "", "unexpected end of the query"),
        ("size in 3", "", "incomplete range"),
        ("size > 3 or", "", "missing condition"),
        (
            "size > 3 size < 4",
            "size",
            "unexpected text after the query",
        ),
        ("(size > 3", "", "missing closing parenthesis"),
        ("size > 3)", ")", "unmatched closing parenthesis"),
        ("live", "", "missing time"),
        ("live at noon", "noon", "invalid time"),
        ("live at 101%", "101%", "invalid time"),
        ("live in 10s", "", "incomplete range"),
        ("allocated", "", "missing time"),
        ("collected < soon", "soon", "invalid time"),
        ("lifetime > 5", "5", "invalid value for this field"),
        ("samples > -1", "-1", "invalid value for this field"),
        ("domain = first", "first", "invalid value for this field"),
        ("heap = big", "big", "unknown heap"),
        ("heap < major", "<", "names cannot be ordered"),
        ("site > f", ">", "names cannot be ordered"),
        ("inside", "", "missing name"),
        ("inside and size > 3", "and", "missing name"),
        ("inside /(/", "/(/", "invalid regular expression"),
        (
            "inside /(a{999}){999}/",
            "/(a{999}){999}/",
            "the regular expression is too large",
        ),
        ("inside /a", "/a", "unterminated regular expression"),
        ("inside \"a", "\"a", "unterminated text"),
        ("and", "and", "unknown field `and`"),
        ("()", ")", "missing condition"),
        ("é > 3", "é", "unknown field `é`"),
    ] {
        let error = Query::parse(text).unwrap_err();
        assert_eq!(&text[error.start..error.end], marked, "{text}: {error}");
        assert_eq!(error.message, message, "{text}");
        assert!(!error.expected.is_empty() && error.query == text, "{text}");
        // The marks are below the place.
        let shown = error.to_string();
        let lines: Vec<&str> = shown.lines().collect();
        let marks = lines[2].chars().take_while(|c| *c == ' ').count();
        assert_eq!(marks, 2 + text[..error.start].chars().count(), "{shown}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    for part in ["(", "not ", "not ("] {
        let error = Query::parse(&(part.repeat(100_000) + "size > 3")).unwrap_err();
        assert_eq!(error.message, "nested too deeply");
    }
    let wide = vec!["size > 3"; 10_000].join(" or ");
    assert_eq!(MODELS[0].select(&wide), MODELS[0].select("size > 3"));
    let nested = format!("{}size > 3{}", "(".repeat(90), ")".repeat(90));
    assert_eq!(MODELS[0].select(&nested), MODELS[0].select("size > 3"));
}
