//! The JSON of speedscope.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use heapline_profile::{FileId, IdVec, Moment, Scope};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use crate::fold::{Leaf, Tree};
use crate::names::{program, whole};
use crate::provenance::PROGRAM;

/// The number of profiles: allocated, live at the peak, at the end, and at a chosen time.
const PROFILES: usize = 4;

/// Writes a file with several profiles: what was allocated, what was alive at the peak and at the
/// end, and what was alive at another moment, if one is given.
///
/// The peak is that of the whole profile, whatever the scope: parts of it can be compared.
pub fn speedscope(
    scope: &Scope<'_>,
    live: Option<Moment>,
    leaf: Leaf,
    out: &mut impl Write,
) -> io::Result<()> {
    let profile = scope.profile();
    let peak = profile.peak(scope.estimator()).moment;
    let end = profile.end();
    let at = |moment: Option<Moment>| match moment {
        Some(moment) => scope.live_at(moment).by_stack(),
        None => vec![heapline_profile::Amount::default(); profile.stack_count()].into(),
    };
    let amounts = [scope.by_stack(), at(Some(peak)), at(Some(end)), at(live)];
    let tree = Tree::new(scope, leaf, &amounts);
    drop(amounts);
    let totals = totals(&tree);
    let seconds = |moment| profile.seconds(moment);
    let mut names = vec![
        "allocated".to_owned(),
        format!("live at peak ({:.3} s)", seconds(peak)),
        format!("live at end ({:.3} s)", seconds(end)),
    ];
    names.extend(live.map(|moment| format!("live at {:.3} s", seconds(moment))));
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: PROGRAM,
        name: program(profile.header()),
        active_profile_index: 0,
        shared: Shared {
            frames: Frames {
                tree: &tree,
                files: profile.symbols().files(),
            },
        },
        profiles: names
            .into_iter()
            .enumerate()
            .map(|(column, name)| SampledProfile {
                kind: "sampled",
                name,
                unit: "bytes",
                start_value: 0,
                end_value: totals[column],
                samples: Samples(&tree, column),
                weights: Weights(&tree, column),
            })
            .collect(),
    };
    let mut out = BufWriter::new(out);
    serde_json::to_writer(&mut out, &file)?;
    out.flush()
}

/// The sums of the rounded weights of each profile.
fn totals(tree: &Tree<PROFILES>) -> [u64; PROFILES] {
    let mut totals = [0_u64; PROFILES];
    let ControlFlow::Continue(()) = tree.visit(|_, bytes| {
        for (total, bytes) in totals.iter_mut().zip(bytes) {
            *total = total.saturating_add(whole(*bytes));
        }
        ControlFlow::<std::convert::Infallible>::Continue(())
    });
    totals
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: &'a str,
    active_profile_index: u32,
    shared: Shared<'a>,
    profiles: Vec<SampledProfile<'a>>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Frames<'a>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "is_unknown")]
    line: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_unknown(line: &u32) -> bool {
    *line == 0
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SampledProfile<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Samples<'a>,
    weights: Weights<'a>,
}

struct Frames<'a> {
    tree: &'a Tree<PROFILES>,
    files: &'a IdVec<FileId, String>,
}

impl Serialize for Frames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.tree.names.iter().map(|name| Frame {
            name: &name.text,
            file: name.file.map(|file| &*self.files[file]),
            line: name.line,
        }))
    }
}

/// The stacks of one profile, made while they are written.
struct Samples<'a>(&'a Tree<PROFILES>, usize);

/// The weights of one profile.
struct Weights<'a>(&'a Tree<PROFILES>, usize);

impl Serialize for Samples<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(tree, column) = *self;
        each(tree, column, serializer, |seq, path, _| {
            seq.serialize_element(path)
        })
    }
}

impl Serialize for Weights<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(tree, column) = *self;
        each(tree, column, serializer, |seq, _, bytes| {
            seq.serialize_element(&whole(bytes))
        })
    }
}

fn each<S: Serializer>(
    tree: &Tree<PROFILES>,
    column: usize,
    serializer: S,
    element: impl Fn(&mut S::SerializeSeq, &[u32], f64) -> Result<(), S::Error>,
) -> Result<S::Ok, S::Error> {
    let mut seq = serializer.serialize_seq(None)?;
    let visited = tree.visit(|path, bytes| {
        if bytes[column] <= 0.0 {
            return ControlFlow::Continue(());
        }
        match element(&mut seq, path, bytes[column]) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    });
    match visited {
        ControlFlow::Continue(()) => seq.end(),
        ControlFlow::Break(error) => Err(error),
    }
}
