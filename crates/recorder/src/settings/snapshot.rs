//! Settings of a heap snapshot.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The settings of a heap snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSettings {
    /// The file, as the program sees it. An absolute path.
    pub file: PathBuf,
    /// True if the program waits for the snapshot, instead of a copy of it being made.
    pub in_place: bool,
    /// Which snapshots have list cells and small blocks folded.
    pub fold: Fold,
}

/// Which heap snapshots have list cells and small blocks folded into the blocks that hold them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fold {
    /// Those of programs that use more than [`Fold::LARGE`].
    #[default]
    Auto,
    /// All.
    Always,
    /// None.
    Never,
}

impl Fold {
    /// The bytes from which on a program is large.
    pub const LARGE: u64 = 1 << 30;
}

impl SnapshotSettings {
    /// The settings in the form that the agent takes: a byte each for `in_place` and `fold`, and the file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let fold = match self.fold {
            Fold::Auto => b'a',
            Fold::Always => b'y',
            Fold::Never => b'n',
        };
        let in_place = if self.in_place { b'y' } else { b'n' };
        [&[in_place, fold], self.file.as_os_str().as_bytes()].concat()
    }

    /// Reads what [`to_bytes`](Self::to_bytes) has written; `None` if it is malformed.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [in_place, fold, file @ ..] = bytes else {
            return None;
        };
        let settings = Self {
            file: OsStr::from_bytes(file).into(),
            in_place: match in_place {
                b'y' => true,
                b'n' => false,
                _ => return None,
            },
            fold: match fold {
                b'a' => Fold::Auto,
                b'y' => Fold::Always,
                b'n' => Fold::Never,
                _ => return None,
            },
        };
        settings.file.is_absolute().then_some(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_arrive_as_they_were_sent() {
        for fold in [Fold::Auto, Fold::Always, Fold::Never] {
            let settings = SnapshotSettings {
                file: "/a=b/c\n.heap".into(),
                in_place: fold == Fold::Always,
                fold,
            };
            assert_eq!(
                SnapshotSettings::from_bytes(&settings.to_bytes()),
                Some(settings)
            );
        }
        for bytes in [&b""[..], b"n", b"nafile", b"xa/file", b"nx/file"] {
            assert_eq!(SnapshotSettings::from_bytes(bytes), None);
        }
    }
}
