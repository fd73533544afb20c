//! What to do about arguments that are refused.

use clap::error::{ContextKind, ContextValue, ErrorKind};

#[cfg(feature = "full")]
use crate::commands;

/// What a user who has no trace can do.
const NO_TRACE_TIPS: [&str; 4] = [
    "for a first report, name a sample of Prism's repository: samples/ext4-sqlite-wal.ftrace.zst",
    if cfg!(feature = "full") {
        "to record this system, run `prism capture -o run.parquet -- COMMAND` as root and name \
         run.parquet"
    } else {
        "to record this system, build all commands with `cargo build --release`: `prism capture`"
    },
    if cfg!(feature = "full") {
        "to generate a trace, run `prism trace generate --pattern mixed -o mixed.parquet`"
    } else {
        "to generate a trace, run `prism trace generate --pattern mixed -o mixed.fio`"
    },
    "to read from a pipe, name `-`",
];

/// The same for a trace of a cache, of which there is no sample.
const NO_CACHE_TRACE_TIPS: [&str; 3] = [
    "to try it without a trace, give --etc keys=1000000,requests=10000000,zipf=0.9",
    "Twitter (github.com/twitter/cache-trace) and libCacheSim (github.com/1a1a11a/libCacheSim) \
     publish traces of caches",
    "to read from a pipe, name `-`",
];

/// The commands that only the whole program has.
const FULL_COMMANDS: [&str; 13] = [
    "sweep",
    "capture",
    "validate",
    "calc",
    "reproduce",
    "device",
    "cache",
    "mkfs",
    "mount",
    "fsck",
    "fs",
    "graph",
    "bench",
];

/// What a user of a small build can do who needs another command.
pub const NOT_FULL: &str = "this program was built with `--no-default-features` and has only the \
     commands for reports, jobs and traces; to build all, run `cargo build --release`";

/// `error` with what to do, where Prism knows more of it than clap.
pub fn with_tips(mut error: clap::Error) -> clap::Error {
    let is_trace = |name: &String| name.starts_with("<TRACE>");
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => names.iter().any(is_trace),
        _ => false,
    };
    if missing && error.kind() == ErrorKind::MissingRequiredArgument {
        let simulates = std::env::args().skip(1).take(2).eq(["cache", "simulate"]);
        let tips = if simulates { &NO_CACHE_TRACE_TIPS[..] } else { &NO_TRACE_TIPS };
        let tips = tips.iter().copied().map(Into::into).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(name)) if error.kind() == ErrorKind::UnknownArgument => name,
        _ => "",
    };
    if let Some(instead) = instead(unknown) {
        let tips = ContextValue::StyledStrs(vec![instead.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    let source = std::error::Error::source(&error);
    if source.is_some_and(|source| source.is::<std::num::ParseIntError>()) {
        let tips = ContextValue::StyledStrs(vec!["give a whole number, without a unit".into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    let is_left_out = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) => FULL_COMMANDS.contains(&name.as_str()),
        _ => false,
    };
    if is_left_out && !cfg!(feature = "full") {
        let tips = ContextValue::StyledStrs(vec![NOT_FULL.into()]);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, tips);
    }
    let none = error.get(ContextKind::SuggestedValue).is_none();
    if let Some(value) = swapped(&error).filter(|_| none) {
        error.insert(ContextKind::SuggestedValue, ContextValue::String(value));
    }
    error
}

/// What to write instead of an option of memcached that a server of caches does not have.
#[cfg(feature = "full")]
fn instead(option: &str) -> Option<&'static str> {
    let serves = std::env::args().skip(1).take(2).eq(["cache", "serve"]);
    commands::cache_serve::instead(option).filter(|_| serves)
}

#[cfg(not(feature = "full"))]
fn instead(_: &str) -> Option<&'static str> {
    None
}

/// The possible value with the letters of the given one in another order: in short names two
/// swapped letters are too far from the name for clap.
fn swapped(error: &clap::Error) -> Option<String> {
    let (Some(ContextValue::String(given)), Some(ContextValue::Strings(values))) =
        (error.get(ContextKind::InvalidValue), error.get(ContextKind::ValidValue))
    else {
        return None;
    };
    let letters = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    values.iter().find(|value| letters(value) == letters(given)).cloned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::Cli;

    #[test]
    fn swapped_letters_are_recognised() {
        let error = Cli::try_parse_from(["prism", "report", "x", "--format", "mrs"]).unwrap_err();
        assert_eq!(swapped(&error).as_deref(), Some("msr"));
        assert!(with_tips(error).to_string().contains("'msr'"));
        let other = Cli::try_parse_from(["prism", "report", "x", "--format", "q"]).unwrap_err();
        assert_eq!(swapped(&other), None);
    }

    #[cfg(feature = "full")]
    #[test]
    fn a_text_that_is_no_number_has_a_tip() {
        for arguments in [&["cache", "serve", "-m", "abc"][..], &["cache", "serve", "-p", "1k"]] {
            let arguments = [&["prism"], arguments].concat();
            let error = with_tips(Cli::try_parse_from(arguments).unwrap_err()).to_string();
            assert!(error.contains("give a whole number"), "{error}");
        }
    }

    #[cfg(feature = "full")]
    #[test]
    fn commands_of_the_whole_program_are_listed() {
        use clap::Subcommand;

        let all = crate::full::Command::augment_subcommands(clap::Command::new("prism"));
        assert!(all.get_subcommands().map(clap::Command::get_name).eq(FULL_COMMANDS));
    }
}
