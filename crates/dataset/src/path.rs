//! The folder of a run, and names in it.

use std::fmt::{self, Write};
use std::path::{Path, PathBuf};

use crate::RunId;

/// Bytes of an escaped name in a path, at most: file systems allow 255 with `service=` before it.
pub(crate) const LONGEST: usize = 200;

/// The folder of a run within a dataset: `service=.../day=.../run=...`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunFolder {
    /// The service.
    pub service: String,
    /// The day, as `2026-11-17`.
    pub day: String,
    /// The run.
    pub run: RunId,
}

impl RunFolder {
    /// The folder within a dataset that is a folder.
    #[must_use]
    pub fn in_dataset(&self, dataset: &Path) -> PathBuf {
        let mut path = dataset.to_owned();
        path.extend(self.to_string().split('/'));
        path
    }

    /// The run that a folder is of, given the names of the last three folders of its path.
    #[must_use]
    pub fn parse(service: &str, day: &str, run: &str) -> Option<Self> {
        Some(Self {
            service: unescape(service.strip_prefix("service=")?)?,
            day: unescape(day.strip_prefix("day=")?)?,
            run: run.strip_prefix("run=")?.parse().ok()?,
        })
    }
}

/// With slashes, as addresses of object stores have it.
impl fmt::Display for RunFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (service, day) = (escape(&self.service), escape(&self.day));
        write!(f, "service={service}/day={day}/run={}", self.run)
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)
}

/// Escapes all but letters, digits, `_`, `.` and `-`, as `%20`.
pub(crate) fn escape(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for byte in name.bytes() {
        if is_plain(byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// The name that was escaped; `None` if it is not what [`escape`] makes of one.
fn unescape(escaped: &str) -> Option<String> {
    let mut name = Vec::with_capacity(escaped.len());
    let mut rest = escaped.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let (digits, after) = after.split_at_checked(2)?;
            name.push(u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            name.push(first);
            rest = after;
        }
    }
    let name = String::from_utf8(name).ok()?;
    (escape(&name) == escaped).then_some(name)
}

/// The name of the service of a program that has no label for it: its file name, as far as it fits.
pub(crate) fn service_of_program(program: &str) -> String {
    let name = program
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or_default()
        .trim();
    let mut room = LONGEST;
    let fitting = name.chars().take_while(|c| {
        let mut bytes = [0; 4];
        let needed = escape(c.encode_utf8(&mut bytes)).len();
        let fits = needed <= room;
        room = room.saturating_sub(needed);
        fits
    });
    match fitting.collect::<String>() {
        name if name.is_empty() => "unknown".to_owned(),
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_cannot_leave_their_folder() {
        for (name, escaped) in [
            ("shop", "shop"),
            ("a b/c", "a%20b%2Fc"),
            ("../../etc", "..%2F..%2Fetc"),
            ("a\0b%", "a%00b%25"),
            ("é", "%C3%A9"),
        ] {
            assert_eq!(escape(name), escaped);
            assert_eq!(unescape(escaped).as_deref(), Some(name));
        }
        for odd in ["a/b", "%", "%2", "%zz", "%c3%a9", "%41", "%FF", "a b"] {
            assert_eq!(unescape(odd), None, "{odd}");
        }
    }

    #[test]
    fn every_program_has_a_service() {
        assert_eq!(service_of_program("/usr/bin/shop"), "shop");
        assert_eq!(service_of_program(r"C:\shop.exe"), "shop.exe");
        assert_eq!(service_of_program(""), "unknown");
        assert_eq!(service_of_program("bin/ "), "unknown");
        assert_eq!(service_of_program(&"é".repeat(1000)), "é".repeat(33));
    }

    proptest! {
        #![proptest_config(heapline_testkit::property_config(256))]

        #[test]
        fn folders_are_read_back(program in ".*", day in "[0-9-]{1,10}", run: u64) {
            let folder = RunFolder {
                service: service_of_program(&program),
                day,
                run: format!("{run:016x}").parse().unwrap(),
            };
            let text = folder.to_string();
            let parts: Vec<&str> = text.split('/').collect();
            prop_assert_eq!(parts.len(), 3);
            prop_assert!(parts.iter().all(|part| part.len() <= 255));
            prop_assert_eq!(RunFolder::parse(parts[0], parts[1], parts[2]), Some(folder));
        }
    }
}
