//! Names of files that an option gives, before anything is opened or made.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::open::ServerError;

/// Refuses a name that can be no file of a server: neither one that is there nor one that could be
/// made.
pub(crate) fn check(option: &str, path: &Path) -> Result<(), ServerError> {
    let name = path.display();
    let wrong = |what: &str| Err(ServerError::Option { what: format!("{option} {name}: {what}") });
    if path.as_os_str().is_empty() {
        return wrong("the name is empty; give that of a file");
    }
    if let Ok(found) = fs::metadata(path) {
        let kind = found.file_type();
        return match kind.is_file() || kind.is_block_device() {
            true => Ok(()),
            false if kind.is_dir() => wrong("this is a folder; name a file in it"),
            false => wrong("this is neither a regular file nor a block device; name another one"),
        };
    }
    if let Ok(target) = fs::read_link(path) {
        let target = target.display();
        let what =
            format!("this is a link to {target}, which is not there; name that or remove it");
        return wrong(&what);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| !folder.exists()) {
        Some(folder) => {
            let what = format!("there is no folder {}; make it first", folder.display());
            wrong(&what)
        }
        None => Ok(()),
    }
}

/// Whether two names are those of one file, which need not be there.
pub(crate) fn are_same(a: &Path, b: &Path) -> bool {
    let whole = |path: &Path| fs::canonicalize(path).or_else(|_| std::path::absolute(path));
    a == b || whole(a).ok().zip(whole(b).ok()).is_some_and(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn names_that_can_be_no_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        symlink(path("away"), path("link")).unwrap();
        fs::write(path("file"), "").unwrap();
        assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        let refused = |path: &Path, part: &str| {
            let error = check("--device", path).expect_err(part).to_string();
            let name = format!("--device {}: ", path.display());
            assert!(error.starts_with(&name) && error.contains(part), "{error}");
        };
        refused(Path::new(""), "the name is empty");
        refused(Path::new("/dev/null"), "neither a regular file nor a block device");
        refused(&path("pipe"), "neither a regular file nor a block device");
        refused(folder.path(), "name a file in it");
        refused(&path("link"), "which is not there");
        refused(&path("none/file"), "there is no folder");
        for name in ["file", "new"] {
            check("--device", &path(name)).unwrap();
            assert!(are_same(&path(name), &path(&format!("./{name}"))), "{name}");
        }
        check("--device", Path::new("new")).unwrap();
        assert!(!are_same(&path("file"), &path("new")));
    }
}
