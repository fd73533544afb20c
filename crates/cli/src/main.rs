//! The `prism` command, which calls the library of this crate.

fn main() -> std::process::ExitCode {
    prism_cli::main()
}
