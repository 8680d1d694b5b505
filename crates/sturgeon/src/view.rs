//! The buffer of statmemprof-emacs: a button to refresh, and a tree that is folded and unfolded.
//!
//! ```text
//! [Refresh]
//!
//! [-] 4.45 ± 0.22 MiB total (100.00% major)
//!  [+] 2.29 MiB | mix.ml:11:58-80 (100.00% major)
//! ```

use std::collections::HashSet;

use crate::outline::{NodeId, Outline};
use crate::patches::Patches;
use crate::sexp::Sexp;

const REFRESH: &str = "[Refresh]";
const FOLDED: &str = "[+]";
const OPEN: &str = "[-]";
/// In place of a button, so that lines are aligned.
const LEAF: &str = "   ";
/// Characters of each of these.
const BUTTON: usize = 3;
/// Characters before the tree: the first button, the rest of its line, and an empty line.
const HEAD: usize = REFRESH.len() + 2;

/// The target of a click.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Click {
    /// The button to refresh.
    Refresh,
    /// The button of a line.
    Line(usize),
    /// No button.
    Nothing,
}

/// The text of a buffer.
#[derive(Debug)]
pub(crate) struct View {
    outline: Outline,
    /// The open nodes, those that are no longer in the tree included.
    open: HashSet<NodeId>,
    /// The nodes that are shown, one per line.
    lines: Vec<usize>,
    pub(crate) patches: Patches,
}

impl View {
    pub(crate) fn new(outline: Outline) -> Self {
        Self {
            outline,
            open: HashSet::new(),
            lines: Vec::new(),
            patches: Patches::default(),
        }
    }

    /// Writes the buffer for the first time.
    pub(crate) fn start(&mut self, out: &mut Vec<Sexp>) {
        out.push(self.patches.insert(0, REFRESH, true));
        // Two patches, as in the buffer of statmemprof-emacs: clients may count.
        out.push(self.patches.insert(REFRESH.len(), "\n", false));
        out.push(self.patches.insert(REFRESH.len() + 1, "\n", false));
        self.draw(out);
    }

    /// Shows a new tree in place of the old one; what was open stays open.
    pub(crate) fn refresh(&mut self, outline: Outline, out: &mut Vec<Sexp>) {
        let old: usize = self.lines.iter().map(|&node| self.len(node)).sum();
        out.push(self.patches.remove(HEAD, old));
        self.outline = outline;
        self.draw(out);
    }

    /// The target at an offset in the present text.
    pub(crate) fn at(&self, offset: usize) -> Click {
        if offset < REFRESH.len() {
            return Click::Refresh;
        }
        let mut start = HEAD;
        for (line, &node) in self.lines.iter().enumerate() {
            let button = start + self.outline.depth(node);
            let has_button = self.outline.has_children(node);
            if has_button && (button..button + BUTTON).contains(&offset) {
                return Click::Line(line);
            }
            start += self.len(node);
        }
        Click::Nothing
    }

    /// Folds or unfolds a line.
    pub(crate) fn toggle(&mut self, line: usize, out: &mut Vec<Sexp>) {
        let node = self.lines[line];
        let start: usize = self.lines[..line].iter().map(|&node| self.len(node)).sum();
        let start = HEAD + start;
        let button = start + self.outline.depth(node);
        let below = start + self.len(node);
        let was_open = !self.open.insert(self.outline.id(node));
        let mark = if was_open { FOLDED } else { OPEN };
        out.push(self.patches.remove(button, BUTTON));
        out.push(self.patches.insert(button, mark, true));
        if was_open {
            self.open.remove(&self.outline.id(node));
            let depth = self.outline.depth(node);
            let rest = &self.lines[line + 1..];
            let count = rest
                .iter()
                .take_while(|&&node| self.outline.depth(node) > depth);
            let lines: Vec<usize> = count.copied().collect();
            let len = lines.iter().map(|&node| self.len(node)).sum();
            self.lines.drain(line + 1..=line + lines.len());
            out.push(self.patches.remove(below, len));
        } else {
            let lines = self.outline.below(node, &self.open);
            self.insert(below, &lines, out);
            self.lines.splice(line + 1..=line, lines);
        }
    }

    fn draw(&mut self, out: &mut Vec<Sexp>) {
        let mut lines = vec![0];
        if self.open.contains(&self.outline.id(0)) {
            lines.extend(self.outline.below(0, &self.open));
        }
        self.insert(HEAD, &lines, out);
        self.lines = lines;
    }

    /// Inserts lines: a patch per button, and one for the text between two of them.
    fn insert(&mut self, mut offset: usize, lines: &[usize], out: &mut Vec<Sexp>) {
        let mut text = String::new();
        for &node in lines {
            text.extend(std::iter::repeat_n(' ', self.outline.depth(node)));
            if self.outline.has_children(node) {
                self.insert_text(&mut offset, &mut text, out);
                let is_open = self.open.contains(&self.outline.id(node));
                let mark = if is_open { OPEN } else { FOLDED };
                out.push(self.patches.insert(offset, mark, true));
                offset += BUTTON;
            } else {
                text.push_str(LEAF);
            }
            text.push(' ');
            text.push_str(self.outline.text(node));
            text.push('\n');
        }
        self.insert_text(&mut offset, &mut text, out);
    }

    fn insert_text(&mut self, offset: &mut usize, text: &mut String, out: &mut Vec<Sexp>) {
        if !text.is_empty() {
            out.push(self.patches.insert(*offset, text, false));
            *offset += text.chars().count();
            text.clear();
        }
    }

    /// Characters of a line: indentation, button, space, text, end of line.
    fn len(&self, node: usize) -> usize {
        self.outline.depth(node) + BUTTON + 1 + self.outline.text(node).chars().count() + 1
    }
}
