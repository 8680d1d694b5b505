//! The protocol: what is said to one client, and what it says.

use crate::outline::Outline;
use crate::sexp::{ParseError, Sexp};
use crate::view::{Click, View};

/// The address that the client sends its shell to, once.
const SHELL: i64 = 1;
/// The address that the client sends what happens in the buffer to.
const BUFFER: i64 = 2;
/// The version of the protocol.
const VERSION: i64 = 1;

/// A message that ends a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// It is not an s-expression.
    #[error("not an s-expression: {0}")]
    Parse(#[from] ParseError),
    /// It is none of the messages of the protocol.
    #[error("unknown message")]
    Unknown,
    /// It is of another version of the protocol.
    #[error("not version {VERSION} of the protocol")]
    Version,
    /// The client changed text that cannot be edited.
    #[error("the text cannot be edited")]
    Edited,
}

/// Loads the tree, at the beginning and at each refresh; an error is shown to the user.
pub type Load = Box<dyn FnMut() -> Result<Outline, String> + Send>;

/// The state of one client. It has no IO of its own.
pub struct Session {
    name: String,
    load: Load,
    /// The address of the client's shell.
    shell: Option<i64>,
    /// The address of the client's buffer, and its text.
    buffer: Option<(i64, View)>,
}

impl Session {
    /// A session whose buffer is called `name`.
    #[must_use]
    pub fn new(name: &str, load: Load) -> Self {
        Self {
            name: name.to_owned(),
            load,
            shell: None,
            buffer: None,
        }
    }

    /// The first message to the client.
    #[must_use]
    pub fn greeting(&self) -> Sexp {
        Sexp::list(vec![
            Sexp::symbol("greetings"),
            Sexp::Int(VERSION),
            Sexp::symbol("buffer-shell"),
            continuation("once", SHELL),
        ])
    }

    /// Takes a message of the client, a line without its end, and adds the answers to `out`.
    /// Returns false if the client ends the session.
    pub fn receive(&mut self, line: &[u8], out: &mut Vec<Sexp>) -> Result<bool, ProtocolError> {
        let message = Sexp::parse(line)?;
        if message.as_symbol() == Some("end") {
            return Ok(false);
        }
        let Sexp::List(items, end) = message else {
            return Err(ProtocolError::Unknown);
        };
        let number = items.get(1).and_then(Sexp::as_int);
        let number = number.ok_or(ProtocolError::Unknown)?;
        match items[0].as_symbol() {
            Some("greetings") if number == VERSION => Ok(true),
            Some("greetings") => Err(ProtocolError::Version),
            Some("feed") => {
                let end = end.map_or(Sexp::NIL, |end| *end);
                let payload = Sexp::dotted(items.into_iter().skip(2).collect(), end);
                self.feed(number, &payload, out)?;
                Ok(true)
            }
            // Its user killed the buffer, or it has none for us.
            Some("quit") => Ok(number != SHELL && number != BUFFER),
            _ => Err(ProtocolError::Unknown),
        }
    }

    fn feed(
        &mut self,
        address: i64,
        payload: &Sexp,
        out: &mut Vec<Sexp>,
    ) -> Result<(), ProtocolError> {
        match (address, payload) {
            (SHELL, shell) if self.shell.is_none() && many(shell).is_some() => {
                self.shell = many(shell);
                self.to_shell(
                    vec![
                        Sexp::symbol("create-buffer"),
                        Sexp::text(&self.name),
                        continuation("many", BUFFER),
                    ],
                    out,
                );
                Ok(())
            }
            (BUFFER, Sexp::List(items, end)) if self.shell.is_some() => {
                self.of_buffer(items, end.as_deref(), out)
            }
            (_, other) => {
                cancel(other, out);
                Ok(())
            }
        }
    }

