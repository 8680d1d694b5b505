//! Walks the tries of calls at the end of a raw profile.
//!
//! A trie is an image of the runtime's memory: its integers are machine words, and nodes refer to
//! each other in cycles. A node of OCaml code has the tag 0, and one field or more for each part of
//! its function's shape. Nodes of C code have the tag 1 and form lists.

use super::series::{Call, Contents, NO_STACK, Point, StackNode};
use super::tables::{Part, Shapes};
use crate::marshal::{Block, Heap, Value};

/// The function of a node: those that start the program have no positions, but
/// where they are in the trie tells which they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Called from C.
    StartProgram,
    /// The function that it calls: it runs the modules of the program.
    Program,
    Other,
}

impl Role {
    fn name(self) -> Option<&'static str> {
        match self {
            Self::StartProgram => Some("caml_start_program"),
            Self::Program => Some("caml_program"),
            Self::Other => None,
        }
    }
}

/// Something that is still to be looked at, in the context of a stack.
enum Task {
    Node(Value, u32, Role),
    Point(Point),
    Call(Call),
}

/// Walks a trie, and adds its points and calls.
pub(super) struct Walk<'a> {
    pub(super) shapes: &'a Shapes,
    pub(super) contents: &'a mut Contents,
    /// Fields of a direct call: with or without a count.
    pub(super) has_call_counts: bool,
}

impl Walk<'_> {
    /// Walks a trie in the order of the original library: the functions that a node tail-called,
    /// then its parts. Each node is visited once, as there are cycles.
    pub(super) fn trie(&mut self, heap: &Heap<'_>) -> Result<(), &'static str> {
        let mut seen = vec![false; heap.object_count()];
        let mut tasks = vec![Task::Node(heap.root(), NO_STACK, Role::StartProgram)];
        let mut next = Vec::new();
        while let Some(task) = tasks.pop() {
            match task {
                Task::Point(point) => self.contents.points.push(point),
                Task::Call(call) => self.contents.calls.push(call),
                Task::Node(value, stack, role) => {
                    let Some(node) = unseen(heap, value, &mut seen) else {
                        continue;
                    };
                    match node.tag {
                        0 => self.ocaml(heap, node, stack, role, &mut seen, &mut next)?,
                        1 => self.c_list(heap, node, stack, &mut seen, &mut next)?,
                        _ => return Err("the tree of calls has a node that is none"),
                    }
                    tasks.extend(next.drain(..).rev());
                }
            }
        }
        Ok(())
    }

    fn ocaml(
        &mut self,
        heap: &Heap<'_>,
        node: Block<'_>,
        stack: u32,
        role: Role,
        seen: &mut [bool],
        next: &mut Vec<Task>,
    ) -> Result<(), &'static str> {
        const SHORT: &str = "a node in the tree of calls is shorter than its function's shape";
        let function = node
            .int(0)
            .ok_or("a node in the tree of calls has no function")?;
        let function = function.cast_unsigned() << 1;
        // A function that was tail-called has the stack of its caller, which is gone.
        next.push(Task::Node(node.get(1).ok_or(SHORT)?, stack, Role::Other));
        let mut field = 2;
        let shapes = self.shapes;
        for &part in shapes.get(function) {
            match part {
                Part::Direct { site, callee } => {
                    let child = node.get(field).ok_or(SHORT)?;
                    let count = if self.has_call_counts {
                        field += 1;
                        node.int(field).ok_or(SHORT)?
                    } else {
                        0
                    };
                    field += 1;
                    let has_node = heap.block(child).is_some();
                    if has_node || count != 0 {
                        let stack = self.push(stack, site, false, role);
                        next.push(Task::Call(Call {
                            stack,
                            is_direct: true,
                            callee,
                            has_node,
                            count: count.max(0).cast_unsigned(),
                        }));
                        next.push(Task::Node(child, stack, Role::Other));
                    }
                }
                Part::Indirect { site } => {
                    let callees = node.get(field).ok_or(SHORT)?;
                    field += 1;
                    if heap.block(callees).is_some() {
                        let stack = self.push(stack, site, false, role);
                        let role = match role {
                            Role::StartProgram => Role::Program,
                            _ => Role::Other,
                        };
                        callees_of(heap, callees, stack, role, seen, next)?;
                    }
                }
                Part::Allocation { pc } => {
                    let annotation = annotation(node.int(field).ok_or(SHORT)?);
                    let count = node.int(field + 1);
                    field += 3;
                    if annotation != 0 {
                        let stack = self.push(stack, pc, false, role);
                        next.push(point(annotation, stack, count.ok_or(SHORT)?));
                    }
                }
            }
        }
        Ok(())
    }

    fn c_list<'a>(
        &mut self,
        heap: &'a Heap<'_>,
        mut node: Block<'a>,
        stack: u32,
        seen: &mut [bool],
        next: &mut Vec<Task>,
    ) -> Result<(), &'static str> {
        loop {
            let (Some(pc), 5) = (node.int(0), node.len()) else {
                return Err("a node of C code in the tree of calls is not one");
            };
            let callee = self.push(stack, address(pc), true, Role::Other);
            if pc & 1 == 1 {
                let child = node.get(1).unwrap_or(Value::Int(0));
                next.push(Task::Node(child, callee, Role::StartProgram));
            } else if let (Some(profinfo), Some(count)) = (node.int(1), node.int(2)) {
                next.push(point(annotation(profinfo), callee, count));
            }
            match unseen(heap, node.get(4).unwrap_or(Value::Int(0)), seen) {
                Some(sibling) if sibling.tag == 1 => node = sibling,
                Some(_) => return Err("a node of C code in the tree of calls has a wrong sibling"),
                None => return Ok(()),
            }
        }
    }

    /// A stack with one more frame.
    fn push(&mut self, caller: u32, address: u64, is_foreign: bool, role: Role) -> u32 {
        let location = self.contents.places.number(address, is_foreign);
        if let Some(name) = role.name() {
            self.contents.places.locations[location as usize].start_up = Some(name);
        }
        let stacks = &mut self.contents.stacks;
        let number = u32::try_from(stacks.len()).unwrap_or(NO_STACK);
        stacks.push(StackNode { caller, location });
        number
    }
}

