//! Quoting for POSIX shells. Names from traces end up in suggested commands, so nothing may be
//! expanded or run.
//!
//! Quotes do not help against control characters in a command that is pasted: a terminal passes them on as keys, and the
//! shell's line editor obeys them.

use std::borrow::Cow;
use std::fmt::Write;

/// Text as one word of a shell.
#[must_use]
pub fn shell_quote(text: &str) -> Cow<'_, str> {
    // shlex also quotes `%` and `,`, which are common in our options and never special there.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+%,".contains(c);
    if text.starts_with(|c: char| c.is_ascii_alphanumeric() || "-_./".contains(c))
        && text.chars().all(is_plain)
    {
        return Cow::Borrowed(text);
    }
    if text.contains(is_typed) {
        return Cow::Owned(escaped(text));
    }
    shlex::try_quote(text)
        // No argument can have a NUL.
        .unwrap_or_else(|_| Cow::Owned(shell_quote(&text.replace('\0', "")).into_owned()))
}

/// Returns true for a character that does something when it is typed. NUL is left out of words.
fn is_typed(c: char) -> bool {
    c.is_control() && c != '\0'
}

/// Text as a word of printable characters: the output of `printf`, which all shells have.
fn escaped(text: &str) -> String {
    // A shell takes newlines from the end of what a command prints. Not all know these quotes; where they do not, the word
    // is another one, but as harmless.
    let ends_with_newline = text.trim_end_matches('\0').ends_with('\n');
    let mut word = String::new();
    for c in text.chars().filter(|c| *c != '\0') {
        let is_plain = c.is_ascii_alphanumeric() || " _./:@+,=".contains(c);
        if is_plain || !c.is_ascii() && !c.is_control() {
            word.push(c);
        } else if c == '%' && !ends_with_newline {
            word.push_str("%%");
        } else {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                let _ = write!(word, "\\{byte:03o}");
            }
        }
    }
    if ends_with_newline {
        format!("$'{word}'")
    } else {
        format!("\"$(printf '{word}')\"")
    }
}

/// The path of a file as one word of a shell that is not taken for an option.
#[must_use]
pub fn shell_path(path: &str) -> Cow<'_, str> {
    if path.starts_with('-') && path != "-" {
        Cow::Owned(shell_quote(&format!("./{path}")).into_owned())
    } else {
        shell_quote(path)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_words_stay_as_they_are() {
        for word in ["trace.ctf", "0.1%", "..50%", "--by", "a,b", "/tmp/x_1.ctf"] {
            assert_eq!(shell_quote(word), word);
        }
    }

    #[test]
    fn names_of_functions_are_one_word() {
        for word in [
            "",
            "List.map'",
            "f'; rm -rf ~; '",
            "$(reboot)",
            "`reboot`",
            "a\"b'c",
            "!history",
            "~user",
            "#comment",
            "{a,b}",
            "a\\b",
            "^a^b",
            "%1",
            "=ls",
        ] {
            let quoted = shell_quote(word);
            assert_eq!(shlex::split(&quoted).unwrap(), [word], "{quoted}");
        }
        assert_eq!(shell_quote("a\0b c"), "'ab c'");
        assert_eq!(shell_path("-rf.ctf"), "./-rf.ctf");
        assert_eq!(shell_path("-"), "-");
    }

    /// The word that a shell makes of one that was quoted.
    #[cfg(unix)]
    fn evaluated(shell: &str, quoted: &str) -> String {
        let command = format!("printf '%s.' {quoted}");
        let output = std::process::Command::new(shell)
            .args(["-c", &command])
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        printed.strip_suffix('.').unwrap().to_owned()
    }

    #[cfg(unix)]
    #[test]
    fn control_characters_cannot_be_typed_by_pasting() {
        let names = [
            "f\u{15}\ntouch /tmp/x\n'; id #",
            "-e\t%s%n\\n!history `id` $(id)",
            "\u{1b}[201~\rid",
            "é\u{85}\u{9b}\u{7f}\u{3}9",
            "\n\n\u{0}a\u{1}",
        ];
        for name in names {
            let quoted = shell_quote(name);
            assert!(!quoted.contains(char::is_control), "{quoted:?}");
            for shell in ["sh", "bash"] {
                assert_eq!(
                    evaluated(shell, &quoted),
                    name.replace('\0', ""),
                    "{quoted}"
                );
            }
        }
        // At the end of a command's output, newlines are lost.
        let quoted = shell_quote("100%'\n\n\0");
        assert_eq!(quoted, r"$'100\045\047\012\012'");
        assert_eq!(evaluated("bash", &quoted), "100%'\n\n");
    }

    proptest! {
        #[test]
        fn any_text_is_one_word(text in "\\PC*") {
            let quoted = shell_quote(&text);
            prop_assert_eq!(shlex::split(&quoted).unwrap(), [text]);
        }
    }

    #[cfg(unix)]
    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_text_is_one_printable_word_of_a_shell(text in "[^\\x00]*[^\\x00\n]") {
            let quoted = shell_quote(&text);
            prop_assert!(!quoted.contains(char::is_control));
            prop_assert_eq!(evaluated("sh", &quoted), text);
        }
    }
}
