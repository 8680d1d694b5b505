//! Screens of real traces, as a terminal of some size shows them.

mod rows;
mod screen;

use std::sync::atomic::Ordering;

use heapline_engine::Report;
use heapline_profile::Look;
use heapline_profile::query::Pattern;
use heapline_testkit::fixtures;
use heapline_text::units::{estimated_bytes, label, percent, seconds};
use heapline_tui::{Action, App, Choices, News, Settings, Situation};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use screen::Screen;

pub(crate) const MIX: &str = "mix-ocaml53/trace.ctf";
const SPACETIME: &str = "spacetime/mix/spacetime.profile.zst";
pub(crate) const NORMAL: (u16, u16) = (80, 24);

#[test]
fn small_screens_show_less_and_never_fail() {
    let mut screen = Screen::open(MIX, (40, 10));
    let text = screen.text();
    assert!(
        text.contains("Mix.big") && text.contains("2.29 MiB"),
        "{text}"
    );
    for (width, height) in [(40, 10), (20, 4), (1, 1), (3, 30), (200, 2), (79, 23)] {
        screen.terminal.backend_mut().resize(width, height);
        for key in ['1', '2', '3', '4', 'h', 'x', 'g', 's', '/'] {
            screen.press(KeyCode::Char(key));
            screen.press(KeyCode::Esc);
        }
        assert_eq!(screen.rows().len(), usize::from(height));
    }
}

#[test]
fn the_tree_goes_from_allocations_to_callers_or_back() {
    let mut screen = Screen::open(MIX, NORMAL);
    screen.keys("t");
    assert!(screen.text().contains("(allocations first)"));
    assert!(
        screen.row_with("Mix.cached").contains("▸"),
        "{}",
        screen.text()
    );
    let Report::Tree(tree) = screen.report(MIX) else {
        panic!("not a tree");
    };
    let root = &tree.nodes[0];
    let shown = screen.row_with(&label(&root.label));
    assert!(
        shown.contains(&estimated_bytes(root.total.bytes)),
        "{shown}"
    );
    let before = screen.rows();
    screen.press(KeyCode::Enter);
    assert!(screen.text().contains("▾"));
    screen.press(KeyCode::Enter);
    assert_eq!(screen.rows(), before);
    screen.keys("*");
    assert!(!screen.text().contains("▸"));
    screen.keys("i");
    assert!(screen.text().contains("(callers first)"));
    assert_eq!(
        screen.app.command().unwrap(),
        "heapline tree trace.ctf --live end"
    );
    screen.keys("-");
    assert!(screen.row_with("100.0").contains("▸"));
    // What was allocated in the last part of the run, per second.
    screen.press(KeyCode::Tab);
    assert!(
        screen.row_with("100.0").contains("1.080 ± 0.059 GiB/s"),
        "{}",
        screen.text()
    );
}

#[test]
fn moments_are_walked_through() {
    let mut screen = Screen::open(MIX, NORMAL);
    screen.keys("p");
    assert!(
        screen
            .row_with("live ")
            .contains("5.96 ± 0.31 MiB at 28.5 ms (the peak)")
    );
    assert!(screen.app.command().unwrap().contains("--live peak"));
    screen.press(KeyCode::Right);
    // The peak is a little before that.
    assert!(screen.row_with("live ").ends_with("at 28.5 ms"));
    screen.press(KeyCode::Right);
    assert!(screen.row_with("live ").contains("at 29 ms"));
    screen.keys("0");
    assert!(screen.row_with("live ").contains("at 0 µs"));
    screen.press(KeyCode::Left);
    screen
        .app
        .update(KeyEvent::new(KeyCode::Right, KeyModifiers::SHIFT));
    screen.settle();
    assert!(screen.row_with("live ").contains("at 5 ms"));
    screen.keys("e");
    assert!(screen.row_with("live ").contains("(the end)"));
}

