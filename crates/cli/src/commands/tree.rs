//! `heapline tree`.

use anstyle::Style;
use anyhow::Context;
use heapline_profile::reports::{self, Direction, NodeKind, Tree, TreeNode, TreeOptions};

use crate::draw::{Align, FAINT, Page, Table, bar};
use crate::question::{By, Json, Look, Question, pattern};
use crate::units::{bytes, estimated_bytes, label, share};

/// Show who calls what allocates, as a tree
///
/// From the program's entry down, from allocations up (--bottom-up), or both ways from functions
/// in focus (--focus). Recursion is collapsed: a function is in a path once.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  heapline tree trace.ctf --live peak
  heapline tree trace.ctf --bottom-up --live end
  heapline tree trace.ctf --focus 'Parser.*'
  heapline tree trace.ctf --focus Typecore.type_expect --focus Ctype.unify --min 2%")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,

    /// From where memory is allocated to the callers
    #[arg(long)]
    bottom_up: bool,

    /// Look around a function: its callers one way, what it calls the other. Given several times,
    /// functions that call each other in this order
    #[arg(long, value_name = "PATTERN", conflicts_with = "bottom_up")]
    focus: Vec<String>,

    /// What a node is
    #[arg(long, value_enum, default_value_t = TreeBy::Function)]
    by: TreeBy,

    /// Put together what is less than this share of the total
    #[arg(long, default_value = "1%", value_name = "SHARE", value_parser = share)]
    min: f64,

    /// How deep at most
    #[arg(long, value_name = "N")]
    depth: Option<usize>,

    /// With --json: also lifetimes, heaps and growth of each node, and its module and file
    #[arg(long, requires = "json")]
    details: bool,

    /// Show the line of each allocation below its function
    #[arg(long)]
    sites: bool,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    json: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TreeBy {
    /// A function
    Function,
    /// A line of the source
    Site,
    /// A file
    File,
    /// A module
    Module,
}

impl TreeBy {
    pub(super) fn by(self) -> By {
        match self {
            Self::Function => By::Function,
            Self::Site => By::Site,
            Self::File => By::File,
            Self::Module => By::Module,
        }
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let options = TreeOptions {
            view: self.look.view(self.by.by())?,
            direction: if self.bottom_up {
                Direction::BottomUp
            } else {
                Direction::TopDown
            },
            focus: self
                .focus
                .iter()
                .map(|text| pattern(text).context("cannot understand --focus"))
                .collect::<anyhow::Result<_>>()?,
            threshold: self.min,
            depth: self.depth.unwrap_or(usize::MAX),
            // From allocations up, the line is what one wants to know first.
            sites: self.sites || (self.bottom_up && self.by == TreeBy::Function),
            details: self.details,
        };
        if options.focus.len() > 64 {
            anyhow::bail!("--focus can be given 64 times at most");
        }
        let profile = self.question.load()?;
        let scope = self.question.scope(&profile)?;
        let report = reports::tree(&scope, &options);
        self.json.print(&report, |report| self.text(report))
    }

    fn text(&self, report: &Tree) -> String {
        let mut page = Page::default();
        let total = report.total.bytes.value;
        match report.focus_total {
            None => {
                let direction = match report.direction {
                    Direction::TopDown => "from the program's entry down",
                    Direction::BottomUp => "from allocations up to their callers",
                };
                page.title(&format!(
                    "{} {direction}",
                    estimated_bytes(report.total.bytes)
                ));
                let with_own = report.direction == Direction::TopDown;
                nodes(&mut page, &report.nodes, total, with_own);
            }
            Some(inside) => {
                page.title(&format!(
                    "{} inside {}, {} of all",
                    estimated_bytes(inside.bytes),
                    report.focus.join(" calling "),
                    crate::units::percent(inside.bytes.value, total)
                ));
                if inside.samples == 0 {
                    page.note("No stack has that; `heapline hotspots` lists functions.");
                    return page.finish();
                }
                page.title("Called by");
                nodes(&mut page, &report.callers, inside.bytes.value, false);
                page.title("Calls");
                if let Some(own) = report.focus_own.filter(|own| own.samples > 0) {
                    page.note(&format!(
                        "{} is its own, {}.",
                        bytes(own.bytes.value),
                        crate::units::percent(own.bytes.value, inside.bytes.value)
                    ));
                }
                nodes(&mut page, &report.nodes, inside.bytes.value, true);
            }
        }
        page.note(&format!(
            "Below {} is put together as \"other\"; --min changes that.",
            crate::units::percent(self.min, 1.0)
        ));
        page.finish()
    }
}

/// Draws a tree. What is a node's own is of interest from the entry down only: the other way it is
/// what the program itself calls.
fn nodes(page: &mut Page, nodes: &[TreeNode], total: f64, with_own: bool) {
    if nodes.is_empty() {
        return page.note("Nothing.");
    }
    let mut table = Table::new(
        &[
            ("total", Align::Right),
            ("%", Align::Right),
            ("own", Align::Right),
            ("", Align::Left),
            ("", Align::Left),
        ],
        4,
    );
    let branches = branches(nodes);
    for (node, branch) in nodes.iter().zip(branches) {
        let style = match node.kind {
            NodeKind::Other => FAINT,
            _ => Style::new(),
        };
        let own = node.own.bytes.value;
        let own = if with_own && own > 0.0 && node.kind == NodeKind::Call {
            bytes(own)
        } else {
            String::new()
        };
        let share = node.total.bytes.value / total;
        table.row(vec![
            (bytes(node.total.bytes.value), style),
            (
                crate::units::percent(share, 1.0)
                    .trim_end_matches(" %")
                    .to_owned(),
                style,
            ),
            (own, style),
            (bar(share, 6), style),
            (format!("{branch}{}", label(&node.label)), style),
        ]);
    }
    page.block(&table.finish());
}

/// The lines that join nodes to their parents. Chains, where a node is its parent's only child, do
/// not move to the right: stacks are deeper than terminals are wide.
fn branches(nodes: &[TreeNode]) -> Vec<String> {
    let mut siblings = vec![0_usize; nodes.len()];
    let mut roots = 0;
    for node in nodes {
        match node.parent {
            Some(parent) => siblings[parent] += 1,
            None => roots += 1,
        }
    }
    let mut seen = vec![0_usize; nodes.len()];
    let mut seen_roots = 0;
    let mut below: Vec<String> = Vec::with_capacity(nodes.len());
    let mut lines = Vec::with_capacity(nodes.len());
    for node in nodes {
        let (prefix, count, number) = match node.parent {
            Some(parent) => {
                seen[parent] += 1;
                (below[parent].clone(), siblings[parent], seen[parent])
            }
            None => {
                seen_roots += 1;
                (String::new(), roots, seen_roots)
            }
        };
        let is_root = node.parent.is_none();
        let (line, next) = if count == 1 {
            (prefix.clone(), prefix)
        } else if is_root {
            (prefix.clone(), format!("{prefix} "))
        } else if number == count {
            (format!("{prefix}└ "), format!("{prefix}  "))
        } else {
            (format!("{prefix}├ "), format!("{prefix}│ "))
        };
        lines.push(line);
        below.push(next);
    }
    lines
}
