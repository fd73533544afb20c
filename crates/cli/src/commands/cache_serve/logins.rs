//! The file of `-Y`: users and passwords, a line each.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use prism_base::Bytes;
use prism_cache::protocol::Users;

use crate::failure::Failure;

/// The longest file: thousands of logins, each of which a login of a client is compared with.
const LONGEST: Bytes = Bytes(64 << 10);

/// Reads the logins of a file.
///
/// # Errors
/// [`Failure::Usage`] if it is no regular file, too long, has no login, or a line is none.
pub fn read(path: &Path) -> Result<Users, Failure> {
    let name = path.display();
    let wrong = |why: String| Failure::Usage(format!("-Y {name}: {why}"));
    let unreadable = |error| Failure::Usage(format!("-Y {name}: cannot read the file: {error}"));
    // A pipe would have to be waited for, and a device may have no end.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        let what = "this is no regular file; give one with a line user:password for each login";
        return Err(wrong(what.to_owned()));
    }
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(LONGEST.0 + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > LONGEST.0 {
        return Err(wrong(format!("the file is longer than {LONGEST}; give fewer logins")));
    }
    let mut users = Users::new();
    for (line, number) in text.lines().zip(1..) {
        let Some((user, password)) = line.split_once(':') else {
            return Err(Failure::Usage(format!("-Y {name}:{number}: not user:password")));
        };
        users.push((user.into(), password.into()));
    }
    if users.is_empty() {
        let what = "the file has no login, so no client could use the server; give it a line \
                    user:password";
        return Err(wrong(what.to_owned()));
    }
    Ok(users)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_with_logins_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logins");
        let of = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(&path)
        };
        let found = of("ann:secret\nbob:a:b\n").unwrap();
        assert_eq!(found, [(b"ann".to_vec(), b"secret".to_vec()), ("bob".into(), "a:b".into())]);
        let refused = |found: Result<Users, Failure>, part: &str| {
            let error = found.expect_err(part).to_string();
            assert!(error.contains(part) && error.contains("-Y "), "{part:?} is not in {error}");
        };
        refused(of(""), "has no login");
        refused(of("ann:secret\nbob\n"), ":2: not user:password");
        refused(of(&"ann:secret\n".repeat(6000)), "longer than 64 KiB");
        refused(read(Path::new("/dev/zero")), "no regular file");
        refused(read(folder.path()), "no regular file");
        refused(read(&folder.path().join("none")), "cannot read the file");
        let pipe = folder.path().join("pipe");
        std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        refused(read(&pipe), "no regular file");
    }
}
