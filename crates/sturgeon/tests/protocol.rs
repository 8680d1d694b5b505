//! Sessions with a client that does what Emacs does.

#[path = "common/client.rs"]
mod client;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use client::Client;
use heapline_sturgeon::{Outline, ProtocolError, Session};
use heapline_testkit::property_config;
use proptest::prelude::*;

fn outline(version: u32) -> Outline {
    let mut outline = Outline::new(&format!("{version} MB total"));
    let site = outline.add(0, "a", "2 MB | a.ml:1 ±");
    let caller = outline.add(site, "b", "2 MB | b.ml:2");
    outline.add(caller, "main", "2 MB | main");
    outline.add(0, "c", "1 MB | c.ml:3");
    outline
}

/// A session and its client, whose messages are delivered at once.
struct Pair {
    session: Session,
    client: Client,
    /// The output of the server.
    said: Vec<String>,
}

impl Pair {
    fn new() -> Self {
        let loads = Arc::new(AtomicU32::new(0));
        let load = move || match loads.fetch_add(1, Ordering::Relaxed) + 1 {
            4 => Err("cannot open the trace".to_owned()),
            version => Ok(outline(version)),
        };
        let session = Session::new("demo.exe", Box::new(load));
        let mut pair = Self {
            session,
            client: Client::default(),
            said: Vec::new(),
        };
        let greeting = pair.session.greeting().to_string();
        pair.said.push(greeting.clone());
        let answers = pair.client.receive(&greeting);
        pair.send(answers);
        pair
    }

    fn send(&mut self, messages: Vec<String>) {
        let mut pending = VecDeque::from(messages);
        while let Some(message) = pending.pop_front() {
            let mut answers = Vec::new();
            assert_eq!(
                self.session.receive(message.as_bytes(), &mut answers),
                Ok(true)
            );
            for answer in answers {
                let answer = answer.to_string();
                pending.extend(self.client.receive(&answer));
                self.said.push(answer);
            }
        }
    }

    fn click(&mut self, line: &str) {
        let click = self.client.click(line);
        self.send(vec![click]);
    }
}

/// The messages of a real session of statmemprof-emacs with Emacs.
#[test]
fn the_transcript_of_statmemprof_emacs() {
    let mut pair = Pair::new();
    let said: Vec<&str> = pair.said.iter().map(String::as_str).collect();
    assert_eq!(
        said,
        [
            "(greetings 1 buffer-shell (meta once . 1))",
            "(feed 0 create-buffer \"demo.exe\" (meta many . 2))",
            "(feed 1 patch (0 . 1) 0 (insert \"[Refresh]\" . 9) (clickable))",
            "(feed 1 patch (0 . 2) 9 (insert \"\\n\" . 1) nil)",
            "(feed 1 patch (0 . 3) 10 (insert \"\\n\" . 1) nil)",
            "(feed 1 patch (0 . 4) 11 (insert \"[+]\" . 3) (clickable))",
            "(feed 1 patch (0 . 5) 14 (insert \" 1 MB total\\n\" . 12) nil)",
        ]
    );
    pair.said.clear();
    // Emacs had counted two more changes there.
    pair.send(vec![
        "(feed 2 patch (5 . 7) 12 (propertize . 0) (clicked))".into(),
    ]);
    assert_eq!(pair.said[0], "(feed 1 patch (7 . 6) 11 (remove . 3) nil)");
    pair.send(vec!["(feed 2 ack (17 . 21))".into()]);
}

#[test]
fn lines_are_unfolded_and_folded() {
    let mut pair = Pair::new();
    assert_eq!(pair.client.name.as_deref(), Some("demo.exe"));
    let folded = "[Refresh]\n\n[+] 1 MB total\n";
    assert_eq!(pair.client.text(), folded);
    pair.click("total");
    let open = "[Refresh]\n\n[-] 1 MB total\n [+] 2 MB | a.ml:1 ±\n     1 MB | c.ml:3\n";
    assert_eq!(pair.client.text(), open);
    pair.click("a.ml");
    pair.click("b.ml");
    let all = "[Refresh]\n\n[-] 1 MB total\n [-] 2 MB | a.ml:1 ±\n  [-] 2 MB | b.ml:2\n       \
               2 MB | main\n     1 MB | c.ml:3\n";
    assert_eq!(pair.client.text(), all);
    pair.click("a.ml");
    assert_eq!(pair.client.text(), open);
    // What was open below is open again.
    pair.click("a.ml");
    assert_eq!(pair.client.text(), all);
    pair.click("total");
    assert_eq!(pair.client.text(), folded);
}

