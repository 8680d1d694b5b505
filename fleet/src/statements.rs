//! Splits text into statements.

/// Statements that arrive in pieces, each ended by a semicolon outside of quotes and comments.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    text: String,
}

impl Statements {
    /// Returns true if no statement has begun.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Adds a line, or several; returns the statements that it completes.
    pub(crate) fn add(&mut self, text: &str) -> Vec<String> {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
        let mut complete = Vec::new();
        while let Some(end) = end(&self.text) {
            let rest = self.text.split_off(end + 1);
            let statement = std::mem::replace(&mut self.text, rest);
            let statement = statement[..end].trim();
            if !statement.is_empty() {
                complete.push(statement.to_owned());
            }
        }
        if self.is_empty() {
            self.text.clear();
        }
        complete
    }

    /// The last statement, which has no semicolon.
    #[must_use]
    pub(crate) fn rest(self) -> Option<String> {
        (!self.is_empty()).then(|| self.text.trim().to_owned())
    }
}

/// The position of the first semicolon that ends a statement.
fn end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        // A doubled quote ends a text and begins another one, which is as good.
        let skipped = match bytes[at] {
            b';' => return Some(at),
            quote @ (b'\'' | b'"') => 2 + rest[1..].find(char::from(quote))?,
            b'-' if rest.starts_with("--") => 1 + rest.find('\n')?,
            b'/' if rest.starts_with("/*") => 4 + rest[2..].find("*/")?,
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
        at += skipped;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_semicolons_outside_of_quotes_and_comments() {
        let mut statements = Statements::default();
        assert_eq!(
            statements.add("select 1; select ';é''\";' as \"a;b\""),
            ["select 1"]
        );
        assert_eq!(statements.add("-- not; here"), Vec::<String>::new());
        assert_eq!(
            statements.add("/* nor; here */ ; ;"),
            ["select ';é''\";' as \"a;b\"\n-- not; here\n/* nor; here */"]
        );
        assert!(statements.is_empty());
        assert_eq!(statements.add("select 2 -- last"), Vec::<String>::new());
        assert_eq!(statements.rest().unwrap(), "select 2 -- last");
    }
}
