//! The parser of the query language. The grammar is in `docs/query.md`.

use super::amount::{self, TimePoint};
use super::ast::{Chain, Clause, Expr, Part, Span, Test, When};
use super::error::{QueryError, suggestion};
use super::pattern::Pattern;
use super::token::{Comparison, Token, TokenKind, tokens};
use super::words::{self, Field, Values, Word};

/// Nested deeper than anybody would write by hand.
const DEEPEST: usize = 100;

const A_TIME: &str = "a time: peak, end, start, 10s, 90% or @14:30:05";
const AN_ADDRESS: &str = "a code address, such as 0x4a3f0";
const A_HEAP: &str = "minor, major, external or native";
const A_PATTERN: &str = "a name: \"Parser.*\" or a regular expression: /List/";
const A_COMPARISON: &str = "=, !=, <, <=, >, >= or in";

/// Parses a whole query. `None` if there is nothing in it.
pub(super) fn parse(text: &str) -> Result<Option<Expr>, QueryError> {
    let mut parser = Parser::new(tokens(text)?);
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
    let mut parser = Parser::new(tokens(text)?);
    let span = parser.span()?;
    match parser.peek().kind {
        TokenKind::End => Ok(span),
        _ => Err(parser.unexpected("unexpected text after the range", "the end")),
    }
}

/// Continuations of a text that is being typed.
#[derive(Debug, Default)]
pub(super) struct Offers {
    pub(super) words: Vec<Word>,
    /// The part of frames whose names also fit.
    pub(super) names: Option<Part>,
}

/// The words and names that can follow these tokens, before the text at an offset. Only the last
/// condition counts, so that an error in another one does not matter.
pub(super) fn offers(mut tokens: Vec<Token>, end: usize) -> Offers {
    let joint = tokens.iter().rposition(|token| match &token.kind {
        TokenKind::Word(word) => is_one_of(word, &["and", "or", "not"]),
        kind => *kind == TokenKind::Open,
    });
    let mut tokens = tokens.split_off(joint.map_or(0, |joint| joint + 1));
    tokens.push(Token {
        kind: TokenKind::End,
        span: end..end,
    });
    let mut parser = Parser {
        offers: Some(Offers::default()),
        ..Parser::new(tokens)
    };
    if parser.clause().is_ok() {
        while parser.take(&TokenKind::Close) {}
        if !parser.is_at_open_range() {
            parser.offer(words::JOINTS);
        }
    }
    parser.offers.unwrap_or_default()
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    /// Collects the continuations at the end of the text, if they are asked for.
    offers: Option<Offers>,
}

impl Parser {
    fn new(tokens: Vec<Token>) -> Self {
        Self {
            tokens,
            next: 0,
            depth: 0,
            offers: None,
        }
    }

