//! `prism completions` and `prism man`: files for shells and for `man`, generated from the
//! definitions of the commands, so that they are never out of date.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use prism_host::HostError;

use crate::failure::Failure;
use crate::output::write_whole;

/// Arguments of `prism completions`.
#[derive(Clone, Copy, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism completions bash > ~/.local/share/bash-completion/completions/prism
  prism completions zsh > \"${fpath[1]}/_prism\"
  prism completions fish > ~/.config/fish/completions/prism.fish")]
pub struct CompletionArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Arguments of `prism man`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism man | man -l -
  prism man --output ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Folder for the pages of all commands, such as prism-report.1; without it the page of
    /// `prism` goes to standard output
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Prints the completions of `cli` for a shell.
///
/// # Errors
/// [`Failure`] if they cannot be written.
pub fn completions(args: CompletionArgs, mut cli: Command) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "prism", &mut text);
    Ok(write_whole(Path::new("-"), &text)?)
}

/// Writes the manual pages of `cli`.
///
/// # Errors
/// [`Failure`] if the folder cannot be made, or a page cannot be written.
pub fn man(args: &ManArgs, mut cli: Command) -> Result<(), Failure> {
    cli = cli.disable_help_subcommand(true);
    cli.build();
    let Some(folder) = &args.output else {
        return Ok(write_whole(Path::new("-"), &page(&cli))?);
    };
    std::fs::create_dir_all(folder)
        .map_err(|source| HostError::Open { file: folder.display().to_string(), source })?;
    let mut open = vec![&cli];
    while let Some(command) = open.pop() {
        let name = command.get_display_name().unwrap_or(command.get_name());
        write_whole(&folder.join(format!("{name}.1")), &page(command))?;
        open.extend(command.get_subcommands().filter(|command| !command.is_hide_set()));
    }
    Ok(())
}

fn page(command: &Command) -> Vec<u8> {
    let mut text = Vec::new();
    let version = format!("prism {}", env!("CARGO_PKG_VERSION"));
    let page = Man::new(command.clone()).source(version).manual("Prism");
    page.render(&mut text).expect("memory can be written");
    text
}
