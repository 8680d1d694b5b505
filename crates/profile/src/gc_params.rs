//! Explains the settings of OCaml's garbage collector.

use serde::Serialize;

/// The runtime parameters of a traced program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct GcParams {
    params: Vec<GcParam>,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct GcParam {
    /// Its letter in `OCAMLRUNPARAM`.
    pub key: String,
    /// The value in the trace.
    pub value: String,
    /// An explanation; empty for unknown letters.
    pub meaning: String,
    /// False if the program changed it from the default of its runtime.
    pub is_default: bool,
}

impl GcParams {
    /// Decodes the text that OCaml's `Sys.runtime_parameters` gives, such as `s=262144,o=120`.
    ///
    /// ```
    /// let params = heapline_profile::GcParams::parse("s=32768,o=200", 8);
    /// let minor = params.iter().next().unwrap();
    /// assert_eq!(minor.meaning, "minor heap of 256 KiB");
    /// ```
    #[must_use]
    pub fn parse(text: &str, word_bytes: u64) -> Self {
        // OCaml 5 has other settings under the same letters; only it has `e`.
        let ocaml5 = text.split(',').any(|param| param.starts_with("e="));
        let params = text
            .split(',')
            .filter_map(|param| param.split_once('='))
            .map(|(key, value)| decode(key, value, word_bytes, ocaml5))
            .collect();
        Self { params }
    }

    /// The parameters in the trace's order.
    pub fn iter(&self) -> impl Iterator<Item = &GcParam> {
        self.params.iter()
    }
}

fn decode(key: &str, value: &str, word_bytes: u64, ocaml5: bool) -> GcParam {
    let number: Option<u64> = value.parse().ok();
    let words = || number.map_or_else(|| value.to_owned(), |n| size(n.saturating_mul(word_bytes)));
    let (meaning, default): (String, &[&str]) = match key {
        "s" if ocaml5 => (
            format!("minor heap of {} for each domain", words()),
            &["262144"],
        ),
        "s" => (format!("minor heap of {}", words()), &["262144"]),
        "o" => (
            format!(
                "space overhead {value} %: the major heap may hold {value} % of garbage relative to live data"
            ),
            &["80", "120"],
        ),
        "O" => (
            if number.is_some_and(|n| n >= 1_000_000) {
                "the heap is never compacted".into()
            } else {
                format!("the heap is compacted when {value} % of it is free")
            },
            &["500"],
        ),
        "a" => (
            match value {
                "0" => "next-fit allocation in the major heap".into(),
                "1" => "first-fit allocation in the major heap".into(),
                "2" => "best-fit allocation in the major heap".into(),
                _ => "allocation policy of the major heap".into(),
            },
            &["0", "2"],
        ),
        "i" => (
            match number {
                Some(n) if n > 1000 => format!(
                    "the major heap grows by {}",
                    size(n.saturating_mul(word_bytes))
                ),
                _ => format!("the major heap grows by {value} %"),
            },
            &["15"],
        ),
        "h" => (format!("initial major heap of {}", words()), &[]),
        "l" if number == Some(0) => ("no stack limit except the system's".into(), &["0"]),
        "l" => (
            format!("stack limit of {}", words()),
            &["134217728", "1048576"],
        ),
        "w" => (
            format!("major collector works in windows of {value}"),
            &["1"],
        ),
        "M" => (
            format!(
                "out-of-heap memory of custom blocks may grow to {value} % of the heap before a major collection"
            ),
            &["44"],
        ),
        "m" => (
            format!(
                "out-of-heap memory of young custom blocks may grow to {value} % of the minor heap"
            ),
            &["100"],
        ),
        "n" => (
            format!(
                "custom blocks of up to {} count for the minor heap",
                number.map_or_else(|| value.into(), size)
            ),
            &["8192", "70000"],
        ),
        "b" => (
            match value {
                "0" => "no backtraces for exceptions".into(),
                _ => "backtraces for exceptions".into(),
            },
            &["0"],
        ),
        "c" => (
            flag(value, "heap freed at exit", "heap not freed at exit"),
            &["0"],
        ),
        "d" => (format!("at most {value} domains at a time"), &["128"]),
        "e" => (
            number.filter(|&n| n < 60).map_or_else(
                || "size of the runtime-events buffers".into(),
                |n| {
                    format!(
                        "runtime-events buffers of {} for each domain",
                        size((1 << n) * word_bytes)
                    )
                },
            ),
            &["16"],
        ),
        "H" => (flag(value, "huge pages", "no huge pages"), &["0"]),
        "p" => (flag(value, "parser traced", "parser not traced"), &["0"]),
        "t" => (
            flag(value, "bytecode traced", "bytecode not traced"),
            &["0"],
        ),
        "v" => (
            flag(
                value,
                "runtime prints messages about the collector",
                "runtime prints nothing about the collector",
            ),
            &["0"],
        ),
        "V" => (
            flag(
                value,
                "heap verified at each collection",
                "heap not verified",
            ),
            &["0"],
        ),
        "W" => (
            flag(value, "runtime warnings", "no runtime warnings"),
            &["0"],
        ),
        // OCaml 5.5's `Gc.Tweak`: only those that were changed are in the text.
        "Xsmall_heap_limit" => (
            format!(
                "after each cycle, marking waits until the collector is due {value} words of work"
            ),
            &[],
        ),
        "Xmark_stack_prune_factor" => (
            format!("the mark stack is limited to 1/{value} of the major heap"),
            &[],
        ),
        "Xcache_stacks_per_class" => (
            format!("up to {value} freed fiber stacks of each size are kept for new fibers"),
            &[],
        ),
        _ => (String::new(), &[]),
    };
    GcParam {
        key: key.to_owned(),
        value: value.to_owned(),
        is_default: default.contains(&value),
        meaning,
    }
}

