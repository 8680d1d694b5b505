//! S-expressions as Emacs reads and prints them: the part that the protocol uses.

use std::fmt;

/// Lists that are nested deeper are refused: messages of Emacs have less than ten levels.
const MAX_DEPTH: usize = 64;

/// An s-expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sexp {
    /// A symbol other than `nil`.
    Symbol(String),
    /// An integer.
    Int(i64),
    /// A string of any bytes.
    Text(Vec<u8>),
    /// A list with an improper end if it has one, such as the 2 of `(1 . 2)`: neither a list nor
    /// `nil`. The empty list is `nil`.
    List(Vec<Sexp>, Option<Box<Sexp>>),
}

/// A text that is not one s-expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text ends too early.
    #[error("unexpected end")]
    Unfinished,
    /// A byte cannot be there.
    #[error("unexpected character at byte {0}")]
    Unexpected(usize),
    /// Too many lists inside each other.
    #[error("more than {MAX_DEPTH} levels of lists")]
    TooDeep,
    /// An integer of more than 64 bits.
    #[error("integer out of range at byte {0}")]
    Overflow(usize),
}

impl Sexp {
    /// The empty list.
    pub const NIL: Self = Self::List(Vec::new(), None);

    /// A symbol; `nil` is the empty list.
    #[must_use]
    pub fn symbol(name: &str) -> Self {
        match name {
            "nil" => Self::NIL,
            _ => Self::Symbol(name.to_owned()),
        }
    }

