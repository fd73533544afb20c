//! The flags of `prism sim` apart from the fio options, which may stand among them.
//!
//! Flags that the command declares stay flags, wherever they stand; everything else goes
//! behind a `--`, in its order, and is read as fio does.

use std::ffi::OsString;

use clap::{Arg, Command};

/// The name of the command whose arguments are sorted.
const SIM: &str = "sim";

/// The process's arguments with those of `prism sim` sorted; others are left alone.
#[must_use]
pub fn sorted(cli: &Command, arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let arguments: Vec<OsString> = arguments.collect();
    if arguments.get(1).is_none_or(|name| name != SIM) {
        return arguments;
    }
    let sim = cli.find_subcommand(SIM).expect("the command is declared");
    let (mut own, mut words) = (arguments[..2].to_vec(), Vec::new());
    let mut rest = arguments[2..].iter().peekable();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default();
        let Some(flag) = find(sim, name) else {
            words.push(argument.clone());
            continue;
        };
        own.push(argument.clone());
        let many = flag.is_some_and(|flag| flag.get_id() == "sweep");
        let one = flag.is_some_and(|flag| flag.get_action().takes_values()) && name == text;
        // The axes of a sweep follow each other; all have an equals sign.
        let is_axis = |next: &OsString| {
            let next = next.to_string_lossy();
            !next.starts_with('-') && next.contains('=')
        };
        if one {
            own.extend(rest.next().cloned());
        }
        while many && rest.peek().is_some_and(|next| is_axis(next)) {
            own.push("--sweep".into());
            own.extend(rest.next().cloned());
        }
    }
    own.push("--".into());
    own.extend(words);
    own
}

/// The flag that `name` (with its dashes) stands for; `Some(None)` for those that every
/// command has.
fn find<'a>(sim: &'a Command, name: &str) -> Option<Option<&'a Arg>> {
    if ["--help", "-h"].contains(&name) {
        return Some(None);
    }
    let long = name.strip_prefix("--")?;
    sim.get_arguments().find(|flag| flag.get_long() == Some(long)).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ArgAction;

    fn check(line: &str, expected: &str) {
        let sim = Command::new(SIM)
            .arg(Arg::new("json").long("json"))
            .arg(Arg::new("sweep").long("sweep").action(ArgAction::Append))
            .arg(Arg::new("quiet").long("quiet").action(ArgAction::SetTrue));
        let cli = Command::new("prism").subcommand(sim);
        let sorted = sorted(&cli, line.split_whitespace().map(OsString::from));
        let sorted: Vec<_> = sorted.iter().map(|a| a.to_string_lossy().into_owned()).collect();
        assert_eq!(sorted.join(" "), expected, "{line}");
    }

    #[test]
    fn flags_are_taken_from_among_the_words() {
        check("prism report --json x a", "prism report --json x a");
        check(
            "prism sim --rw=read --json - a.fio --quiet --name a",
            "prism sim --json - --quiet -- --rw=read a.fio --name a",
        );
        check(
            "prism sim --sweep gc=a,b op=1 j.fio --sweep=bs=4k qd=1 --name=a",
            "prism sim --sweep gc=a,b --sweep op=1 --sweep=bs=4k --sweep qd=1 -- j.fio --name=a",
        );
        check("prism sim --json", "prism sim --json --");
        check("prism sim -h", "prism sim -h --");
    }
}