fn flag(value: &str, on: &str, off: &str) -> String {
    (if value == "0" { off } else { on }).to_owned()
}

/// A round amount of memory, as these settings usually are.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut amount = bytes as f64;
    let mut unit = 0;
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(amount.fract() != 0.0);
    format!("{amount:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meanings(text: &str) -> Vec<String> {
        GcParams::parse(text, 8)
            .iter()
            .map(|p| p.meaning.clone())
            .collect()
    }

    #[test]
    fn ocaml_5_and_4_differ_in_the_minor_heap() {
        assert_eq!(
            meanings("e=16,s=262144")[1],
            "minor heap of 2 MiB for each domain"
        );
        assert_eq!(meanings("s=262144"), ["minor heap of 2 MiB"]);
    }

    #[test]
    fn tweaks_of_ocaml_5_5_are_changes() {
        let params = GcParams::parse("e=16,W=0,Xsmall_heap_limit=1000,Xnew=1", 8);
        let changed: Vec<_> = params.iter().filter(|p| !p.is_default).collect();
        assert_eq!(
            changed[0].meaning,
            "after each cycle, marking waits until the collector is due 1000 words of work"
        );
        assert_eq!(
            (changed[1].key.as_str(), &*changed[1].meaning),
            ("Xnew", "")
        );
    }

    #[test]
    fn unknown_and_odd_parameters_are_kept() {
        let params = GcParams::parse("Z=3,s=many,,=", 8);
        let all: Vec<_> = params
            .iter()
            .map(|p| (p.key.as_str(), p.value.as_str()))
            .collect();
        assert_eq!(all, [("Z", "3"), ("s", "many"), ("", "")]);
        assert_eq!(params.iter().next().unwrap().meaning, "");
    }

    #[test]
    fn huge_numbers_do_not_overflow() {
        let params = GcParams::parse(
            "s=18446744073709551615,e=18446744073709551615,i=18446744073709551615",
            8,
        );
        assert_eq!(params.iter().count(), 3);
    }
}
