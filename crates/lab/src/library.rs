//! Finds the shared libraries of applications. They are loaded at run time, so Prism can be built
//! and used without them.
#![allow(unsafe_code, reason = "opening a library runs its initialisers")]

use std::fs;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::error::StackError;
use crate::kinds::App;

/// A shared library and its package.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedLibrary {
    /// Its name up to the version.
    pub stem: &'static str,
    /// The Debian package that has it.
    pub package: &'static str,
}

/// The folders of libraries on Linux distributions. Debian's are named after the architecture, such
/// as `/usr/lib/x86_64-linux-gnu`, and found by listing.
const FOLDERS: [&str; 5] = ["/usr/local/lib", "/usr/lib", "/usr/lib64", "/lib", "/lib64"];

impl SharedLibrary {
    /// The library that `app` needs; `None` for our own programs.
    pub fn by(app: App) -> Option<Self> {
        Some(match app {
            App::SqliteRb | App::SqliteWal => {
                Self { stem: "libsqlite3.so", package: "libsqlite3-0" }
            }
            App::RocksDb => Self { stem: "librocksdb.so", package: "librocksdb7.8 (or later)" },
            App::LevelDb => Self { stem: "libleveldb.so", package: "libleveldb1d" },
            App::Varmail
            | App::OverwriteZipf
            | App::OverwriteUniform
            | App::OverwriteTpcC
            | App::OverwriteRes => return None,
        })
    }

    /// Opens the newest version in the folders of libraries.
    ///
    /// # Errors
    /// [`StackError`] if there is none, or it cannot be opened.
    pub fn open(self) -> Result<Library, StackError> {
        let files = found(self.stem, &folders());
        let file = files.first();
        let Some(file) = file else {
            return Err(StackError::NoLibrary { library: self.stem, package: self.package });
        };
        // SAFETY: the initialisers of these libraries, as built by distributions, only set up
        // their own state.
        let opened = unsafe { Library::new(file) };
        opened.map_err(|error| self.bad(file, error.to_string()))
    }

    /// The error of a library that lacks something.
    pub fn bad(self, file: &Path, what: String) -> StackError {
        let library = file.display().to_string();
        StackError::BadLibrary { library, what, package: self.package }
    }

    /// The address of the function `name` in `library`, as a value of `F`.
    ///
    /// # Errors
    /// [`StackError::BadLibrary`] if there is no such function.
    ///
    /// # Safety
    /// `F` must be the type of a pointer to that function, and the value must not be used
    /// after `library` is closed.
    pub unsafe fn function<F: Copy>(self, library: &Library, name: &str) -> Result<F, StackError> {
        // SAFETY: the caller promises the type.
        let symbol = unsafe { library.get::<F>(name) };
        match symbol {
            Ok(symbol) => Ok(*symbol),
            Err(error) => Err(self.bad(Path::new(self.stem), error.to_string())),
        }
    }
}

/// Declares a table of the functions of a C library: for each its field, its type and its name
/// behind the prefix of all names of the library.
macro_rules! functions {
    (
        $(#[$meta:meta])*
        struct $table:ident {
            $($field:ident: fn($($argument:ty),*) $(-> $result:ty)? = $name:literal,)*
        }
    ) => {
        $(#[$meta])*
        struct $table {
            $($field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl $table {
            /// The functions of `library`, as [`SharedLibrary::function`] for each.
            unsafe fn of(
                wanted: SharedLibrary,
                library: &Library,
                prefix: &str,
            ) -> Result<Self, StackError> {
                // SAFETY: the caller promises the types.
                unsafe {
                    Ok(Self {
                        $($field: wanted.function(library, &format!("{prefix}_{}", $name))?,)*
                    })
                }
            }
        }
    };
}
pub(super) use functions;

fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).collect();
    for folder in ["/usr/lib", "/lib"] {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut own: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.to_string_lossy().contains("-linux-"))
            .collect();
        own.sort();
        folders.extend(own);
    }
    folders
}

/// The files in `folders` whose names are `stem` with or without a version, the newest first.
fn found(stem: &str, folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in folders {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if let Some(version) = name.to_str().and_then(|name| version(stem, name)) {
                files.push((version, entry.path()));
            }
        }
    }
    files.sort();
    files.into_iter().rev().map(|(_, path)| path).collect()
}

/// The version numbers in `librocksdb.so.7.8`; `None` for the name of another library.
fn version(stem: &str, name: &str) -> Option<Vec<u32>> {
    match name.strip_prefix(stem)? {
        "" => Some(Vec::new()),
        rest => rest.strip_prefix('.')?.split('.').map(|number| number.parse().ok()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let there = ["libx.so.9", "libx.so.10.2", "libx.so", "libx.so.1d", "libxy.so.99", "libx.a"];
        for name in there {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let files = found("libx.so", &[folder.path().join("none"), folder.path().to_path_buf()]);
        let names: Vec<_> =
            files.iter().map(|f| f.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["libx.so.10.2", "libx.so.9", "libx.so"]);
        assert!(found("liby.so", &[folder.path().to_path_buf()]).is_empty());
    }

    #[test]
    fn what_is_no_library_is_refused() {
        let library = SharedLibrary { stem: "libnothing-of-this-name.so", package: "nothing" };
        let error = library.open().map(drop).unwrap_err();
        assert!(error.to_string().contains("install the package nothing"), "{error}");
    }
}
