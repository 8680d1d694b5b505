//! The rows of the table: their figures, and what is opened.

use heapline_engine::Report;
use heapline_profile::query::Pattern;
use heapline_profile::{Estimator, GroupBy, Look, Query};
use heapline_testkit::fixtures;
use heapline_text::units::{estimated_bytes, label};
use heapline_tui::{Choices, News, Situation};
use ratatui::crossterm::event::KeyCode;

use crate::screen::{Screen, profile};
use crate::{MIX, NORMAL};

#[test]
fn an_opened_row_has_the_memory_of_its_row() {
    let groups = [
        GroupBy::Function,
        GroupBy::Site,
        GroupBy::Address,
        GroupBy::File,
        GroupBy::Module,
        GroupBy::Crate,
        GroupBy::Domain,
        GroupBy::Size,
        GroupBy::Age,
    ];
    let looks = [
        Look::default(),
        Look {
            own_code: true,
            ..Look::default()
        },
        Look {
            mine: vec![Pattern::glob("Stdlib.*"), Pattern::glob("Mix.cached")],
            ..Look::default()
        },
        Look {
            hide: vec![Pattern::glob("Stdlib.Map.*"), Pattern::glob("Mix.words")],
            split_anonymous: true,
            ..Look::default()
        },
    ];
    for by in groups {
        for look in &looks {
            let choices = Choices {
                by,
                look: look.clone(),
                ..Choices::default()
            };
            let mut screen = Screen::start_with(choices, MIX, (160, 40), false);
            let Report::Hotspots(report) = screen.report(MIX) else {
                panic!("not a table");
            };
            assert!(!report.rows.is_empty());
            for row in &report.rows {
                let expected = estimated_bytes(row.own.allocated.bytes);
                let name = format!("{by:?} {look:?} {:?}", row.label);
                screen.press(KeyCode::Enter);
                let header = screen.row_with("live ");
                assert!(
                    header.contains(&format!("live {expected} at ")),
                    "{name}: {header}"
                );
                let Report::Tree(tree) = screen.report(MIX) else {
                    panic!("{name} is not opened");
                };
                assert_eq!(estimated_bytes(tree.total.bytes), expected, "{name}");
                screen.press(KeyCode::Esc);
                screen.press(KeyCode::Down);
            }
        }
    }
}

#[test]
fn live_memory_of_an_attached_recording_is_that_since_the_attach() {
    let mut screen = Screen::open(MIX, NORMAL);
    assert!(!screen.text().contains("since attach"));
    let trace = profile(&fixtures::folder().join(MIX));
    let situation = Situation {
        is_attached: true,
        ..Situation::of(&trace, Estimator::default(), 1, false)
    };
    screen.app.receive(News::Advanced(situation));
    screen.draw();
    let header = screen.row_with("live since attach");
    assert!(header.contains("4.45 ± 0.22 MiB at 41.9 ms"), "{header}");
}

#[test]
fn rows_without_a_rate_stay_when_rows_are_sorted_by_it() {
    let mut screen = Screen::open(MIX, (120, 40));
    let names = |screen: &Screen| -> Vec<String> {
        let rows = screen.rows().into_iter().filter(|row| row.contains("Mix."));
        rows.filter_map(|row| row.split(' ').next_back().map(str::to_owned))
            .collect()
    };
    let mut live = names(&screen);
    assert!(screen.row_with("Mix.cached").contains(" -  "));
    screen.press(KeyCode::Tab);
    assert!(screen.text().contains("rate ▼"), "{}", screen.text());
    let mut by_rate = names(&screen);
    live.sort();
    by_rate.sort();
    assert!(
        live.iter().all(|name| by_rate.contains(name)),
        "{}",
        screen.text()
    );
}

#[test]
fn the_keys_of_the_filter_are_shown_while_it_is_typed() {
    let mut screen = Screen::open(MIX, NORMAL);
    assert!(screen.text().contains("q Quit"));
    screen.keys("/");
    let text = screen.text();
    assert!(
        text.contains("Enter Apply") && !text.contains("q Quit"),
        "{text}"
    );
    screen.press(KeyCode::Esc);
    assert!(screen.text().contains("q Quit"));
}

#[test]
fn the_command_is_shown_as_a_whole() {
    let choices = Choices {
        query: Query::parse("size >= 2w and not inside \"Stdlib.Bigarray.*\" and lifetime > 1us")
            .unwrap(),
        look: Look {
            own_code: true,
            ..Look::default()
        },
        ..Choices::default()
    };
    let mut screen = Screen::start_with(choices, MIX, NORMAL, false);
    let command = screen.app.command().unwrap();
    assert!(command.len() > 100, "{command}");
    screen.keys("c");
    let text = screen.rows().join(" ");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&text).contains(&words(&command)), "{}", screen.text());
}

#[test]
fn rows_have_the_numbers_of_the_command() {
    for size in [NORMAL, (120, 40), (200, 50)] {
        let screen = Screen::open(MIX, size);
        assert_eq!(
            screen.app.command().unwrap(),
            "heapline hotspots trace.ctf --live end --rows 1000"
        );
        let Report::Hotspots(report) = screen.report(MIX) else {
            panic!("not a table");
        };
        assert!(report.rows.len() >= 5);
        for row in &report.rows {
            let shown = screen.row_with(&label(&row.label));
            assert!(
                shown.contains(&estimated_bytes(row.own.allocated.bytes)),
                "{shown}"
            );
        }
        let total = estimated_bytes(report.total.allocated.bytes);
        assert!(
            screen
                .row_with("live ")
                .contains(&format!("live {total} at 41.9 ms"))
        );
        assert!(screen.text().contains("rate ") && screen.text().contains("allocated "));
    }
}

#[test]
fn a_row_opens_to_its_callers_and_back() {
    let mut screen = Screen::open(MIX, NORMAL);
    screen.press(KeyCode::Down);
    let table = screen.rows();
    screen.press(KeyCode::Enter);
    assert!(
        screen
            .row_with(" of own function = ")
            .contains("Mix.cached")
    );
    assert!(screen.row_with("live ").contains("1.26 ± 0.17 MiB"));
    screen.press(KeyCode::Esc);
    assert_eq!(screen.rows(), table);
}
