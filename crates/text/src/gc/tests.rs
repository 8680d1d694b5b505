use heapline_model::{Damage, InputSize};
use heapline_profile::reports::{GcOptions, gc as report};
use heapline_profile::{Estimator, Query, Scope, Store, StoreOptions};
use heapline_testkit::collections::Collected;

use super::*;
use crate::screen::Screen;
use crate::width::columns;

fn rendered(run: &Collected, screen: Screen) -> String {
    let mut store = Store::new(run.header(), StoreOptions::default());
    store.append(&run.batch());
    let profile = store.finish(Damage::default(), InputSize::default());
    let scope = Scope::new(&profile, &Query::default(), Estimator::default());
    let report = report(&scope, &GcOptions::default()).unwrap();
    let suggest = |report: &str, arguments: &[&str]| {
        format!("heapline {report} trace.ctf {}", arguments.join(" "))
    };
    let context = Context {
        screen,
        suggest: Some(&suggest),
    };
    gc(&report, &context).to_string()
}

/// A text without its line breaks.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_first_screen_has_the_share_of_time_and_the_cause_of_each_pause() {
    let text = rendered(&Collected::default(), Screen::new(100, false));
    println!("{text}");
    let text = unwrapped(&text);
    for expected in [
        "Garbage collector: ",
        "Times and counts are exact.",
        "The program asked for a whole major collection",
        "The minor collection promoted only 2.34 KiB in 40 ms",
        "Finalisers, which are functions of the program, ran for 35 ms.",
        "The samples agree with them.",
        "most of it allocated by Parse.build",
        "heapline hotspots trace.ctf --where promoted --by site",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("By domain"), "{text}");
}

#[test]
fn the_domain_that_held_up_the_others_is_named() {
    let run = Collected {
        domains: 3,
        ..Collected::default()
    };
    let text = rendered(&run, Screen::new(120, false));
    println!("{text}");
    let text = unwrapped(&text);
    assert!(text.contains("By domain"), "{text}");
    assert!(text.contains("for domain 1."), "{text}");
}

#[test]
fn lines_fit_the_screen() {
    for domains in [1, 4] {
        let run = Collected {
            domains,
            seconds: 5,
            ..Collected::default()
        };
        for width in [60, 80, 120] {
            for ascii in [false, true] {
                let text = rendered(&run, Screen::new(width, ascii));
                println!("{text}");
                let (report, _commands) = text.split_once("Next\n").unwrap();
                for line in report.lines() {
                    assert!(columns(line) <= width, "{width}: {line}");
                    assert!(!ascii || line.is_ascii(), "{line}");
                }
            }
        }
    }
}
