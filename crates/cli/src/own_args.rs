//! Separates the flags of `prism sim` from fio options, which may be mixed with them.
//!
//! Flags that the command declares are kept; all other arguments are moved behind a `--`, in
//! order, and parsed like fio's command line.

use std::ffi::OsString;

use clap::{Arg, Command};

/// The name of the command whose arguments are sorted.
const SIM: &str = "sim";

/// The process's arguments, with those of `prism sim` sorted.
#[must_use]
pub fn sorted(cli: &Command, arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let arguments: Vec<OsString> = arguments.collect();
    if arguments.get(1).is_none_or(|name| name != SIM) {
        return arguments;
    }
    let sim = cli.find_subcommand(SIM).expect("the command is declared");
    let (mut own, mut fio) = (arguments[..2].to_vec(), Vec::new());
    let mut rest = arguments[2..].iter().peekable();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default();
        let Some(flag) = find(sim, name) else {
            fio.push(argument.clone());
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
    own.extend(fio);
    own
}

/// The flag called `name` (with its dashes); `Some(None)` for those that every command has.
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
    fn flags_are_separated_from_fio_options() {
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
