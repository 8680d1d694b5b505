//! Groups of roots: what holds blocks from outside of the heap.

use hashbrown::HashMap;
use heapline_heapfile::{Frame, Root, RootKind};

use crate::names::function_name;

/// Roots of the same kind, in the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Their kind.
    pub kind: GroupKind,
    /// Their name: `stack of main thread: Server.loop`.
    pub name: String,
    /// The place in the source, such as `server.ml:12`, if it is known.
    pub place: Option<String>,
}

/// The kind of a group of roots, in the order in which they are preferred as explanations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKind {
    /// Modules of the program.
    Globals,
    /// Modules that were loaded while the program ran.
    Loaded,
    /// A function on a stack.
    Stack,
    /// Variables that C code has registered.
    Registered,
    /// Local variables of C code.
    Local,
    /// Functions of finalisers.
    Finalisers,
    /// Values that wait for their finalisers.
    Finalised,
    /// The runtime's sampler.
    Sampler,
    /// Other roots of the runtime.
    Other,
}

impl GroupKind {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Globals => "globals",
            Self::Loaded => "loaded modules",
            Self::Stack => "stacks",
            Self::Registered => "C roots",
            Self::Local => "local roots of C code",
            Self::Finalisers => "finalisers",
            Self::Finalised => "values with finalisers",
            Self::Sampler => "sampler",
            Self::Other => "other roots",
        }
    }
}

/// The kind of a root, and what tells groups of a kind apart.
fn key(root: &Root) -> (GroupKind, u64, u64) {
    match root.kind {
        RootKind::Global => (GroupKind::Globals, 0, 0),
        RootKind::Loaded => (GroupKind::Loaded, 0, 0),
        RootKind::Stack => (GroupKind::Stack, root.b, root.a),
        RootKind::Registered => (GroupKind::Registered, 0, 0),
        RootKind::Local => (GroupKind::Local, 0, 0),
        RootKind::Finaliser if root.a == 1 => (GroupKind::Finalised, 0, 0),
        RootKind::Finaliser => (GroupKind::Finalisers, 0, 0),
        RootKind::Sampler => (GroupKind::Sampler, 0, 0),
        _ => (GroupKind::Other, 0, 0),
    }
}

/// Puts roots in groups. Returns the groups, and the targets of each.
pub(crate) fn groups(
    roots: &[Root],
    frames: &[Frame],
    stacks: &[String],
) -> (Vec<Group>, Vec<Vec<u64>>) {
    let mut targets: HashMap<_, Vec<u64>> = HashMap::new();
    for root in roots {
        targets.entry(key(root)).or_default().push(root.target);
    }
    let mut sorted: Vec<_> = targets.into_iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    sorted
        .into_iter()
        .map(|((kind, stack, frame), targets)| (group(kind, stack, frame, frames, stacks), targets))
        .unzip()
}

fn group(kind: GroupKind, stack: u64, frame: u64, frames: &[Frame], stacks: &[String]) -> Group {
    if kind != GroupKind::Stack {
        return Group {
            kind,
            name: kind.name().to_owned(),
            place: None,
        };
    }
    let at = |number: u64| usize::try_from(number).ok();
    let stack = match at(stack).and_then(|stack| stacks.get(stack)) {
        Some(name) if !name.is_empty() => format!("stack of {name}"),
        _ => format!("stack {stack}"),
    };
    let frame = at(frame)
        .and_then(|frame| frame.checked_sub(1))
        .and_then(|frame| frames.get(frame));
    let Some(frame) = frame else {
        return Group {
            kind,
            name: stack,
            place: None,
        };
    };
    Group {
        kind,
        name: format!("{} ({stack})", function_name(&frame.function)),
        place: place(&frame.file, frame.line),
    }
}

/// A place in the source.
pub(crate) fn place(file: &str, line: u64) -> Option<String> {
    match (file, line) {
        ("", _) => None,
        (file, 0) => Some(file.to_owned()),
        (file, line) => Some(format!("{file}:{line}")),
    }
}
