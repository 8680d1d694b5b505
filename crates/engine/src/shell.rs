//! Quoting for POSIX shells. Names from traces end up in suggested commands, so nothing may be
//! expanded or run.

use std::borrow::Cow;

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
    shlex::try_quote(text)
        // No argument can have a NUL.
        .unwrap_or_else(|_| Cow::Owned(shell_quote(&text.replace('\0', "")).into_owned()))
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

    proptest! {
        #[test]
        fn any_text_is_one_word(text in "[^\\x00]*") {
            let quoted = shell_quote(&text);
            prop_assert_eq!(shlex::split(&quoted).unwrap(), [text]);
        }
    }
}
