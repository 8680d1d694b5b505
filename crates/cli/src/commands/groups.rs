//! The list of commands in the help text, in groups by purpose.

use std::fmt::Write;

use clap::Command;

/// The commands of the list. The others repeat what these do, for former users and other programs;
/// docs/commands.md describes them.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Get", &["record", "attach", "snapshot"]),
    ("Look", &["view", "top", "summary"]),
    (
        "Ask",
        &[
            "hotspots", "tree", "series", "leaks", "peak", "gc", "blocks", "source", "stats",
            "diff",
        ],
    ),
    ("Heap", &["retained", "dominators", "why", "findings"]),
    ("Share", &["check", "export", "report", "push"]),
    ("Files", &["info", "cut", "index"]),
    ("Many", &["dataset", "fleet"]),
    ("More", &["demo", "completions", "man", "help"]),
];

/// What to do first.
const START: &str = "  heapline record -- ./program  record a program
  heapline FILE                 show a trace, a heap snapshot or a dataset
  heapline PID                  watch a running program
  heapline demo                 try it on a built-in trace";

/// The columns before the descriptions of commands.
const INDENT: usize = 15;

/// Columns that help texts take at most, as clap's.
const MAX_WIDTH: usize = 100;

/// Replaces clap's list of commands: names only in the short help, with descriptions in the long one.
pub(crate) fn grouped(command: Command) -> Command {
    let style = *command.get_styles().get_header();
    let heading = |text: &str| format!("{style}{text}:{style:#}");
    let start = format!("{}\n{START}", heading("Start with"));
    let short = format!("{start}\n\n{}\n{}", heading("Commands"), names());
    let long = format!("{start}\n\n{}", descriptions(&command, heading));
    command
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{{before-help}}{}\n{{options}}{{after-help}}\n",
            heading("Options")
        ))
        .override_usage("heapline [OPTIONS] <COMMAND>\n       heapline [OPTIONS] <FILE|PID>")
        .before_help(short)
        .before_long_help(long)
}

/// A line with the names of each group.
fn names() -> String {
    let lines = GROUPS.map(|(group, names)| format!("  {group:<7}{}", names.join(", ")));
    lines.join("\n")
}

/// A section for each group, with the descriptions of its commands.
fn descriptions(command: &Command, heading: impl Fn(&str) -> String) -> String {
    let width = crate::screen::width().min(MAX_WIDTH);
    let about = |name: &str| match command.find_subcommand(name) {
        Some(command) => command.get_about().map(ToString::to_string),
        // It is added by clap.
        None => Some("Print this message or the help of a command".to_owned()),
    };
    let sections = GROUPS.map(|(group, names)| {
        let mut section = heading(group);
        for name in names {
            let _ = write!(section, "\n  {name:<0$}", INDENT - 3);
            let mut column = INDENT - 1;
            for word in about(name).unwrap_or_default().split(' ') {
                if column + 1 + word.len() > width && column >= INDENT {
                    let _ = write!(section, "\n{:1$}", "", INDENT - 1);
                    column = INDENT - 1;
                }
                let _ = write!(section, " {word}");
                column += 1 + word.len();
            }
        }
        section
    });
    sections.join("\n\n")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::Cli;

    /// Commands that are not in the list.
    const UNLISTED: [&str; 5] = ["flame", "heatmap", "temporary", "dump", "sturgeon"];

    #[test]
    fn every_command_is_in_one_group_or_left_out_on_purpose() {
        let mut command = Cli::command();
        command.build();
        let listed = GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
        let mut listed: Vec<&str> = listed.chain(UNLISTED).collect();
        listed.retain(|name| cfg!(unix) || *name != "sturgeon");
        let mut defined: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        listed.sort_unstable();
        defined.sort_unstable();
        assert_eq!(listed, defined);
    }

    /// Options that the short help of a command has at most.
    const SHORT: usize = 12;

    #[track_caller]
    fn assert_short(command: &Command) {
        let options = command
            .get_arguments()
            .filter(|option| !option.is_positional());
        let shown =
            options.filter(|option| !option.is_hide_set() && !option.is_hide_short_help_set());
        let shown: Vec<&str> = shown.map(|option| option.get_id().as_str()).collect();
        assert!(shown.len() <= SHORT, "{}: {shown:?}", command.get_name());
        command.get_subcommands().for_each(assert_short);
    }

    #[test]
    fn the_short_help_of_a_command_has_at_most_12_options() {
        let mut command = Cli::command();
        command.build();
        assert_short(&command);
    }

    #[test]
    fn options_of_reading_are_under_their_heading() {
        let mut command = Cli::command();
        command.build();
        for name in ["hotspots", "diff", "summary", "top"] {
            let command = command.find_subcommand(name).unwrap();
            let input = command
                .get_arguments()
                .filter(|option| option.get_help_heading() == Some("Input"));
            let input: Vec<&str> = input.map(|option| option.get_id().as_str()).collect();
            assert_eq!(
                input,
                ["strict", "executable", "memory", "no_index"],
                "{name}"
            );
        }
    }

    #[test]
    fn descriptions_are_wrapped_below_themselves() {
        let text = descriptions(&Cli::command(), |group| format!("{group}:"));
        let is_indented = |line: &str| line.starts_with("  ") || line.ends_with(':');
        assert!(
            text.lines()
                .all(|line| line.is_empty() || is_indented(line)),
            "{text}"
        );
        assert!(text.lines().all(|line| line.len() <= MAX_WIDTH), "{text}");
    }
}