#[test]
fn growth_is_measured_from_the_mark() {
    let mut screen = Screen::open(MIX, (120, 30));
    assert!(!screen.text().contains("growth"));
    screen.keys("pd");
    screen.keys("e");
    screen.press(KeyCode::Tab);
    let command = screen.app.command().unwrap();
    assert!(
        command.starts_with("heapline diff trace.ctf --window start.."),
        "{command}"
    );
    let Report::Diff(report) = screen.report(MIX) else {
        panic!("not a comparison");
    };
    let change = heapline_text::units::estimated_change(report.diff.total.bytes);
    let header = screen.row_with("live ");
    assert!(
        header.contains(&format!("growth {change} since 28.5 ms")),
        "{header}"
    );
    let row = &report.diff.rows[0];
    let shown = screen.row_with(&label(&row.label));
    let change = heapline_text::units::estimated_change(row.change.bytes);
    assert!(shown.contains(&format!("{change} ●")), "{shown}");
    screen.keys("D");
    assert!(!screen.text().contains("growth"));
}

#[test]
fn figures_can_be_grouped_filtered_and_counted() {
    let mut screen = Screen::open(MIX, NORMAL);
    screen.keys("gm");
    assert!(screen.text().contains(" by module") && screen.text().contains("Stdlib.Map.Make"));
    screen.keys("m");
    assert!(screen.text().contains(", own code") && !screen.row_with("MiB").contains("Stdlib"));
    assert!(screen.app.command().unwrap().contains("--own-code"));
    screen.keys("mgf");
    screen.press(KeyCode::Enter);
    screen.keys("b");
    assert!(screen.text().contains(", blocks"));
    screen.keys("b/inside ");
    screen.keys("Mix.wo");
    screen.complete();
    assert!(
        screen.text().contains(" \"Mix.words\""),
        "{}",
        screen.text()
    );
    screen.press(KeyCode::Tab);
    screen.press(KeyCode::Enter);
    assert!(screen.text().contains("where inside \"Mix.words\""));
    let command = screen.app.command().unwrap();
    assert!(
        command.contains("--where 'inside \"Mix.words\"'"),
        "{command}"
    );
}

#[test]
fn filters_that_the_source_does_not_tell_are_not_suggested() {
    for (trace, is_told) in [(MIX, true), (SPACETIME, false)] {
        let mut screen = Screen::open(trace, NORMAL);
        screen.keys("/lif");
        assert_eq!(screen.text().contains(" lifetime"), is_told, "{trace}");
        screen.press(KeyCode::Esc);
        screen.keys("/insi");
        assert!(screen.text().contains(" inside module"), "{trace}");
    }
}

#[test]
fn errors_of_a_filter_show_their_place() {
    let mut screen = Screen::open(MIX, NORMAL);
    screen.keys("/live at peak and lifetim > 2s");
    let rows = screen.rows();
    let line = rows
        .iter()
        .position(|row| row.contains("filter: "))
        .unwrap();
    let place = rows[line].find("lifetim").unwrap();
    assert_eq!(rows[line + 1], format!("{}^^^^^^^", " ".repeat(place)));
    assert!(rows[line + 2].contains("unknown field `lifetim`"));
    assert!(rows[line + 2].contains("did you mean `lifetime`?"));
    screen.press(KeyCode::Enter);
    assert!(screen.text().contains("filter: "));
    screen.press(KeyCode::Esc);
    assert!(!screen.text().contains("filter: "));
    // A name that the trace does not have.
    screen.keys("/inside Mix.wrods");
    screen.press(KeyCode::Enter);
    assert!(
        screen.text().contains("the trace has no function"),
        "{}",
        screen.text()
    );
}

#[test]
fn functions_of_options_that_the_trace_does_not_have_are_named() {
    let patterns = |text: &str| vec![Pattern::glob(text)];
    let open = |look: Look| {
        let choices = Choices {
            look,
            ..Choices::default()
        };
        Screen::start_with(choices, MIX, NORMAL, false)
    };
    let misspelt = open(Look {
        hide: patterns("Mix.wrods"),
        ..Look::default()
    });
    let text = misspelt.text();
    assert!(text.contains("--hide: the trace has no function"), "{text}");
    let misspelt = open(Look {
        mine: patterns("Mxi"),
        ..Look::default()
    });
    let text = misspelt.text();
    assert!(text.contains("--mine: the trace has no function"), "{text}");
    let right = open(Look {
        mine: patterns("Mix"),
        hide: patterns("Mix.words"),
        ..Look::default()
    });
    assert!(!right.text().contains("has no"), "{}", right.text());
}