    /// A string.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(text.as_bytes().to_vec())
    }

    /// A list.
    #[must_use]
    pub fn list(items: Vec<Self>) -> Self {
        Self::List(items, None)
    }

    /// A list that goes on with `end`: `(1 2 . end)`.
    #[must_use]
    pub fn dotted(mut items: Vec<Self>, end: Self) -> Self {
        match end {
            end if items.is_empty() => end,
            Self::List(more, end) => {
                items.extend(more);
                Self::List(items, end)
            }
            end => Self::List(items, Some(Box::new(end))),
        }
    }

    /// Parses a text that is one s-expression, with nothing but white space around it.
    ///
    /// ```
    /// use heapline_sturgeon::Sexp;
    ///
    /// let message = Sexp::parse(b"(feed 1 meta many . 0)").unwrap();
    /// assert_eq!(message, Sexp::parse(b"(feed . (1 . (meta . (many . 0))))").unwrap());
    /// assert_eq!(message.to_string(), "(feed 1 meta many . 0)");
    /// ```
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        let mut parser = Parser { text, at: 0 };
        let sexp = parser.sexp(MAX_DEPTH)?;
        parser.skip_space();
        if parser.at == text.len() {
            Ok(sexp)
        } else {
            Err(ParseError::Unexpected(parser.at))
        }
    }

    /// The symbol's name; `None` for everything else.
    #[must_use]
    pub fn as_symbol(&self) -> Option<&str> {
        match self {
            Self::Symbol(name) => Some(name),
            _ => None,
        }
    }

    /// The integer's value; `None` for everything else.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn sexp(&mut self, depth: usize) -> Result<Sexp, ParseError> {
        self.skip_space();
        match self.peek() {
            None => Err(ParseError::Unfinished),
            Some(b'(') => self.list(depth),
            Some(b'"') => self.string(),
            Some(byte) if is_of_symbols(byte) => self.atom(),
            Some(_) => Err(ParseError::Unexpected(self.at)),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Sexp, ParseError> {
        let depth = depth.checked_sub(1).ok_or(ParseError::TooDeep)?;
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                None => return Err(ParseError::Unfinished),
                Some(b')') => {
                    self.at += 1;
                    return Ok(Sexp::list(items));
                }
                Some(b'.') if !items.is_empty() && self.is_dot() => {
                    self.at += 1;
                    let end = self.sexp(depth)?;
                    self.skip_space();
                    return match self.peek() {
                        None => Err(ParseError::Unfinished),
                        Some(b')') => {
                            self.at += 1;
                            Ok(Sexp::dotted(items, end))
                        }
                        Some(_) => Err(ParseError::Unexpected(self.at)),
                    };
                }
                Some(_) => items.push(self.sexp(depth)?),
            }
        }
    }

    /// Returns true if the dot here is not part of a symbol.
    fn is_dot(&self) -> bool {
        let next = self.text.get(self.at + 1).copied();
        next.is_none_or(|byte| !is_of_symbols(byte))
    }

    fn string(&mut self) -> Result<Sexp, ParseError> {
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let byte = self.peek().ok_or(ParseError::Unfinished)?;
            self.at += 1;
            match byte {
                b'"' => return Ok(Sexp::Text(bytes)),
                b'\\' => bytes.extend(self.escape()?),
                byte => bytes.push(byte),
            }
        }
    }

    /// Parses the rest of an escape in a string, after the backslash.
    fn escape(&mut self) -> Result<Option<u8>, ParseError> {
        let byte = self.peek().ok_or(ParseError::Unfinished)?;
        if (b'0'..=b'7').contains(&byte) {
            let mut value = 0_u32;
            for _ in 0..3 {
                match self.peek() {
                    Some(digit @ b'0'..=b'7') => value = value * 8 + u32::from(digit - b'0'),
                    _ => break,
                }
                self.at += 1;
            }
            let byte = u8::try_from(value).map_err(|_| ParseError::Overflow(self.at))?;
            return Ok(Some(byte));
        }
        self.at += 1;
        Ok(match byte {
            // Stands for nothing: it separates an octal escape from a digit.
            b' ' | b'\n' => None,
            b'n' => Some(b'\n'),
            b't' => Some(b'\t'),
            b'r' => Some(b'\r'),
            b'e' => Some(0x1b),
            byte => Some(byte),
        })
    }

    fn atom(&mut self) -> Result<Sexp, ParseError> {
        let start = self.at;
        while self.peek().is_some_and(is_of_symbols) {
            self.at += 1;
        }
        let word = &self.text[start..self.at];
        let digits = word.strip_prefix(b"-").unwrap_or(word);
        // Only ASCII is of symbols.
        let word = String::from_utf8_lossy(word);
        if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
            return match word.parse() {
                Ok(value) => Ok(Sexp::Int(value)),
                Err(_) => Err(ParseError::Overflow(start)),
            };
        }
        // A dot alone would be read as that of a pair.
        if word == "." {
            return Err(ParseError::Unexpected(start));
        }
        Ok(Sexp::symbol(&word))
    }
}

/// Returns true for the characters of the symbols and numbers that are used here.
fn is_of_symbols(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.+*/<>=!?&%$:~^@".contains(&byte)
}

/// As Emacs prints it, on one line.
impl fmt::Display for Sexp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Symbol(name) => f.write_str(name),
            Self::Int(value) => write!(f, "{value}"),
            Self::Text(bytes) => write_string(f, bytes),
            Self::List(items, None) if items.is_empty() => f.write_str("nil"),
            Self::List(items, end) => {
                for (i, item) in items.iter().enumerate() {
                    f.write_str(if i == 0 { "(" } else { " " })?;
                    item.fmt(f)?;
                }
                if let Some(end) = end {
                    write!(f, " . {end}")?;
                }
                f.write_str(")")
            }
        }
    }
}

fn write_string(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("\"")?;
    let mut bytes = bytes.iter().peekable();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'"' => f.write_str("\\\"")?,
            b'\\' => f.write_str("\\\\")?,
            b'\n' => f.write_str("\\n")?,
            b' '..=b'~' => write!(f, "{}", char::from(byte))?,
            byte => {
                write!(f, "\\{byte:03o}")?;
                if bytes.peek().is_some_and(|next| next.is_ascii_digit()) {
                    f.write_str("\\ ")?;
                }
            }
        }
    }
    f.write_str("\"")
}