    /// Offers words if this is the end of a text that is being typed.
    fn offer<'a>(&mut self, words: impl IntoIterator<Item = &'a Word>) {
        if self.peek().kind == TokenKind::End
            && let Some(offers) = &mut self.offers
        {
            offers.words.extend(words);
        }
    }

    fn offer_names(&mut self, part: Part) {
        // There are too many places to choose from.
        if part == Part::Place {
            return self.offer(words::PLACES);
        }
        if self.peek().kind == TokenKind::End
            && let Some(offers) = &mut self.offers
        {
            offers.names = Some(part);
        }
    }

    /// Returns true at the end of a text whose last two characters are `..`: what follows without a
    /// space is the upper bound.
    fn is_at_open_range(&self) -> bool {
        let end = self.peek();
        let last = self.next.checked_sub(1).map(|last| &self.tokens[last]);
        end.kind == TokenKind::End
            && last
                .is_some_and(|last| last.kind == TokenKind::To && last.span.end == end.span.start)
    }

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
        self.offer(words::FIELDS.iter().flat_map(|&(_, _, words)| words));
        self.offer(words::NOT);
        let TokenKind::Word(word) = self.peek().kind.clone() else {
            return Err(self.unexpected("missing condition", "a field, not or ("));
        };
        let mut fields = words::FIELDS.iter();
        let Some(&(_, field, _)) = fields.find(|(name, ..)| word.eq_ignore_ascii_case(name)) else {
            let names: Vec<&str> = words::FIELDS.iter().map(|&(name, ..)| name).collect();
            let expected = match suggestion(&word, &names) {
                Some(known) => format!("a field; did you mean `{known}`?"),
                None => format!("a field: {}", names.join(", ")),
            };
            return Err(self.unexpected(&format!("unknown field `{word}`"), &expected));
        };
        self.next += 1;
        let clause = match field {
            Field::Live => {
                self.offer(words::LIVE);
                if self.take_word("in") {
                    Clause::LiveIn(self.span()?)
                } else if self.take_word("at") {
                    self.offer(words::TIMES);
                    Clause::LiveAt(self.time()?)
                } else {
                    return Err(self.unexpected("missing time", "at or in"));
                }
            }
            Field::Allocated => match self.when()? {
                When::Ever => {
                    return Err(self.unexpected("missing time", "in, <, <=, > or >= and a time"));
                }
                when => Clause::Allocated(when),
            },
            Field::Collected => Clause::Collected(self.when()?),
            Field::Promoted => Clause::Promoted(self.when()?),
            Field::Size => Clause::Size(self.test(&words::SIZES)?),
            Field::Lifetime => Clause::Lifetime(self.test(&words::LIFETIMES)?),
            Field::Samples => Clause::Samples(self.test(&words::SAMPLES)?),
            Field::Domain => Clause::Domain(self.test(&words::DOMAINS)?),
            Field::Line => Clause::Line(self.test(&words::LINES)?),
            Field::Address => {
                let negated = self.equality()?;
                self.offer(words::ADDRESSES);
                let clause = Clause::Address(self.value("invalid address", AN_ADDRESS, address)?);
                return Ok(negate(Expr::Clause(clause), negated));
            }
            Field::Heap => return self.heap(),
            Field::Inside => {
                self.offer(words::INSIDE);
                let part = self.part();
                Clause::Inside(part, self.pattern(part)?)
            }
            Field::Site(part) => return self.site(part, false),
            Field::Own => {
                self.offer(words::OWN.iter().map(|(word, _)| word));
                let mut parts = words::OWN.iter();
                let Some(&(_, part)) = parts.find(|(word, _)| self.take_word(word.text)) else {
                    return Err(self.unexpected(
                        "missing part of a name",
                        "function, module, crate, file or place",
                    ));
                };
                return self.site(part, true);
            }
        };
        Ok(Expr::Clause(clause))
    }

    /// The frame that allocates, and perhaps those that call it.
    fn site(&mut self, part: Part, is_own: bool) -> Result<Expr, QueryError> {
        let negated = self.equality()?;
        let mut names = vec![self.pattern(part)?];
        self.offer(words::AFTER_SITE);
        while self.take_word("called") {
            self.offer(words::AFTER_CALLED);
            if !self.take_word("by") {
                return Err(self.unexpected("missing caller", "by and a name"));
            }
            names.push(self.pattern(part)?);
            self.offer(words::AFTER_SITE);
        }
        let mut own = is_own.then(Vec::new);
        if let Some(mine) = &mut own {
            self.offer(words::AFTER_OWN);
            while self.take_word("mine") {
                mine.push(self.pattern(Part::Function)?);
                self.offer(words::AFTER_OWN);
            }
        }
        let mut hidden = Vec::new();
        while self.take_word("hiding") {
            hidden.push(self.pattern(Part::Function)?);
        }
        let clause = match <[Pattern; 1]>::try_from(names) {
            Ok([pattern]) if hidden.is_empty() && own.is_none() => Clause::Site(part, pattern),
            names => Clause::Chain(Chain {
                part,
                names: names.map_or_else(|names| names, Vec::from),
                hidden,
                own,
            }),
        };
        Ok(negate(Expr::Clause(clause), negated))
    }

    fn heap(&mut self) -> Result<Expr, QueryError> {
        let negated = self.equality()?;
        self.offer(words::HEAPS.iter().map(|(word, _)| word));
        let mut heaps = words::HEAPS.iter();
        let found = heaps.find(|(word, _)| self.take_word(word.text));
        let Some(&(_, heap)) = found else {
            return Err(self.unexpected("unknown heap", A_HEAP));
        };
        Ok(negate(Expr::Clause(Clause::Heap(heap)), negated))
    }

    /// Takes an optional `=` or `!=`; true if it is the latter.
    fn equality(&mut self) -> Result<bool, QueryError> {
        self.offer(words::EQUALITIES);
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
        let is_part = match self.tokens.get(self.next + 1).map(|token| &token.kind) {
            Some(TokenKind::Text(_) | TokenKind::Regex(..)) => true,
            // `inside file` is about a function of that name, unless more is to be typed.
            Some(TokenKind::End) => self.offers.is_some(),
            _ => false,
        };
        let mut parts = words::PARTS.iter();
        let part = parts.find(|(word, _)| is_part && self.take_word(word));
        part.map_or(Part::Function, |&(_, part)| part)
    }

    fn pattern(&mut self, part: Part) -> Result<Pattern, QueryError> {
        self.offer_names(part);
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
        self.offer(words::WHEN);
        if self.take_word("in") {
            return Ok(When::In(self.span()?));
        }
        match self.peek().kind {
            TokenKind::Compare(comparison) => {
                self.next += 1;
                self.offer(words::TIMES);
                Ok(When::At(comparison, self.time()?))
            }
            _ => Ok(When::Ever),
        }
    }

    fn span(&mut self) -> Result<Span, QueryError> {
        self.offer(words::WINDOWS);
        let from = match self.peek().kind {
            TokenKind::To => TimePoint::Start,
            _ => self.time()?,
        };
        if !self.take(&TokenKind::To) {
            return Err(self.unexpected("incomplete range", ".., as in 10s..20s"));
        }
        if self.is_at_open_range() {
            self.offer(words::TIMES);
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

    fn test<T>(&mut self, values: &Values<T>) -> Result<Test<T>, QueryError> {
        const WRONG: &str = "invalid value for this field";
        let Values { expected, read, .. } = values;
        self.offer(words::COMPARISONS);
        if self.take_word("in") {
            self.offer(values.ranges);
            let low = match self.peek().kind {
                TokenKind::To => None,
                _ => Some(self.value(WRONG, expected, read)?),
            };
            if !self.take(&TokenKind::To) {
                return Err(self.unexpected("incomplete range", ".., as in 1..10"));
            }
            let is_range = |high: &T| low.as_ref().is_none_or(|low| (values.is_range)(low, high));
            if self.is_at_open_range() {
                let fits = |word: &&Word| read(word.text).is_some_and(|high| is_range(&high));
                self.offer(values.examples.iter().filter(fits));
            }
            let high = match &self.peek().kind {
                TokenKind::Word(word) if !is_one_of(word, &["and", "or"]) => {
                    Some(self.value(WRONG, expected, read)?)
                }
                _ => None,
            };
            if high.as_ref().is_some_and(|high| !is_range(high)) {
                self.next -= 1;
                return Err(self.unexpected("the bounds have different units", expected));
            }
            return Ok(Test::In(low, high));
        }
        let TokenKind::Compare(comparison) = self.peek().kind else {
            return Err(self.unexpected("missing comparison", A_COMPARISON));
        };
        self.next += 1;
        self.offer(values.examples);
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

/// A hexadecimal number.
fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
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
