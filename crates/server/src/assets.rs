//! The page, embedded by the build script.

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// A file of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// Below the root, such as `assets/app.js`.
    pub(crate) path: &'static str,
    /// Its media type.
    pub(crate) kind: &'static str,
    pub(crate) bytes: &'static [u8],
}

/// The file at a path of an address. Only what is embedded can be found: the file system is never
/// looked at.
pub(crate) fn find(path: &str) -> Option<File> {
    let path = match path.strip_prefix('/').unwrap_or(path) {
        "" => "index.html",
        path => path,
    };
    FILES.iter().copied().find(|file| file.path == path)
}

/// The reason why the page is not part of this program, if it is missing.
#[must_use]
pub fn missing_page() -> Option<&'static str> {
    FILES.is_empty().then_some(MISSING)
}