#[cfg(test)]
mod tests {
    use heapline_testkit::property_config;
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> String {
        Sexp::parse(text.as_bytes()).unwrap().to_string()
    }

    #[test]
    fn lists_are_printed_as_emacs_does() {
        for text in [
            "nil",
            "end",
            "-12",
            "(greetings 1 buffer-shell (meta once . 1))",
            "(feed 2 patch (5 . 7) 12 (propertize . 0) (clicked))",
            "(quit 3 . finalize)",
            "\"a \\\"b\\\" \\\\ \\n \\303\\251\\ 1\"",
        ] {
            assert_eq!(parsed(text), text);
        }
        assert_eq!(parsed(" ( a . ( b . nil ) ) "), "(a b)");
        assert_eq!(parsed("()"), "nil");
        assert_eq!(parsed("(a .b)"), "(a .b)");
    }

    #[test]
    fn strings_may_have_any_bytes() {
        let text = Sexp::parse("\"é\\3511\"".as_bytes()).unwrap();
        assert_eq!(text, Sexp::Text(b"\xc3\xa9\xe91".to_vec()));
        assert_eq!(text.to_string(), "\"\\303\\251\\351\\ 1\"");
    }

    #[test]
    fn what_is_not_one_expression_is_refused() {
        for text in [
            "",
            "(",
            "(a",
            "(a . ",
            "(a . b",
            "(. b)",
            "(a . b c)",
            ")",
            "a b",
            "\"",
            "\"\\",
            "\"\\777\"",
            ".",
            "[1]",
            "'a",
            "99999999999999999999",
            "\u{e9}",
        ] {
            assert!(Sexp::parse(text.as_bytes()).is_err(), "{text}");
        }
        let deep = |levels: usize| "(".repeat(levels) + &")".repeat(levels);
        assert!(Sexp::parse(deep(64).as_bytes()).is_ok());
        assert_eq!(Sexp::parse(deep(65).as_bytes()), Err(ParseError::TooDeep));
        // Neither a stack overflow nor slow.
        let open = "(".repeat(1_000_000);
        assert_eq!(Sexp::parse(open.as_bytes()), Err(ParseError::TooDeep));
        let dots = "(a . ".repeat(1_000_000);
        assert_eq!(Sexp::parse(dots.as_bytes()), Err(ParseError::TooDeep));
    }

    fn any_sexp() -> impl Strategy<Value = Sexp> {
        let leaf = prop_oneof![
            "[a-z-]{1,8}"
                .prop_map(|name| Sexp::symbol(&name))
                .prop_filter("a number", |sexp| sexp.as_symbol() != Some("-")),
            any::<i64>().prop_map(Sexp::Int),
            proptest::collection::vec(any::<u8>(), 0..20).prop_map(Sexp::Text),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            let items = proptest::collection::vec(inner.clone(), 0..6);
            (items, proptest::option::of(inner)).prop_map(|(items, end)| match end {
                None => Sexp::list(items),
                Some(end) => Sexp::dotted(items, end),
            })
        })
    }

    proptest! {
        #![proptest_config(property_config(2000))]

        #[test]
        fn what_is_printed_is_parsed_back(sexp in any_sexp()) {
            let text = sexp.to_string();
            prop_assert!(!text.contains('\n'));
            prop_assert_eq!(Sexp::parse(text.as_bytes()), Ok(sexp));
        }

        #[test]
        fn any_bytes_are_parsed_or_refused(
            text in proptest::collection::vec(
                prop_oneof![4 => proptest::sample::select(b"()\".\\ a1-\n0".to_vec()), 1 => any::<u8>()],
                0..60,
            )
        ) {
            if let Ok(sexp) = Sexp::parse(&text) {
                prop_assert_eq!(Sexp::parse(sexp.to_string().as_bytes()), Ok(sexp));
            }
        }
    }
}
