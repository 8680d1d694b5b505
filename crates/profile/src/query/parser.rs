//! The parser of the query language. The grammar is in `docs/query.md`.

use super::amount::{self, TimePoint};
use super::ast::{Clause, Expr, Heap, Part, Span, Test, When};
use super::error::{QueryError, suggestion};
use super::pattern::Pattern;
use super::token::{Comparison, Token, TokenKind, tokens};

/// Nested deeper than anybody would write by hand.
const DEEPEST: usize = 100;

const FIELDS: [&str; 17] = [
    "live",
    "alive",
    "allocated",
    "collected",
    "promoted",
    "size",
    "lifetime",
    "heap",
    "domain",
    "samples",
    "inside",
    "site",
    "function",
    "file",
    "module",
    "crate",
    "line",
];

const A_TIME: &str = "a time: peak, end, start, 10s, 90% or @14:30:05";
const A_SIZE: &str = "a size: 100, 64KiB, 1.5MiB or 16w (words)";
const A_LIFETIME: &str = "a time (2s, 10ms) or an amount allocated meanwhile (1MiB, 500kw)";
const A_NUMBER: &str = "a number";
const A_HEAP: &str = "minor, major, external or native";
const A_PATTERN: &str = "a name: \"Parser.*\" or a regular expression: /List/";
const A_COMPARISON: &str = "=, !=, <, <=, >, >= or in";

/// Parses a whole query. `None` if there is nothing in it.
pub(super) fn parse(text: &str) -> Result<Option<Expr>, QueryError> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        next: 0,
        depth: 0,
    };
    if parser.peek().kind == TokenKind::End {
        return Ok(None);
    }
    let expr = parser.any()?;
    match parser.peek().kind {
        TokenKind::End => Ok(Some(expr)),
        TokenKind::Close => Err(parser.unexpected("unmatched closing parenthesis", "and, or")),
        _ => Err(parser.unexpected("unexpected text after the query", "and, or, or the end")),
    }
}

