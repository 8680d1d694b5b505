//! A client that does what `sturgeon.el` does in Emacs: it keeps the text of a buffer, and clicks on
//! its buttons.

use heapline_sturgeon::Sexp;

/// Emacs answers when the server has run ahead by so many patches.
const ACKNOWLEDGE_AFTER: i64 = 16;

/// The state of Emacs.
#[derive(Default)]
pub(crate) struct Client {
    /// The name of the buffer.
    pub(crate) name: Option<String>,
    /// The characters of the buffer, and whether they are part of a button.
    text: Vec<(char, bool)>,
    /// The last patch of the server.
    seen: i64,
    /// The last patch of the server that it was told of.
    told: i64,
    /// Changes of the buffer: every change counts, the server's too.
    revision: i64,
    /// Messages of the server to the user.
    pub(crate) messages: Vec<String>,
}

impl Client {
    pub(crate) fn text(&self) -> String {
        self.text.iter().map(|&(c, _)| c).collect()
    }

    /// Handles a line of the server, and returns the answers.
    pub(crate) fn receive(&mut self, line: &str) -> Vec<String> {
        let message = Sexp::parse(line.as_bytes()).expect(line);
        let items = items(&message);
        match (symbol(&items[0]), items[1].as_int()) {
            ("greetings", Some(1)) => {
                assert_eq!(line, "(greetings 1 buffer-shell (meta once . 1))");
                vec!["(greetings 1)".into(), "(feed 1 meta many . 0)".into()]
            }
            ("feed", Some(0)) if symbol(&items[2]) == "create-buffer" => {
                assert_eq!(items[4].to_string(), "(meta many . 2)");
                self.name = Some(string(&items[3]));
                vec!["(feed 2 many meta many . 1)".into()]
            }
            ("feed", Some(0)) if symbol(&items[2]) == "message" => {
                self.messages.push(string(&items[3]));
                vec![]
            }
            ("feed", Some(1)) => self.patch(&items[2..]),
            _ => panic!("unexpected message: {line}"),
        }
    }

    /// The message for a click at an offset.
    pub(crate) fn click_at(&self, offset: usize) -> String {
        let (seen, revision) = (self.seen, self.revision);
        format!("(feed 2 patch ({seen} . {revision}) {offset} (propertize . 0) (clicked))")
    }

    /// The message for a click on the button of the line with a text; on its middle.
    pub(crate) fn click(&self, line: &str) -> String {
        let mut start = 0;
        for text in self.text().split_inclusive('\n') {
            let len = text.chars().count();
            let chars = &self.text[start..start + len];
            if text.contains(line)
                && let Some(button) = chars.iter().position(|&(_, is_button)| is_button)
            {
                return self.click_at(start + button + 1);
            }
            start += len;
        }
        panic!("no button in a line with {line:?}:\n{}", self.text());
    }

    fn patch(&mut self, items: &[Sexp]) -> Vec<String> {
        let [patch, revisions, offset, operation, flags] = items else {
            panic!("not a patch: {items:?}");
        };
        assert_eq!(symbol(patch), "patch");
        let Sexp::List(_, Some(sent)) = revisions else {
            panic!("no revisions: {revisions}");
        };
        // Each patch has the next number.
        assert_eq!(sent.as_int(), Some(self.seen + 1));
        self.seen += 1;
        let offset = usize::try_from(offset.as_int().unwrap()).unwrap();
        let is_button = flags.to_string() == "(clickable)";
        let Sexp::List(operation, Some(len)) = operation else {
            panic!("no operation: {operation}");
        };
        let len = usize::try_from(len.as_int().unwrap()).unwrap();
        match symbol(&operation[0]) {
            "insert" => {
                let text: Vec<_> = string(&operation[1])
                    .chars()
                    .map(|c| (c, is_button))
                    .collect();
                assert_eq!(text.len(), len);
                self.text.splice(offset..offset, text);
            }
            "remove" => drop(self.text.drain(offset..offset + len)),
            other => panic!("unexpected operation: {other}"),
        }
        self.revision += 1;
        if self.told + ACKNOWLEDGE_AFTER < self.seen {
            self.told = self.seen;
            return vec![format!("(feed 2 ack ({} . {}))", self.seen, self.revision)];
        }
        vec![]
    }
}

fn items(sexp: &Sexp) -> &[Sexp] {
    match sexp {
        Sexp::List(items, _) => items,
        other => panic!("not a list: {other}"),
    }
}

fn symbol(sexp: &Sexp) -> &str {
    sexp.as_symbol()
        .unwrap_or_else(|| panic!("not a symbol: {sexp}"))
}

fn string(sexp: &Sexp) -> String {
    match sexp {
        Sexp::Text(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        other => panic!("not a string: {other}"),
    }
}
