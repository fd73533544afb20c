//! The `prism` command, which calls the library of this crate.

#[global_allocator]
static ALLOCATOR: prism_cli::memory::OrExit = prism_cli::memory::OrExit;

fn main() -> std::process::ExitCode {
    prism_cli::main()
}