/// The callees of an indirect call: a list of nodes like those of C code.
fn callees_of(
    heap: &Heap<'_>,
    mut list: Value,
    stack: u32,
    role: Role,
    seen: &mut [bool],
    next: &mut Vec<Task>,
) -> Result<(), &'static str> {
    while let Some(node) = unseen(heap, list, seen) {
        let (callee, child, count) = match (node.int(0), node.get(1), node.int(2)) {
            (Some(callee), Some(child), Some(count)) if node.len() == 5 => (callee, child, count),
            _ => return Err("a list of callees in the tree of calls is not one"),
        };
        next.push(Task::Call(Call {
            stack,
            is_direct: false,
            callee: address(callee),
            has_node: heap.block(child).is_some(),
            count: count.max(0).cast_unsigned(),
        }));
        next.push(Task::Node(child, stack, role));
        list = node.get(4).unwrap_or(Value::Int(0));
    }
    Ok(())
}

/// The block of a node that was not met before.
fn unseen<'a>(heap: &'a Heap<'_>, value: Value, seen: &mut [bool]) -> Option<Block<'a>> {
    let Value::Object(number) = value else {
        return None;
    };
    let block = heap.block(value)?;
    let seen = seen.get_mut(number as usize)?;
    (!std::mem::replace(seen, true)).then_some(block)
}

fn point(annotation: u32, stack: u32, count: i64) -> Task {
    Task::Point(Point {
        annotation,
        stack,
        at_exit: Some(count.max(0).cast_unsigned()),
    })
}

/// The machine word that an integer was.
fn word(n: i64) -> u64 {
    n.cast_unsigned() << 1 | 1
}

/// The address in a node of C code.
fn address(n: i64) -> u64 {
    word(n) >> 2
}

/// The number of an allocation point, from the header that its blocks get.
fn annotation(n: i64) -> u32 {
    u32::try_from(word(n) >> 38 & 0x3ff_ffff).unwrap_or(0)
}
