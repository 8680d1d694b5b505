//! Names blocks in the terms of OCaml, by tag, size and shape.

use hashbrown::HashMap;
use heapline_heapfile::FactKind;
use serde::Serialize;

use crate::graph::{Graph, NodeId, Virtual};
use crate::roots::GroupKind;
use crate::shapes::{Shape, shapes};

/// The number of a class.
pub type ClassId = u32;

/// Larger blocks with tag 0 are arrays rather than records.
const MOST_FIELDS: u64 = 16;

/// The kind of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "HeapKind"))]
pub enum Kind {
    /// The root of everything.
    Root,
    /// A group of roots.
    Group,
    /// A module.
    Module,
    /// A toplevel definition.
    Definition,
    /// A record, tuple, or the like.
    Record,
    /// A constructor with arguments.
    Variant,
    /// An array.
    Array,
    /// A list.
    List,
    /// A hash table.
    Hashtable,
    /// A binding of a hash table.
    Binding,
    /// A buffer.
    Buffer,
    /// A string.
    String,
    /// A floating-point number.
    Float,
    /// An array or record of floating-point numbers.
    FloatArray,
    /// A closure.
    Closure,
    /// A suspension, or its value.
    Lazy,
    /// An object.
    Object,
    /// A continuation.
    Continuation,
    /// An abstract block, such as an ephemeron.
    Abstract,
    /// A custom block.
    Custom,
    /// Memory outside of the heap that several blocks share.
    Outside,
}

/// Nodes with the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The kind.
    pub kind: Kind,
    /// The name, such as `closure Cache.add`.
    pub name: String,
    /// The place in the source, of definitions and frames.
    pub place: Option<String>,
}

/// The classes of all nodes.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    table: Vec<Class>,
    of_node: Vec<ClassId>,
}

/// The key by which blocks are put into classes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Kind(Kind),
    Record(u64),
    Variant(u8, u64),
    Closure(u64),
    Custom(u64),
}

impl Classes {
    pub(crate) fn new(graph: &Graph) -> Self {
        let mut classes = Self::default();
        let mut keys: HashMap<Key, ClassId> = HashMap::new();
        let mut names: HashMap<(Kind, String), ClassId> = HashMap::new();
        let shapes = shapes(graph);
        classes.of_node.reserve(graph.nodes() as usize);
        for (node, &shape) in (0..).zip(&shapes) {
            if graph.is_module(node) {
                let class = Class {
                    kind: Kind::Module,
                    name: format!("module {}", graph.module_name(node)),
                    place: None,
                };
                classes.push(class);
                continue;
            }
            let key = key(graph, node, shape);
            let id = *keys.entry(key).or_insert_with(|| {
                let (kind, name) = describe(graph, key);
                let table = &mut classes.table;
                // Functions with the same name are the same to the reader.
                *names
                    .entry((kind, name))
                    .or_insert_with_key(|(kind, name)| {
                        table.push(Class {
                            kind: *kind,
                            name: name.clone(),
                            place: None,
                        });
                        number(table.len() - 1)
                    })
            });
            classes.of_node.push(id);
        }
        for (_, node) in graph.virtual_nodes() {
            classes.push(virtual_class(graph, node));
        }
        classes
    }

    /// Adds a class for the next node alone.
    fn push(&mut self, class: Class) {
        self.of_node.push(number(self.table.len()));
        self.table.push(class);
    }

    #[inline]
    pub(crate) fn of(&self, node: NodeId) -> ClassId {
        self.of_node[node as usize]
    }

    pub(crate) fn class(&self, class: ClassId) -> &Class {
        &self.table[class as usize]
    }
}

