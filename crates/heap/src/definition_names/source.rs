//! The toplevel definitions of a source file, by the indentation of its lines.
//!
//! This is no parser: comments and literals are blanked out, and what begins a line at the indentation of the toplevel,
//! or of a `module X = struct`, is an item that ends before the next one.

use super::{Binding, MAX_BINDINGS, MAX_NAME, joined, qualified};

/// Words that begin an item.
const ITEMS: [&str; 10] = [
    "let",
    "and",
    "module",
    "type",
    "open",
    "include",
    "exception",
    "external",
    "class",
    ";;",
];

/// The definitions of a text.
pub(super) fn bindings(text: &str) -> Vec<Binding> {
    let mut scan = Scan::default();
    let mut last_line = 0;
    for (number, line) in (1..).zip(blank(text).lines()) {
        if !line.trim().is_empty() {
            scan.line(number, line, last_line);
            last_line = number;
        }
    }
    scan.modules.push(std::mem::take(&mut scan.module));
    for module in &scan.modules {
        for binding in [module.binding, module.last].into_iter().flatten() {
            scan.bindings[binding].last_line = last_line;
        }
    }
    scan.bindings
}

/// A module, or the whole text, as far as it was read.
#[derive(Debug, Default)]
struct Module {
    /// Its path.
    path: String,
    /// The indentation of the line on which it begins.
    outer: usize,
    /// The indentation of its items, once there is one.
    indent: Option<usize>,
    /// The number of its own binding.
    binding: Option<usize>,
    /// The number of the binding of its last item, if that is one.
    last: Option<usize>,
    /// The first word of its last item, but for `and`.
    last_word: String,
}

#[derive(Debug, Default)]
struct Scan {
    bindings: Vec<Binding>,
    /// The modules around the current one.
    modules: Vec<Module>,
    module: Module,
}

impl Scan {
    /// Reads a line with text, given the number of the one before it.
    fn line(&mut self, number: u64, line: &str, previous: u64) {
        let content = line.trim_start_matches([' ', '\t']);
        let indent = line.len() - content.len();
        let word = first_word(content);
        // A line as far left as that of the module ends it.
        while indent <= self.module.outer
            && let Some(around) = self.modules.pop()
        {
            let ended = std::mem::replace(&mut self.module, around);
            let end = if word == "end" { number } else { previous };
            for (binding, end) in [(ended.last, previous), (ended.binding, end)] {
                if let Some(binding) = binding {
                    self.bindings[binding].last_line = end;
                }
            }
        }
        if indent == *self.module.indent.get_or_insert(indent) && ITEMS.contains(&word) {
            self.item(number, word, content[word.len()..].trim_start(), previous);
        }
        let is_structure = content
            .trim_end()
            .strip_suffix("struct")
            .is_some_and(|before| before.trim_end().ends_with('='));
        if is_structure
            && self.module.last_word == "module"
            && let Some(binding) = self.module.last
        {
            self.module.last = None;
            let path = self.bindings[binding].name.clone();
            let inner = Module {
                outer: self.module.indent.unwrap_or(indent),
                // Items of a module whose path is too long are those of its parent.
                path: if path.len() > MAX_NAME {
                    self.module.path.clone()
                } else {
                    path
                },
                binding: Some(binding),
                ..Module::default()
            };
            self.modules
                .push(std::mem::replace(&mut self.module, inner));
        }
    }

    /// Begins an item, after the one before it.
    fn item(&mut self, number: u64, word: &str, rest: &str, previous: u64) {
        if let Some(last) = self.module.last.take() {
            self.bindings[last].last_line = previous;
        }
        if word != "and" {
            word.clone_into(&mut self.module.last_word);
        }
        let name = match self.module.last_word.as_str() {
            "let" => pattern(rest),
            "module" => match module_name(rest) {
                Some(name) => name.to_owned(),
                None => return,
            },
            _ => return,
        };
        if self.bindings.len() < MAX_BINDINGS {
            self.module.last = Some(self.bindings.len());
            self.bindings.push(Binding {
                name: qualified(&self.module.path, &name),
                file: None,
                first_line: number,
                last_line: number,
                depth: self.modules.len(),
            });
        }
    }
}

fn first_word(text: &str) -> &str {
    if text.starts_with(";;") {
        return ";;";
    }
    let end = text.find(|c: char| !c.is_ascii_lowercase());
    &text[..end.unwrap_or(text.len())]
}

/// The leading identifier of a text, and the rest.
fn identifier(text: &str) -> (&str, &str) {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
    let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    text.split_at(end)
}

/// The name of a module, after `module`.
fn module_name(text: &str) -> Option<&str> {
    let text = match identifier(text) {
        ("rec", rest) => rest.trim_start(),
        // Has no values.
        ("type", _) => return None,
        _ => text,
    };
    let (name, _) = identifier(text);
    name.starts_with(char::is_uppercase).then_some(name)
}

/// The variables of a pattern, after `let`: a name, an operator, or a tuple of names. Others have none.
fn pattern(text: &str) -> String {
    let text = match identifier(text) {
        ("rec" | "nonrec", rest) => rest.trim_start(),
        _ => text,
    };
    let is_variable = |name: &str| {
        let first = name.chars().next();
        name != "_" && first.is_some_and(|c| c.is_lowercase() || c == '_')
    };
    let mut names = Vec::new();
    let mut rest = text.strip_prefix('(').map_or(text, str::trim_start);
    loop {
        let (name, after) = identifier(rest);
        if matches!(name, "open" | "module" | "exception" | "lazy") || !is_variable(name) {
            break;
        }
        names.push(name);
        let Some(after) = after.trim_start().strip_prefix(',') else {
            break;
        };
        rest = after.trim_start();
    }
    if names.is_empty()
        && let Some(rest) = text.strip_prefix('(')
        && let Some((operator, _)) = rest.split_once(')')
    {
        let operator = operator.trim();
        let is_operator = |c: char| c.is_ascii_punctuation() && !"()[]{}_'\"`,;".contains(c);
        if !operator.is_empty() && operator.chars().all(is_operator) {
            names.push(operator);
        }
    }
    joined(&names)
}

