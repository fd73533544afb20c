//! The test that is running, and the command that runs it alone.

use std::path::Path;

/// The name of an unknown test.
const UNKNOWN: &str = "random_";

/// The name of the running test, which takes seeds. The test runner gives each test a thread of
/// that name, unless there is one thread for all of them.
pub(crate) fn random_name() -> String {
    checked(std::thread::current().name().unwrap_or("main")).into()
}

fn checked(name: &str) -> &str {
    if name == "main" {
        return UNKNOWN;
    }
    assert!(
        name.contains("random_"),
        "{name} takes seeds but has no `random_` in its name, by which make fuzz finds it"
    );
    name
}

/// The command that runs the test `name` with that seed.
pub(crate) fn command(name: &str, seed: u64) -> String {
    // Cargo sets it for the programs that it runs.
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "PACKAGE".into());
    command_of(&package, &std::env::current_exe().unwrap_or_default(), name, seed)
}

fn command_of(package: &str, program: &Path, name: &str, seed: u64) -> String {
    format!("PRISM_SEED={seed} cargo test -p {package} {} {name}", target(program, package))
}

/// The cargo arguments for the test program at this path, whose name ends in a hash.
fn target(program: &Path, package: &str) -> String {
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    let name = stem.rsplit_once('-').map_or(&*stem, |(name, _)| name);
    if name == package.replace('-', "_") { "--lib".into() } else { format!("--test {name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_the_program_as_cargo_wants_it() {
        let command = |program| command_of("prism-ssd", Path::new(program), "a::random_x", 17);
        let expected = "PRISM_SEED=17 cargo test -p prism-ssd --test it a::random_x";
        assert_eq!(command("/t/debug/deps/it-0123abcd"), expected);
        let expected = "PRISM_SEED=17 cargo test -p prism-ssd --lib a::random_x";
        assert_eq!(command("/t/debug/deps/prism_ssd-0123abcd"), expected);
    }

    #[test]
    #[should_panic(expected = "no `random_` in its name")]
    fn other_tests_take_no_seeds() {
        assert_eq!((checked("main"), checked("it::random_x")), (UNKNOWN, "it::random_x"));
        checked("it::swarm");
    }
}
