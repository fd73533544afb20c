//! The process of the server: the user as whom it runs, the background, and the file with its
//! number.
//!
//! Threads of this process already wait for signals, so it neither forks nor changes its own user:
//! it starts itself again, as that user or as a child, before it opens anything.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::User;

use super::Args;
use crate::background::{self, Errors};
use crate::failure::Failure;

/// What this process does.
#[derive(Debug, PartialEq, Eq)]
pub enum Role {
    /// It serves.
    Serve,
    /// A child of it serves.
    Done,
}

/// Starts this program again, if another user or the background is wanted.
///
/// # Errors
/// [`Failure::Usage`] if there is no such user, or the program cannot be started.
pub fn begin(args: &Args) -> Result<Role, Failure> {
    if args.in_background {
        background::begin();
        return Ok(Role::Serve);
    }
    let user = args.user.as_deref().map(other_user).transpose()?.flatten();
    if args.daemon {
        background::start(again(user.as_ref())?)?;
        return Ok(Role::Done);
    }
    match user {
        None => Ok(Role::Serve),
        Some(user) => Err(failed(&again(Some(&user))?.exec(), Some(&user))),
    }
}

/// The user of this name, if this process is root's and has to become that user.
fn other_user(name: &str) -> Result<Option<User>, Failure> {
    if !rustix::process::geteuid().is_root() {
        // As memcached: only root can change the user.
        return Ok(None);
    }
    let found = User::from_name(name)
        .map_err(|error| Failure::Usage(format!("-u {name}: cannot look up the user: {error}")))?;
    let user = found.ok_or_else(|| Failure::Usage(format!("-u {name}: there is no such user")))?;
    Ok(Some(user).filter(|user| !user.uid.is_root()))
}

fn failed(error: &std::io::Error, user: Option<&User>) -> Failure {
    let user = user.map_or(String::new(), |user| format!(" as {}", user.name));
    let program = std::env::current_exe().unwrap_or_default();
    Failure::Usage(format!("cannot run {}{user}: {error}", program.display()))
}

/// This program with its arguments, as `user`.
fn again(user: Option<&User>) -> Result<Command, Failure> {
    let mut command = background::again()?;
    if let Some(user) = user {
        // Other groups of root are given up with its user.
        command.gid(user.gid.as_raw()).uid(user.uid.as_raw());
        command.env("USER", &user.name).env("HOME", &user.dir);
    }
    Ok(command)
}

/// The file with the number of the process, which is removed at the end.
#[derive(Debug)]
pub struct PidFile(PathBuf);

impl PidFile {
    /// Writes the file.
    ///
    /// # Errors
    /// [`Failure::Usage`] with its name.
    pub fn write(path: &Path) -> Result<Self, Failure> {
        let name = path.display();
        let failed = |error| Failure::Usage(format!("-P {name}: cannot write the file: {error}"));
        // Another program never reads half of a number. A file that is there already, perhaps a
        // link that another user has made, is removed and not followed.
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        match fs::remove_file(&new) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            _ => {}
        }
        let mut file = fs::File::create_new(&new).map_err(failed)?;
        file.write_all(format!("{}\n", std::process::id()).as_bytes()).map_err(failed)?;
        fs::rename(&new, path).map_err(failed)?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // It does not matter if another process has removed it.
        let _ = fs::remove_file(&self.0);
    }
}

/// Reports to the parent that the server serves, and gives up the terminal; with -v standard error
/// stays what it was.
///
/// # Errors
/// [`Failure::Usage`] if that fails.
pub fn ready(args: &Args) -> Result<(), Failure> {
    if !args.in_background {
        return Ok(());
    }
    background::ready(if args.verbose == 0 { Errors::Dropped } else { Errors::Kept })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [target, path, new] = ["target", "pid", "pid.new"].map(|name| folder.path().join(name));
        fs::write(&target, "precious").unwrap();
        for link in [&path, &new] {
            std::os::unix::fs::symlink(&target, link).unwrap();
        }
        let file = PidFile::write(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().trim(), std::process::id().to_string());
        assert!(!fs::symlink_metadata(&path).unwrap().is_symlink() && !new.exists());
        drop(file);
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        assert!(!path.exists());
    }
}