#[test]
fn spacetime_profiles_are_walked_through_by_snapshots() {
    let mut screen = Screen::open(SPACETIME, NORMAL);
    assert!(screen.row_with("live ").contains("(snapshot 21/21)"));
    screen.press(KeyCode::Left);
    let header = screen.row_with("live ");
    assert!(header.contains("(snapshot 20/21)"), "{header}");
    let Report::Hotspots(report) = screen.report(SPACETIME) else {
        panic!("not a table");
    };
    let total = estimated_bytes(report.total.allocated.bytes);
    assert!(header.contains(&format!("live {total} at")), "{header}");
    // Live blocks are known, and sorted.
    screen.keys("b");
    assert!(!screen.text().contains("cannot"), "{}", screen.text());
    screen.keys("b");
    screen.press(KeyCode::Tab);
    screen.press(KeyCode::Tab);
    assert!(screen.text().contains("allocated ▼"));
    screen.keys("t");
    assert!(screen.row_with("▸").contains("MiB"), "{}", screen.text());
}

#[test]
fn the_timeline_has_the_largest_groups() {
    let mut screen = Screen::open(MIX, NORMAL);
    screen.keys("v");
    let text = screen.text();
    assert!(
        text.contains("Live bytes") && text.contains("Mix.leak_some") && !text.contains("Stdlib"),
        "{text}"
    );
    assert!(text.contains("▲"));
    screen.press(KeyCode::Tab);
    assert!(screen.text().contains("Bytes allocated per second"));
}

#[test]
fn help_can_be_read_to_its_end() {
    let mut screen = Screen::open(MIX, (80, 12));
    screen.press(KeyCode::F(1));
    assert!(screen.text().contains("select a row"));
    for _ in 0..100 {
        screen.press(KeyCode::Down);
    }
    assert!(screen.text().contains("the moment that is shown"));
    screen.press(KeyCode::Up);
    assert!(!screen.text().contains("the moment that is shown"));
    screen.press(KeyCode::Esc);
    assert!(!screen.text().contains("Help ("));
    assert_eq!(screen.press(KeyCode::Char('q')), Action::Quit);
}

#[test]
fn a_recording_grows_until_it_is_frozen_or_ends() {
    let mut screen = Screen::start("mix-ocaml413/trace.ctf", NORMAL, true);
    assert!(
        screen
            .row_with("heapline top")
            .contains("recording, 39.0 ms")
    );
    assert!(screen.row_with("live ").contains("(now)"));
    // Growth is that since it was first seen.
    assert!(screen.row_with("live ").contains("since 39.0 ms"));
    screen.keys(" ");
    assert!(screen.row_with("heapline top").contains("FROZEN"));
    let later = fixtures::folder().join(MIX);
    screen.states.lock().unwrap().push(later);
    while !screen.states.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
    screen.settle();
    assert!(screen.row_with("heapline top").contains("FROZEN, 39.0 ms"));
    screen.app.update(KeyEvent::from(KeyCode::Char(' ')));
    screen.worker.freeze(false);
    screen.wait_for(|news| matches!(news, News::Advanced(_)));
    screen.settle();
    assert!(
        screen
            .row_with("heapline top")
            .contains("recording, 41.9 ms")
    );
    screen.is_recording.store(false, Ordering::Relaxed);
    screen.wait_for(|news| matches!(news, News::Ended));
    assert!(screen.row_with("heapline top").contains("ended, 41.9 ms"));
    assert!(screen.text().contains("the recording has ended"));
    screen.keys(" ");
    assert!(screen.text().contains("nothing changes"));
}

