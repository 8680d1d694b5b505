//! Groups of blocks by size and by age.

use crate::groups::Label;
use crate::selection::Stay;
use crate::store::{Profile, saturated};

/// The sizes around one, in the unit of the program: words of OCaml, or bytes.
pub(crate) fn size_class(size: u64, word_bytes: u64) -> Label {
    let (size, unit) = match word_bytes {
        0 | 1 => (size, "byte"),
        _ => (size / word_bytes, "word"),
    };
    Label::named(match size {
        0 => format!("0 {unit}s"),
        1 => format!("1 {unit}"),
        _ => {
            let low = 1_u64 << size.ilog2();
            match low.checked_mul(2) {
                Some(next) => format!("{low} - {} {unit}s", next - 1),
                None => format!("{low} {unit}s or more"),
            }
        }
    })
}

/// The query for the sizes of a [class](size_class), by its name.
pub(crate) fn size_condition(name: &str) -> Option<String> {
    let mut words = name.split(' ');
    let low: u64 = words.next()?.parse().ok()?;
    let unit = if name.contains("word") { "w" } else { "" };
    let high = match words.next()? {
        "-" => words.next()?.parse::<u64>().ok()?,
        _ if name.ends_with("or more") => return Some(format!("size >= {low}{unit}")),
        _ => low,
    };
    Some(format!(
        "size in {low}{unit}..{}{unit}",
        high.checked_add(1)?
    ))
}

/// The query for the ages of a [class](age_label), by its name.
pub(crate) fn age_condition(name: &str) -> Option<String> {
    let class = (0..=AGES.len() + 1).find(|&class| age_label(class).name == name)?;
    let time = |class: usize| format!("{}us", AGES[class].0);
    let age = match class {
        0 => format!("lifetime < {}", time(0)),
        class if class < AGES.len() => {
            format!("lifetime in {}..{}", time(class - 1), time(class))
        }
        class if class == AGES.len() => format!("lifetime >= {}", time(class - 1)),
        _ => return Some("live at end".to_owned()),
    };
    Some(format!("not live at end and {age}"))
}

/// The upper ends of ages, in microseconds.
const AGES: [(u64, &str); 9] = [
    (10, "10 µs"),
    (100, "100 µs"),
    (1_000, "1 ms"),
    (10_000, "10 ms"),
    (100_000, "100 ms"),
    (1_000_000, "1 s"),
    (10_000_000, "10 s"),
    (100_000_000, "100 s"),
    (1_000_000_000, "1000 s"),
];

/// The labels of all ages.
pub(crate) fn age_labels() -> Vec<Label> {
    (0..=AGES.len() + 1).map(age_label).collect()
}

fn age_label(class: usize) -> Label {
    Label::named(match class {
        0 => format!("lived less than {}", AGES[0].1),
        class if class < AGES.len() => {
            format!("lived {} to {}", AGES[class - 1].1, AGES[class].1)
        }
        class if class == AGES.len() => format!("lived {} or more", AGES[class - 1].1),
        _ => "alive at the end".to_owned(),
    })
}

/// The age of a block, as a place in [`age_labels`].
pub(crate) fn age_class(profile: &Profile, stay: Stay) -> u32 {
    if !stay.ends() {
        return saturated(AGES.len() + 1);
    }
    let age = stay.age(profile);
    saturated(AGES.partition_point(|&(limit, _)| limit <= age))
}
