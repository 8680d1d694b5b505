//! Heapline's query language as SQL conditions on the table `sites`.

use anyhow::bail;
use heapline_profile::query::SiteCondition;
use heapline_profile::{Query, query::Pattern};

/// The condition of a query on the columns of `sites`, which is `s` in the statement. `None` if it
/// matches everything.
pub(crate) fn on_sites(query: &Query) -> anyhow::Result<Option<String>> {
    match query.on_sites() {
        Ok(condition) => Ok(condition.as_ref().map(sql)),
        Err(beyond) => bail!(
            "cannot answer --where {:?} from sites: {beyond}\n  \
             --measure selects live-at-peak, live-at-end and promoted; \
             `heapline fleet sql` can ask the tables blocks, stacks and frames",
            query.text()
        ),
    }
}

fn sql(condition: &SiteCondition) -> String {
    match condition {
        SiteCondition::All(parts) => joined(parts, " and "),
        SiteCondition::Any(parts) => joined(parts, " or "),
        SiteCondition::Not(part) => format!("not {}", sql(part)),
        SiteCondition::Function(pattern) => matches("coalesce(s.function, '')", pattern),
        // By path or by file name.
        SiteCondition::File(pattern) => {
            let path = "coalesce(s.file, '')";
            let name = format!("regexp_replace({path}, '^(?s:.*)/', '')");
            format!(
                "({} or {})",
                matches(path, pattern),
                matches(&name, pattern)
            )
        }
        SiteCondition::Module(pattern) => matches("coalesce(s.module, '')", pattern),
        SiteCondition::Line { from, to } => {
            let line = "coalesce(s.line, 0)";
            let from = from.map(|from| format!("{line} >= {from}"));
            let to = to.map(|to| format!("{line} < {to}"));
            let bounds: Vec<String> = from.into_iter().chain(to).collect();
            match bounds.is_empty() {
                true => "true".to_owned(),
                false => format!("({})", bounds.join(" and ")),
            }
        }
        SiteCondition::Space(space) => format!("s.space = {}", quoted(space)),
    }
}

fn joined(parts: &[SiteCondition], word: &str) -> String {
    let parts: Vec<String> = parts.iter().map(sql).collect();
    format!("({})", parts.join(word))
}

/// `~` searches in some engines and matches the whole text in others: the expression is one that means
/// the same in both.
fn matches(text: &str, pattern: &Pattern) -> String {
    format!("{text} ~ {}", quoted(&pattern.whole_regex()))
}

/// A literal.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(query: &str) -> anyhow::Result<Option<String>> {
        on_sites(&Query::parse(query).unwrap())
    }

    #[test]
    fn queries_become_conditions() {
        for (query, condition) in [
            (
                "site = Parser.*",
                r"coalesce(s.function, '') ~ '^(?s:Parser\..*)$'",
            ),
            (
                "not module = \"O'Caml\"",
                "not coalesce(s.module, '') ~ '^(?s:O''Caml)$'",
            ),
            (
                "line in 3..5 and heap = native",
                "((coalesce(s.line, 0) >= 3 and coalesce(s.line, 0) < 5) and s.space = 'native')",
            ),
        ] {
            assert_eq!(translated(query).unwrap().unwrap(), condition, "{query}");
        }
        assert_eq!(translated("").unwrap(), None);
    }

    #[test]
    fn what_sites_do_not_tell_is_an_error_that_says_so() {
        let error = translated("live at peak").unwrap_err().to_string();
        assert!(error.contains("`live at` needs single blocks"), "{error}");
        assert!(error.contains("--measure selects live-at-peak"), "{error}");
    }
}
