//! SVG flame graphs.

use std::io::{self, Write};
use std::ops::ControlFlow;

use heapline_profile::Scope;
use inferno::flamegraph::color::{BasicPalette, Palette};
use inferno::flamegraph::{Direction, Options, TextTruncateDirection, from_lines};

use crate::collapsed::visit_folded;
use crate::fold::{Leaf, Tree};
use crate::names::whole;

/// Frames smaller than this share of the total, a tenth of a pixel, are not drawn.
const SMALLEST_SHARE: f64 = 1e-4;

/// Frames on top of each other. More of them make no picture.
const DEEPEST: usize = 1000;

/// The most text that stacks are drawn from. Real ones take some megabytes.
const MOST_TEXT: usize = 256 << 20;

/// Bytes that one picture can count: the drawing is to add them up.
const MOST_BYTES: u64 = 1 << 62;

/// Options of a flame graph.
#[derive(Clone, Debug, Default)]
pub struct SvgOptions {
    /// The title above it.
    pub title: String,
    /// A second, smaller line.
    pub subtitle: Option<String>,
    /// True to draw callers above callees, not below.
    pub icicle: bool,
    /// The innermost element of stacks.
    pub leaf: Leaf,
}

/// Draws a flame graph of the bytes that were allocated, which a browser can zoom and search.
///
/// Frames that are too small to be seen are added to their callers. Functions have the same colours in every
/// picture. For what is alive at some moment, give [`Scope::live_at`].
pub fn svg(scope: &Scope<'_>, options: &SvgOptions, out: &mut impl Write) -> io::Result<()> {
    let mut tree = Tree::new(scope, options.leaf, &[scope.by_stack()]);
    let lines = lines(&mut tree);
    let mut drawing = Options::default();
    drawing.title.clone_from(&options.title);
    drawing.subtitle.clone_from(&options.subtitle);
    "bytes".clone_into(&mut drawing.count_name);
    drawing.colors = Palette::Basic(BasicPalette::Mem);
    // By the hash of the name, and not at random.
    drawing.deterministic = true;
    drawing.text_truncate_direction = TextTruncateDirection::Right;
    // What is left is large enough.
    drawing.min_width = 0.0;
    if options.icicle {
        drawing.direction = Direction::Inverted;
    }
    // Lines are taken as they are, but the last one first. Sorting them as text would tear a
    // function apart where the name of another one goes on with a space.
    drawing.flame_chart = true;
    if lines.is_empty() {
        return nothing(&options.title, out);
    }
    from_lines(&mut drawing, lines.lines().rev(), &mut *out)?;
    out.flush()
}

/// The folded stacks, as many of them as make a picture.
fn lines(tree: &mut Tree<1>) -> String {
    let mut share = SMALLEST_SHARE;
    let mut lines = String::new();
    // Halves of everything are the largest parts that can be left out.
    while share < 0.5 {
        tree.prune(share, DEEPEST);
        lines.clear();
        let mut left = MOST_BYTES;
        let fits = visit_folded(tree, |stack, [bytes]| {
            let start = lines.len();
            lines.extend(stack);
            if lines.len() == start {
                // Too small all of them, from the outermost function on.
                lines.push_str("(other)");
            }
            let bytes = whole(*bytes).min(left);
            left -= bytes;
            lines.push(' ');
            lines.push_str(itoa::Buffer::new().format(bytes));
            lines.push('\n');
            if lines.len() > MOST_TEXT {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        if fits.is_continue() {
            break;
        }
        share *= 2.0;
    }
    lines
}

/// A picture of nothing, which the drawing takes for a mistake.
fn nothing(title: &str, out: &mut impl Write) -> io::Result<()> {
    let title: String = title
        .chars()
        .filter(|c| !c.is_control())
        .flat_map(|c| match c {
            '&' => "&amp;".chars().collect(),
            '<' => "&lt;".chars().collect(),
            '>' => "&gt;".chars().collect(),
            c => vec![c],
        })
        .collect();
    writeln!(
        out,
        "<?xml version=\"1.0\" standalone=\"no\"?>\n\
         <svg version=\"1.1\" width=\"1200\" height=\"80\" xmlns=\"http://www.w3.org/2000/svg\">\n\
         <text x=\"600\" y=\"30\" text-anchor=\"middle\" font-size=\"17\">{title}</text>\n\
         <text x=\"600\" y=\"60\" text-anchor=\"middle\" font-size=\"12\">\
         No blocks were sampled.</text>\n</svg>"
    )?;
    out.flush()
}