/// Parses a range of times, such as `10s..20s`.
pub(super) fn parse_span(text: &str) -> Result<Span, QueryError> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        next: 0,
        depth: 0,
    };
    let span = parser.span()?;
    match parser.peek().kind {
        TokenKind::End => Ok(span),
        _ => Err(parser.unexpected("unexpected text after the range", "the end")),
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

impl Parser {
    fn any(&mut self) -> Result<Expr, QueryError> {
        let mut parts = vec![self.all()?];
        while self.take_word("or") {
            parts.push(self.all()?);
        }
        Ok(one_or(parts, Expr::Any))
    }

    fn all(&mut self) -> Result<Expr, QueryError> {
        let mut parts = vec![self.unary()?];
        while self.take_word("and") {
            parts.push(self.unary()?);
        }
        Ok(one_or(parts, Expr::All))
    }

    fn unary(&mut self) -> Result<Expr, QueryError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.unexpected("nested too deeply", "a simpler query"));
        }
        let expr = if self.take_word("not") {
            Expr::Not(Box::new(self.unary()?))
        } else if self.take(&TokenKind::Open) {
            let expr = self.any()?;
            if !self.take(&TokenKind::Close) {
                return Err(self.unexpected("missing closing parenthesis", "and, or, )"));
            }
            expr
        } else {
            self.clause()?
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn clause(&mut self) -> Result<Expr, QueryError> {
        let TokenKind::Word(word) = self.peek().kind.clone() else {
            return Err(self.unexpected("missing condition", "a field, not or ("));
        };
        let field = word.to_lowercase();
        if !FIELDS.contains(&&*field) {
            let expected = match suggestion(&word, &FIELDS) {
                Some(known) => format!("a field; did you mean `{known}`?"),
                None => format!("a field: {}", FIELDS.join(", ")),
            };
            return Err(self.unexpected(&format!("unknown field `{word}`"), &expected));
        }
        self.next += 1;
        let clause = match &*field {
            "live" | "alive" => {
                if self.take_word("in") {
                    Clause::LiveIn(self.span()?)
                } else if self.take_word("at") {
                    Clause::LiveAt(self.time()?)
                } else {
                    return Err(self.unexpected("missing time", "at or in"));
                }
            }
            "allocated" => match self.when()? {
                When::Ever => {
                    return Err(self.unexpected("missing time", "in, <, <=, > or >= and a time"));
                }
                when => Clause::Allocated(when),
            },
            "collected" => Clause::Collected(self.when()?),
            "promoted" => Clause::Promoted(self.when()?),
            "size" => Clause::Size(self.test(A_SIZE, amount::size)?),
            "lifetime" => {
                let test = self.test(A_LIFETIME, amount::lifetime)?;
                if let Test::In(Some(low), Some(high)) = test
                    && low.is_time() != high.is_time()
                {
                    self.next -= 1;
                    return Err(self.unexpected("the bounds have different units", A_LIFETIME));
                }
                Clause::Lifetime(test)
            }
            "samples" => Clause::Samples(self.test(A_NUMBER, whole)?),
            "domain" => Clause::Domain(self.test(A_NUMBER, whole)?),
            "line" => Clause::Line(self.test(A_NUMBER, whole)?),
            "heap" => return self.heap(),
            "inside" => {
                let part = self.part();
                Clause::Inside(part, self.pattern()?)
            }
            _ => {
                let part = match &*field {
                    "file" => Part::File,
                    "module" => Part::Module,
                    "crate" => Part::Crate,
                    _ => Part::Function,
                };
                let negated = self.equality()?;
                let clause = Expr::Clause(Clause::Site(part, self.pattern()?));
                return Ok(negate(clause, negated));
            }
        };
        Ok(Expr::Clause(clause))
    }

    fn heap(&mut self) -> Result<Expr, QueryError> {
        let negated = self.equality()?;
        let heap = match &self.peek().kind {
            TokenKind::Word(word) => match &*word.to_lowercase() {
                "minor" => Some(Heap::Minor),
                "major" => Some(Heap::Major),
                "external" => Some(Heap::External),
                "native" => Some(Heap::Native),
                _ => None,
            },
            _ => None,
        };
        let Some(heap) = heap else {
            return Err(self.unexpected("unknown heap", A_HEAP));
        };
        self.next += 1;
        Ok(negate(Expr::Clause(Clause::Heap(heap)), negated))
    }

    /// An optional `=` or `!=`; whether it was the latter.
    fn equality(&mut self) -> Result<bool, QueryError> {
        match self.peek().kind {
            TokenKind::Compare(Comparison::Equal) => {
                self.next += 1;
                Ok(false)
            }
            TokenKind::Compare(Comparison::NotEqual) => {
                self.next += 1;
                Ok(true)
            }
            TokenKind::Compare(_) => Err(self.unexpected("names cannot be ordered", "= or !=")),
            _ => Ok(false),
        }
    }

    fn part(&mut self) -> Part {
        for (word, part) in [
            ("function", Part::Function),
            ("file", Part::File),
            ("module", Part::Module),
            ("crate", Part::Crate),
        ] {
            // `inside file` may also be a function of that name.
            if self.tokens.len() > self.next + 1
                && matches!(
                    self.tokens[self.next + 1].kind,
                    TokenKind::Text(_) | TokenKind::Regex(..)
                )
                && self.take_word(word)
            {
                return part;
            }
        }
        Part::Function
    }

    fn pattern(&mut self) -> Result<Pattern, QueryError> {
        let pattern = match &self.peek().kind {
            TokenKind::Word(word) if !is_one_of(word, &["and", "or", "not"]) => Pattern::glob(word),
            TokenKind::Text(text) => Pattern::glob(text),
            TokenKind::Regex(regex, ignore_case) => {
                Pattern::regex(regex, *ignore_case).map_err(|error| {
                    let message = match error {
                        regex::Error::CompiledTooBig(_) => "the regular expression is too large",
                        _ => "invalid regular expression",
                    };
                    self.unexpected(message, "one, such as /^Parser/")
                })?
            }
            _ => return Err(self.unexpected("missing name", A_PATTERN)),
        };
        self.next += 1;
        Ok(pattern)
    }

    fn when(&mut self) -> Result<When, QueryError> {
        if self.take_word("in") {
            return Ok(When::In(self.span()?));
        }
        match self.peek().kind {
            TokenKind::Compare(comparison) => {
                self.next += 1;
                Ok(When::At(comparison, self.time()?))
            }
            _ => Ok(When::Ever),
        }
    }

    fn span(&mut self) -> Result<Span, QueryError> {
        let from = match self.peek().kind {
            TokenKind::To => TimePoint::Start,
            _ => self.time()?,
        };
        if !self.take(&TokenKind::To) {
            return Err(self.unexpected("incomplete range", ".., as in 10s..20s"));
        }
        let to = match &self.peek().kind {
            TokenKind::Text(_) => self.time()?,
            TokenKind::Word(word) if !is_one_of(word, &["and", "or"]) => self.time()?,
            _ => TimePoint::End,
        };
        Ok(Span { from, to })
    }

    fn time(&mut self) -> Result<TimePoint, QueryError> {
        self.value("invalid time", A_TIME, amount::time_point)
    }

    fn test<T>(
        &mut self,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Test<T>, QueryError> {
        const WRONG: &str = "invalid value for this field";
        if self.take_word("in") {
            let low = match self.peek().kind {
                TokenKind::To => None,
                _ => Some(self.value(WRONG, expected, &read)?),
            };
            if !self.take(&TokenKind::To) {
                return Err(self.unexpected("incomplete range", ".., as in 1..10"));
            }
            let high = match &self.peek().kind {
                TokenKind::Word(word) if !is_one_of(word, &["and", "or"]) => {
                    Some(self.value(WRONG, expected, &read)?)
                }
                _ => None,
            };
            return Ok(Test::In(low, high));
        }
        let TokenKind::Compare(comparison) = self.peek().kind else {
            return Err(self.unexpected("missing comparison", A_COMPARISON));
        };
        self.next += 1;
        Ok(Test::Is(comparison, self.value(WRONG, expected, read)?))
    }

    /// A value of one word, or of two: `10 s` is `10s`.
    fn value<T>(
        &mut self,
        message: &str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, QueryError> {
        let text = match &self.peek().kind {
            TokenKind::Word(word) => word.clone(),
            // A date has spaces.
            TokenKind::Text(text) => format!("@{}", text.trim_start_matches('@')),
            TokenKind::End => {
                return Err(self.unexpected("unexpected end of the query", expected));
            }
            _ => return Err(self.unexpected(message, expected)),
        };
        if text.ends_with(|c: char| c.is_ascii_digit())
            && let Some(Token {
                kind: TokenKind::Word(unit),
                ..
            }) = self.tokens.get(self.next + 1)
            && let Some(value) = read(&format!("{text}{unit}"))
        {
            self.next += 2;
            return Ok(value);
        }
        let value = read(&text).ok_or_else(|| self.unexpected(message, expected))?;
        self.next += 1;
        Ok(value)
    }

    fn peek(&self) -> &Token {
        // The last token is the end, and nothing goes beyond it.
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn take(&mut self, kind: &TokenKind) -> bool {
        let found = self.peek().kind == *kind;
        self.next += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(&self.peek().kind, TokenKind::Word(w) if w.eq_ignore_ascii_case(word));
        self.next += usize::from(found);
        found
    }

    fn unexpected(&self, message: &str, expected: &str) -> QueryError {
        QueryError::new(self.peek().span.clone(), message, expected)
    }
}

fn one_or(mut parts: Vec<Expr>, join: impl Fn(Vec<Expr>) -> Expr) -> Expr {
    match parts.len() {
        1 => parts.remove(0),
        _ => join(parts),
    }
}

fn negate(expr: Expr, negated: bool) -> Expr {
    if negated {
        Expr::Not(Box::new(expr))
    } else {
        expr
    }
}

/// Keywords are the same in upper and lower case.
fn is_one_of(word: &str, keywords: &[&str]) -> bool {
    keywords
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}

fn whole(text: &str) -> Option<u64> {
    text.replace('_', "").parse().ok()
}
