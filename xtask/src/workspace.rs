//! The packages of the workspace.

use std::fs;
use std::path::PathBuf;

use toml_edit::DocumentMut;

use crate::command::{Outcome, cargo};

/// A package of the workspace.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) folder: PathBuf,
    pub(crate) manifest: DocumentMut,
}

/// The packages that are published: all but those with `publish = false`.
pub(crate) fn published() -> Outcome<Vec<Member>> {
    let is_published = |member: &Member| {
        let publish = member.manifest["package"].get("publish");
        publish.and_then(toml_edit::Item::as_bool) != Some(false)
    };
    let mut members = members()?;
    members.retain(is_published);
    Ok(members)
}

/// All features of all packages but some, such as `heapline-push/tls`.
pub(crate) fn features_without(some: &[&str]) -> Outcome<Vec<String>> {
    let mut names = Vec::new();
    for Member { name, manifest, .. } in members()? {
        let features = manifest.get("features").and_then(|table| table.as_table());
        let features = features.into_iter().flatten();
        names.extend(features.map(|(feature, _)| format!("{name}/{feature}")));
    }
    names.retain(|name| !some.contains(&&**name));
    Ok(names)
}

/// All packages.
pub(crate) fn members() -> Outcome<Vec<Member>> {
    let list = cargo(&[
        "tree",
        "--quiet",
        "--locked",
        "--workspace",
        "--depth=0",
        "--prefix=none",
        "--format={p}",
    ])
    .output()?;
    let mut members = Vec::new();
    // Such as "heapline-trace v0.1.0 (/home/me/heapline/crates/trace)".
    for line in list.lines().filter(|line| !line.is_empty()) {
        let parsed = line
            .split_once(" v")
            .and_then(|(name, rest)| Some((name, rest.split_once(" (")?)))
            .and_then(|(name, (version, path))| Some((name, version, path.strip_suffix(')')?)));
        let (name, version, folder) =
            parsed.ok_or_else(|| format!("cannot understand the output of cargo tree: {line}"))?;
        let folder = PathBuf::from(folder);
        let manifest = read_toml(&folder.join("Cargo.toml"))?;
        members.push(Member {
            name: name.to_owned(),
            version: version.to_owned(),
            folder,
            manifest,
        });
    }
    Ok(members)
}

/// Reads a file of TOML.
pub(crate) fn read_toml(path: &std::path::Path) -> Outcome<DocumentMut> {
    let problem =
        |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| problem(&error))?;
    text.parse()
        .map_err(|error: toml_edit::TomlError| problem(&error))
}
