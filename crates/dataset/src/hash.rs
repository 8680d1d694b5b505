//! Content hashes: the ids of runs, frames and stacks, which are equal wherever the content is.

use std::fmt;
use std::hash::Hasher;
use std::io::{self, Read};
use std::str::FromStr;

use siphasher::sip::SipHasher13;

/// The id of a run: a hash of the bytes of its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u64);

impl RunId {
    /// The id of the run whose trace has these bytes.
    pub fn of(mut trace: impl Read) -> io::Result<Self> {
        let mut hasher = SipHasher13::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match trace.read(&mut buffer) {
                Ok(0) => return Ok(Self(hasher.finish())),
                Ok(n) => hasher.write(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for RunId {
    type Err = ();

    /// Parses 16 lower-case hex digits.
    fn from_str(text: &str) -> Result<Self, ()> {
        let id = u64::from_str_radix(text, 16).map(Self).map_err(|_| ())?;
        if id.to_string() == text {
            Ok(id)
        } else {
            Err(())
        }
    }
}

/// The id of a place in the source.
pub(crate) fn frame(function: &str, file: Option<&str>, line: u32) -> i64 {
    let mut hasher = SipHasher13::new();
    for part in [function, file.unwrap_or_default()] {
        // With its length, so that no two pairs have the same bytes.
        hasher.write(&(part.len() as u64).to_le_bytes());
        hasher.write(part.as_bytes());
    }
    hasher.write(&line.to_le_bytes());
    hasher.finish().cast_signed()
}

/// The id of a stack of such places, innermost first.
pub(crate) fn stack(frames: impl Iterator<Item = i64>) -> i64 {
    let mut hasher = SipHasher13::new();
    for frame in frames {
        hasher.write(&frame.to_le_bytes());
    }
    hasher.finish().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_earlier_versions() {
        // Datasets hold these: a change would split every site in two.
        assert_eq!(
            RunId::of(&b"trace"[..]).unwrap().to_string(),
            "357889f174732d38"
        );
        assert_eq!(
            frame("Mix.big", Some("mix.ml"), 11),
            -4_475_658_923_388_687_273
        );
        assert_eq!(frame("Mix.big", None, 11), 1_639_360_793_027_214_731);
        assert_eq!(stack([1, 2].into_iter()), -358_736_473_817_604_792);
    }

    #[test]
    fn parts_of_a_place_are_kept_apart() {
        assert_ne!(frame("ab", Some("c"), 1), frame("a", Some("bc"), 1));
        assert_ne!(frame("a", Some("b"), 1), frame("a", Some("b"), 2));
        assert_ne!(stack([1, 2].into_iter()), stack([2, 1].into_iter()));
    }

    #[test]
    fn run_ids_are_sixteen_lower_case_hex_digits() {
        let id = RunId::of(&b""[..]).unwrap();
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in [
            "",
            "1",
            "+123456789abcdef",
            "0123456789ABCDEF",
            "0123456789abcdef0",
            "../..",
        ] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
    }
}