#[test]
fn refresh_reads_again_and_keeps_what_is_open() {
    let mut pair = Pair::new();
    pair.click("total");
    pair.click("a.ml");
    let open = pair.client.text();
    pair.click("Refresh");
    assert_eq!(pair.client.text(), open.replace("1 MB total", "2 MB total"));
    pair.click("Refresh");
    let latest = open.replace("1 MB total", "3 MB total");
    assert_eq!(pair.client.text(), latest);
    // An error is told, and what was known stays.
    pair.click("Refresh");
    assert_eq!(pair.client.messages, ["cannot open the trace"]);
    assert_eq!(pair.client.text(), latest);
    for _ in 0..100 {
        pair.click("total");
    }
    assert_eq!(pair.client.text(), latest);
}

/// The client clicks before it has seen what the server did at its earlier clicks.
#[test]
fn clicks_on_a_text_that_has_changed_meanwhile() {
    let mut pair = Pair::new();
    pair.click("total");
    let [first, second] = ["a.ml", "total"].map(|line| pair.client.click(line));
    // Folding the total removes the line; the second click on it hits nothing.
    pair.send(vec![second.clone(), first.clone()]);
    assert_eq!(pair.client.text(), "[Refresh]\n\n[+] 1 MB total\n");
    pair.click("total");
    // The button itself was replaced.
    pair.send(vec![second]);
    let text = pair.client.text();
    assert!(text.contains("[-] 1 MB total"), "{text}");
    // A line below moves when lines are inserted above it.
    let mut pair = Pair::new();
    pair.click("total");
    pair.click("a.ml");
    let clicks = ["Refresh", "b.ml"].map(|line| pair.client.click(line));
    pair.send(clicks.into());
    let text = pair.client.text();
    assert!(
        text.contains("2 MB total") && text.contains("[+] 2 MB | b.ml"),
        "{text}"
    );
}

#[test]
fn addresses_that_are_not_used_are_given_back() {
    let mut pair = Pair::new();
    let mut answers = Vec::new();
    let message = b"(feed 9 a (b meta once . 5) (meta escape meta many . 6) meta many . 7)";
    assert_eq!(pair.session.receive(message, &mut answers), Ok(true));
    let answers: Vec<String> = answers.iter().map(ToString::to_string).collect();
    assert_eq!(answers, ["(quit 7 . cancel)", "(quit 5 . cancel)"]);
}

#[test]
fn sessions_end_when_the_buffer_is_killed() {
    let none = &mut Vec::new();
    for message in ["end", "(quit 2 . finalize)", "(quit 1)"] {
        assert_eq!(
            Pair::new().session.receive(message.as_bytes(), none),
            Ok(false)
        );
    }
    // Something else was collected as garbage.
    assert_eq!(
        Pair::new().session.receive(b"(quit 9 . finalize)", none),
        Ok(true)
    );
    let refused = |message: &str| Pair::new().session.receive(message.as_bytes(), &mut vec![]);
    assert_eq!(refused("(greetings 2)"), Err(ProtocolError::Version));
    assert_eq!(refused("hello"), Err(ProtocolError::Unknown));
    assert_eq!(refused("(feed)"), Err(ProtocolError::Unknown));
    assert_eq!(refused("nil"), Err(ProtocolError::Unknown));
    assert!(matches!(refused("("), Err(ProtocolError::Parse(_))));
    let edit = "(feed 2 patch (5 . 7) 12 (insert \"a\" . 1) (editable))";
    assert_eq!(refused(edit), Err(ProtocolError::Edited));
}

proptest! {
    #![proptest_config(property_config(500))]

    /// The text of the client is the right one whatever it clicks on, and however late it is.
    #[test]
    fn any_clicks(clicks in proptest::collection::vec((0_usize..80, 0_i64..40, -3_i64..90), 0..40)) {
        let mut pair = Pair::new();
        pair.click("total");
        for (offset, seen, number) in clicks {
            pair.send(vec![
                pair.client.click_at(offset),
                format!("(feed 2 patch ({seen} . {number}) {offset} (propertize . 0) (clicked))"),
            ]);
            let text = pair.client.text();
            prop_assert!(text.starts_with("[Refresh]\n\n["), "{}", text);
            let is_open = text.contains("[-]");
            prop_assert_eq!(text.lines().count() > 3, is_open, "{}", text);
        }
    }
}
