//! The properties of groups.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::groups::RunGroup;
use crate::question::By;

/// The properties of a group, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Named(pub Vec<(By, String)>);

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (by, value) in &self.0 {
            map.serialize_entry(by.name(), value)?;
        }
        map.end()
    }
}

/// Names the values of properties.
pub(crate) fn named(by: &[By], keys: &[String]) -> Named {
    Named(by.iter().copied().zip(keys.iter().cloned()).collect())
}

/// The properties without repetition, those of runs first, as questions have them.
pub(crate) fn runs_first(by: &[By]) -> Vec<By> {
    let mut seen = BTreeSet::new();
    let mut by: Vec<By> = by
        .iter()
        .copied()
        .filter(|by| seen.insert(by.name()))
        .collect();
    by.sort_by_key(|by| !by.is_of_runs());
    by
}

/// The number of runs, by their properties.
pub(crate) fn runs_by_keys(groups: &[RunGroup]) -> HashMap<&[String], u64> {
    groups
        .iter()
        .map(|group| (&group.keys[..], group.runs))
        .collect()
}