    fn of_buffer(
        &mut self,
        items: &[Sexp],
        end: Option<&Sexp>,
        out: &mut Vec<Sexp>,
    ) -> Result<(), ProtocolError> {
        let unknown = ProtocolError::Unknown;
        match (items.first().and_then(Sexp::as_symbol), &mut self.buffer) {
            // The buffer itself: (many meta many . N).
            (Some("many"), None) => {
                let rest = Sexp::List(items[1..].to_vec(), end.cloned().map(Box::new));
                let address = many(&rest).ok_or(unknown)?;
                let outline = (self.load)().unwrap_or_else(|error| Outline::new(&error));
                let mut view = View::new(outline);
                to_buffer(address, out, |out| view.start(out));
                self.buffer = Some((address, view));
                Ok(())
            }
            (Some("ack"), Some((_, view))) => {
                let (seen, number) = items.get(1).and_then(pair).ok_or(unknown)?;
                view.patches.acknowledge(seen, number);
                Ok(())
            }
            (Some("patch"), Some((_, view))) => {
                let [
                    _,
                    revisions,
                    offset,
                    Sexp::List(operation, _),
                    Sexp::List(flags, _),
                ] = items
                else {
                    return Err(unknown);
                };
                let (seen, number) = pair(revisions).ok_or(unknown)?;
                let offset = offset.as_int().ok_or(unknown)?;
                if operation.first().and_then(Sexp::as_symbol) != Some("propertize") {
                    return Err(ProtocolError::Edited);
                }
                let now = usize::try_from(offset).ok();
                let now = now.and_then(|offset| view.patches.now(offset, seen));
                view.patches.acknowledge(seen, number);
                let is_click = flags.iter().any(|flag| flag.as_symbol() == Some("clicked"));
                if let Some(offset) = now
                    && is_click
                {
                    self.click(offset, out);
                }
                Ok(())
            }
            _ => {
                cancel(&Sexp::List(items.to_vec(), end.cloned().map(Box::new)), out);
                Ok(())
            }
        }
    }

    fn click(&mut self, offset: usize, out: &mut Vec<Sexp>) {
        let Some((address, view)) = &mut self.buffer else {
            return;
        };
        match view.at(offset) {
            Click::Nothing => {}
            Click::Line(line) => to_buffer(*address, out, |out| view.toggle(line, out)),
            Click::Refresh => match (self.load)() {
                Ok(outline) => to_buffer(*address, out, |out| view.refresh(outline, out)),
                Err(error) => {
                    let message = vec![Sexp::symbol("message"), Sexp::text(&error)];
                    self.to_shell(message, out);
                }
            },
        }
    }

    fn to_shell(&self, command: Vec<Sexp>, out: &mut Vec<Sexp>) {
        if let Some(shell) = self.shell {
            out.push(feed(shell, Sexp::list(command)));
        }
    }
}

/// Sends what `say` says to the client's buffer.
fn to_buffer(address: i64, out: &mut Vec<Sexp>, say: impl FnOnce(&mut Vec<Sexp>)) {
    let mut commands = Vec::new();
    say(&mut commands);
    out.extend(commands.into_iter().map(|command| feed(address, command)));
}

/// The message that gives a value to an address of the client.
fn feed(address: i64, value: Sexp) -> Sexp {
    Sexp::dotted(vec![Sexp::symbol("feed"), Sexp::Int(address)], value)
}

/// An address of ours, in a message.
fn continuation(kind: &str, address: i64) -> Sexp {
    Sexp::dotted(
        vec![Sexp::symbol("meta"), Sexp::symbol(kind)],
        Sexp::Int(address),
    )
}

/// The address of the client in `(meta many . ADDRESS)`.
fn many(sexp: &Sexp) -> Option<i64> {
    match sexp {
        Sexp::List(items, Some(address)) if is_continuation(items) => match items[1].as_symbol() {
            Some("many") => address.as_int(),
            _ => None,
        },
        _ => None,
    }
}

/// Returns true for the `meta once` and `meta many` of an address.
fn is_continuation(items: &[Sexp]) -> bool {
    let [meta, kind] = items else {
        return false;
    };
    meta.as_symbol() == Some("meta") && matches!(kind.as_symbol(), Some("once" | "many"))
}

/// Returns true for the beginning of `(meta escape . VALUE)`, which has no addresses.
fn is_escape(items: &[Sexp]) -> bool {
    items[0].as_symbol() == Some("meta") && items[1].as_symbol() == Some("escape")
}

/// The two integers of `(A . B)`.
fn pair(sexp: &Sexp) -> Option<(i64, i64)> {
    match sexp {
        Sexp::List(items, Some(b)) if items.len() == 1 => Some((items[0].as_int()?, b.as_int()?)),
        _ => None,
    }
}

/// Tells the client that the addresses in a value will not be used.
fn cancel(value: &Sexp, out: &mut Vec<Sexp>) {
    let Sexp::List(items, end) = value else {
        return;
    };
    if items.len() > 1 && is_escape(&items[..2]) {
        return;
    }
    // (a meta many . 1) is (a . (meta many . 1)).
    let tail = &items[items.len().saturating_sub(2)..];
    if let Some(address) = end.as_deref().and_then(Sexp::as_int)
        && is_continuation(tail)
    {
        let quit = vec![Sexp::symbol("quit"), Sexp::Int(address)];
        out.push(Sexp::dotted(quit, Sexp::symbol("cancel")));
    }
    for item in items {
        cancel(item, out);
    }
}