#[test]
fn a_program_that_was_started_is_not_left_or_ended_by_mistake() {
    let key = |c| KeyEvent::from(KeyCode::Char(c));
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    let settings = Settings {
        is_own_program: true,
        ..Settings::default()
    };
    let mut app = App::new(settings, Choices::default());
    app.receive(News::Advanced(Situation {
        is_recording: true,
        ..Situation::default()
    }));
    assert_eq!(app.update(key('q')), Action::Redraw);
    assert_eq!(app.update(KeyEvent::from(KeyCode::Esc)), Action::Redraw);
    assert_eq!(app.update(key('k')), Action::Redraw);
    for first in [key('q'), interrupt] {
        for (second, action) in [
            (key('l'), Action::Quit),
            (key('k'), Action::Kill),
            (interrupt, Action::Kill),
        ] {
            assert_eq!(app.update(first), Action::Redraw);
            assert_eq!(app.update(second), action);
            app.update(KeyEvent::from(KeyCode::Esc));
        }
    }
    app.receive(News::Ended);
    assert_eq!(app.update(key('q')), Action::Quit);
}

/// Empty, damaged, deep and strange traces, and profiles without names.
#[test]
fn every_trace_can_be_shown() {
    let folder = fixtures::folder();
    let spacetime = ["events", "killed", "mix", "old406"];
    let spacetime =
        spacetime.map(|name| folder.join(format!("spacetime/{name}/spacetime.profile.zst")));
    let traces = fixtures::traces().into_iter().chain(spacetime);
    for trace in traces.filter(|trace| trace.starts_with(&folder)) {
        let name = trace.strip_prefix(&folder).unwrap().to_str().unwrap();
        let mut screen = Screen::open(name, NORMAL);
        for key in "pdt*ivb0em4123".chars() {
            screen.press(KeyCode::Char(key));
        }
        for code in [
            KeyCode::Left,
            KeyCode::Tab,
            KeyCode::End,
            KeyCode::Enter,
            KeyCode::Esc,
        ] {
            screen.keys("1");
            screen.press(code);
            screen.keys("2");
            screen.press(code);
        }
        assert!(screen.row_with("heapline top").contains("ended"), "{name}");
        let is_damaged = fixtures::is_damaged(&trace);
        assert!(
            !is_damaged || screen.text().contains(" ms, damaged"),
            "{}",
            screen.text()
        );
    }
}

#[test]
fn the_collector_is_shown_with_its_last_interval_and_its_longest_pause() {
    let trace = "generated/collector.ctf";
    let mut screen = Screen::open(trace, (100, 40));
    screen.keys("G");
    let Report::Gc(report) = screen.report(trace) else {
        panic!("not the collector");
    };
    let share = percent(report.collector.percent, 100.0);
    let longest = seconds(report.pauses.max.unwrap());
    let line = screen.row_with("Garbage collector:");
    assert!(line.contains(&share) && line.contains(&longest), "{line}");
    let interval = screen.row_with("Last ");
    assert!(
        interval.contains("Last 495 ms: ") && interval.contains("pauses"),
        "{interval}"
    );
    assert!(interval.contains("/s promoted"), "{interval}");
    let command = screen.app.command().unwrap();
    assert!(
        command.starts_with("heapline gc trace.ctf --points "),
        "{command}"
    );
    assert!(screen.row_with("F1 Help").contains("Scroll"));

    // The causes of the longest pause are below; the end of the text is the end of scrolling.
    screen.press(KeyCode::End);
    let end = screen.rows();
    screen.press(KeyCode::Down);
    assert_eq!(screen.rows(), end);
    screen.press(KeyCode::Home);
    assert!(screen.text().contains("Last 495 ms"));

    // Up to an earlier moment there were fewer pauses.
    screen.keys("0");
    screen.press(KeyCode::Right);
    let Report::Gc(earlier) = screen.report(trace) else {
        panic!("not the collector");
    };
    assert!(earlier.pauses.count < report.pauses.count);
    screen.keys("G");
    assert!(screen.text().contains("live ▼"));
}

#[test]
fn traces_without_collections_say_so() {
    let mut screen = Screen::open(MIX, (100, 24));
    screen.keys("4");
    assert!(
        screen.text().contains("cannot show the garbage collector"),
        "{}",
        screen.text()
    );
}
