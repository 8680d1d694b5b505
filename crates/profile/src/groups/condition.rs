//! Queries for the blocks of a group.

use super::{GroupBy, Label};
use crate::options::Look;
use crate::query::Pattern;
use crate::ranges;

impl GroupBy {
    /// The query that selects exactly the blocks of a group of a report with some options; `None` if a query
    /// cannot tell. Functions are those with the raw name of the label, if it has one: two can have the same
    /// readable name.
    #[must_use]
    pub fn condition(self, label: &Label, look: &Look) -> Option<String> {
        if let Some(via) = &label.via {
            let (name, via) = (Pattern::literal(&label.name), Pattern::literal(via));
            return Some(format!("inside {} and site = {}", name.text(), via.text()));
        }
        let is = |part: &str, pattern: &Pattern| attributed(part, pattern, look);
        let raw_name = label.raw_name.as_ref().unwrap_or(&label.name);
        let site = if look.is_of_own_code() {
            "function"
        } else {
            "site"
        };
        let function = || is(site, &Pattern::literal(raw_name));
        let name = Pattern::literal(&label.name);
        Some(match self {
            Self::File => is("file", &name),
            Self::Module => is("module", &name),
            Self::Crate => is("crate", &name),
            Self::Domain => format!("domain = {}", label.name.strip_prefix("domain ")?),
            Self::Size => ranges::size_condition(&label.name)?,
            Self::Age => ranges::age_condition(&label.name)?,
            Self::Function => match &label.place {
                None => function(),
                Some(line) => {
                    let place = match line.strip_suffix(":0") {
                        Some(file) => Pattern::literal(file),
                        None => Pattern::literal_prefix(&format!("{line}:")),
                    };
                    format!("{} and {}", function(), is("place", &place))
                }
            },
            Self::Site | Self::Address => {
                let Some(place) = &label.place else {
                    return Some(function());
                };
                let at = |place: &str| {
                    let place = is("place", &Pattern::literal(place));
                    format!("{} and {place}", function())
                };
                let address = place.rsplit_once(" at ");
                match address.filter(|(_, address)| address.starts_with("0x")) {
                    _ if self == Self::Site => at(place),
                    Some((place, address)) => format!("{} and address = {address}", at(place)),
                    // Code that was called by what allocates has no address of its own.
                    None => {
                        let function = Pattern::literal(raw_name);
                        let (function, here) = (function.text(), Pattern::literal(place));
                        let here = here.text();
                        format!(
                            "{} and not (site = {function} and place = {here})",
                            at(place)
                        )
                    }
                }
            }
        })
    }
}

/// The condition that memory is attributed to a function of which a part matches.
fn attributed(part: &str, pattern: &Pattern, look: &Look) -> String {
    let mut text = String::new();
    if look.is_of_own_code() {
        text.push_str("own ");
    }
    text.push_str(part);
    text.push_str(" = ");
    text.push_str(pattern.text());
    for mine in &look.mine {
        text.push_str(" mine ");
        text.push_str(mine.text());
    }
    for hidden in &look.hide {
        text.push_str(" hiding ");
        text.push_str(hidden.text());
    }
    text
}
