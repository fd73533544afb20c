//! The `prism` command. Everything it does is a function of the library beside it.

fn main() -> std::process::ExitCode {
    prism_cli::main()
}
