//! The help.

/// Keys and what they do; a line without keys is a title.
pub(crate) const HELP: &[(&str, &str)] = &[
    ("", "Rows"),
    ("Up Down PgUp PgDn", "select a row (also j, k)"),
    ("Home End", "the first, the last row"),
    (
        "Enter",
        "callers of the row; in the tree: fold or open the node",
    ),
    ("Esc Backspace", "go back"),
    ("", "Moments"),
    ("Left Right", "the snapshot or moment before, after"),
    ("[ ]  Shift-Left Right", "ten steps at once"),
    (
        "0  p  e",
        "the start, the peak, the end (while it is recorded: now)",
    ),
    (
        "d  D",
        "mark this moment: growth is measured from here; remove the mark",
    ),
    ("Space", "freeze, go on (while it is recorded)"),
    ("", "Figures"),
    (
        "Tab Shift-Tab  > <",
        "sort by the next column; in the tree: what it is about",
    ),
    ("s F6", "choose the column to sort by"),
    ("b", "bytes or blocks"),
    ("g F2", "choose the grouping"),
    ("m", "my code: count the standard library as its callers"),
    (
        "/ \\ F3 F4",
        "filter; Tab completes, Enter applies, Esc leaves it as it was",
    ),
    ("", "Views"),
    ("t F5", "tree, table"),
    (
        "i",
        "invert the tree: from allocations to callers, or from the entry down",
    ),
    ("+ - *", "open, fold the node; open all"),
    ("%", "merge nodes below another share of the total"),
    ("v", "timeline"),
    ("1 2 3", "table, tree, timeline"),
    ("c", "show the command that prints these numbers"),
    ("h ? F1", "this help"),
    ("q F10 Ctrl-C", "quit"),
    ("Ctrl-Z", "suspend; fg continues"),
    ("", "Signs"),
    (
        "±",
        "95 % interval; dimmed rows are within the sampling error",
    ),
    (
        "● ○",
        "growth that is significant, within the sampling error",
    ),
    ("▲ ◆", "the moment that is shown, the mark"),
];