/// A text with blanks in place of comments, quotes in place of literals, and the same lines.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut comments = 0_usize;
    while let Some(first) = rest.chars().next() {
        let mut len = first.len_utf8();
        let mut replaced = (comments > 0).then_some(' ');
        if rest.starts_with("(*") && !rest.starts_with("(*)") {
            comments += 1;
            (len, replaced) = (2, Some(' '));
        } else if comments > 0 && rest.starts_with("*)") {
            comments -= 1;
            len = 2;
        } else if let Some(literal) = literal(rest, first) {
            // Literals in comments are read too: they may look like the end of the comment.
            len = literal;
            replaced = replaced.or(Some('"'));
        }
        let (taken, after) = rest.split_at(len);
        match replaced {
            Some(by) => out.extend(taken.chars().map(|c| if c == '\n' { c } else { by })),
            None => out.push_str(taken),
        }
        rest = after;
    }
    out
}

/// The length of a string or character at the beginning of a text.
fn literal(text: &str, first: char) -> Option<usize> {
    match first {
        '"' => {
            let mut is_escaped = true;
            let end = text.char_indices().find(|&(_, c)| {
                let is_end = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                is_end
            });
            Some(end.map_or(text.len(), |(at, _)| at + 1))
        }
        '\'' => {
            let mut chars = text.char_indices().skip(1);
            match chars.next()?.1 {
                '\\' => {
                    let end = text.char_indices().skip(3).take(5);
                    let end = end.into_iter().find(|(_, c)| *c == '\'')?;
                    Some(end.0 + 1)
                }
                _ => chars
                    .next()
                    .filter(|(_, c)| *c == '\'')
                    .map(|(at, _)| at + 1),
            }
        }
        // {id|...|id}
        '{' => {
            let end = text[1..].find(|c: char| !c.is_lowercase() && c != '_')? + 1;
            let id = &text[1..end];
            let content = text[end..].strip_prefix('|')?;
            let close = format!("|{id}}}");
            let len = content.find(&close);
            Some(len.map_or(text.len(), |len| end + 1 + len + close.len()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, u64, u64)> {
        bindings(text)
            .into_iter()
            .map(|found| (found.name, found.first_line, found.last_line))
            .collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[(&str, u64, u64)]) {
        let found = found(text);
        let found: Vec<_> = found
            .iter()
            .map(|(name, first, last)| (name.as_str(), *first, *last))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn definitions_end_before_the_next_item() {
        check(
            "open Printf\n\nlet rec f x =\n  g x\n\nand g y = f y\n\n(* let c = 1 *)\ntype t = A\nand u = B\nlet () =\n  f ()\n",
            &[("f", 3, 4), ("g", 6, 6), ("", 11, 12)],
        );
    }

    #[test]
    fn patterns_are_named_by_their_variables() {
        for (text, name) in [
            ("x = 1", "x"),
            ("x: int = 1", "x"),
            ("rec x = 1", "x"),
            ("x' , _y= 1", "(x', _y)"),
            ("(a, b) = 1", "(a, b)"),
            ("(x : int) = 1", "x"),
            ("( + ) a b = 1", "+"),
            ("(>>=) a b = 1", ">>="),
            ("() = 1", ""),
            ("_ = 1", ""),
            ("%test x = 1", ""),
            ("{ a; b } = 1", ""),
            ("open M in 1", ""),
            ("Some x = 1", ""),
            ("", ""),
        ] {
            assert_eq!(pattern(text), name, "{text}");
        }
    }

    #[test]
    fn modules_have_paths() {
        check(
            "module A : sig\n  val x : t\nend = struct\n  module B = struct\n    let y = 1\n  end\n  let x =\n    2\nend\n\nmodule C = F (struct\n  let z = 1\nend)\n\nmodule type S = sig\nend\nlet w = 1",
            &[
                ("A", 1, 9),
                ("A.B", 4, 6),
                ("A.B.y", 5, 5),
                ("A.x", 7, 8),
                ("C", 11, 13),
                ("w", 17, 17),
            ],
        );
    }

    #[test]
    fn comments_and_literals_are_no_items() {
        check(
            "let a = \"\n let \\\"x = (*\n\"\nlet b = {x|\nlet c = |}\n|x}\nlet d' = '\"'\n(* (* \"*)\" *)\nlet e = 1 *)\nlet f = ( *) and '\\''\nlet g = 1\n",
            &[
                ("a", 1, 3),
                ("b", 4, 6),
                ("d'", 7, 7),
                ("f", 10, 10),
                ("g", 11, 11),
            ],
        );
    }

    #[test]
    fn odd_texts_do_no_harm() {
        for text in [
            "",
            "\n",
            "end",
            "module A = struct",
            "let",
            "'",
            "'\\",
            "{|",
            "{a|",
            "(*",
            "\"",
            "\"\\",
            "module A = struct\nmodule B = struct\nend\nend",
            "é = struct",
            "let é, = 1",
        ] {
            bindings(text);
        }
        let deep: Vec<String> = (0..500)
            .map(|n| format!("{}module A = struct\n", " ".repeat(n)))
            .collect();
        let deep = deep.concat();
        assert_eq!(bindings(&deep).len(), 500);
    }
}