fn number(n: usize) -> ClassId {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn key(graph: &Graph, node: NodeId, shape: Shape) -> Key {
    let words = graph.words(node);
    match shape {
        Shape::List => return Key::Kind(Kind::List),
        Shape::Hashtable => return Key::Kind(Kind::Hashtable),
        Shape::Buckets => return Key::Kind(Kind::Array),
        Shape::Binding => return Key::Kind(Kind::Binding),
        Shape::Plain => {}
    }
    let is_buffer = graph
        .fact(node)
        .is_some_and(|fact| fact.kind == FactKind::Buffer);
    match graph.tag(node).unwrap_or_default() {
        0 if is_buffer => Key::Kind(Kind::Buffer),
        0 if words > MOST_FIELDS => Key::Kind(Kind::Array),
        0 => Key::Record(words),
        245 => Key::Kind(Kind::Continuation),
        246 | 250 => Key::Kind(Kind::Lazy),
        // Closures share blocks; the others of a block are infix.
        247 | 249 => Key::Closure(graph.detail(node)),
        248 => Key::Kind(Kind::Object),
        251 => Key::Kind(Kind::Abstract),
        252 => Key::Kind(Kind::String),
        253 => Key::Kind(Kind::Float),
        254 => Key::Kind(Kind::FloatArray),
        255 => Key::Custom(graph.detail(node)),
        tag => Key::Variant(tag, words.min(MOST_FIELDS + 1)),
    }
}

fn describe(graph: &Graph, key: Key) -> (Kind, String) {
    match key {
        Key::Kind(kind) => (kind, kind.name().to_owned()),
        Key::Record(words) => (Kind::Record, format!("record or tuple of {words}")),
        Key::Variant(tag, words) if words > MOST_FIELDS => {
            (Kind::Variant, format!("variant tag {tag}, large"))
        }
        Key::Variant(tag, words) => (Kind::Variant, format!("variant tag {tag} of {words}")),
        Key::Closure(code) => {
            let name = graph.code_name(code);
            let name = name.unwrap_or_else(|| format!("at {code:#x}"));
            (Kind::Closure, format!("closure {name}"))
        }
        Key::Custom(operations) => {
            let name = graph.operations_name(operations).map(str::to_owned);
            let name = name.unwrap_or_else(|| format!("at {operations:#x}"));
            (Kind::Custom, format!("custom {name}"))
        }
    }
}

impl Kind {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "all roots",
            Self::Group => "roots",
            Self::Module => "module",
            Self::Definition => "definition",
            Self::Record => "record or tuple",
            Self::Variant => "variant",
            Self::Array => "array",
            Self::List => "list",
            Self::Hashtable => "Hashtbl.t",
            Self::Binding => "Hashtbl binding",
            Self::Buffer => "Buffer.t",
            Self::String => "string",
            Self::Float => "float",
            Self::FloatArray => "float array",
            Self::Closure => "closure",
            Self::Lazy => "lazy",
            Self::Object => "object",
            Self::Continuation => "continuation",
            Self::Abstract => "abstract",
            Self::Custom => "custom",
            Self::Outside => "shared memory outside of the heap",
        }
    }
}

fn virtual_class(graph: &Graph, node: &Virtual) -> Class {
    match node {
        Virtual::Root => Class {
            kind: Kind::Root,
            name: Kind::Root.name().to_owned(),
            place: None,
        },
        Virtual::Group(group) => Class {
            kind: Kind::Group,
            name: group.name.clone(),
            place: group.place.clone(),
        },
        Virtual::Definition { module, field } => {
            let (name, place) = graph.definition(*module, *field);
            Class {
                kind: Kind::Definition,
                name,
                place,
            }
        }
        Virtual::Outside { .. } => Class {
            kind: Kind::Outside,
            name: Kind::Outside.name().to_owned(),
            place: None,
        },
    }
}

/// Returns true if a group is of modules, which need no explanation of their own.
pub(crate) fn is_of_modules(graph: &Graph, node: NodeId) -> bool {
    matches!(
        graph.virtual_node(node),
        Some(Virtual::Group(group)) if matches!(group.kind, GroupKind::Globals | GroupKind::Loaded)
    )
}
