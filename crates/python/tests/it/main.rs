//! Runs the tests of the Python package, `python/tests`, against the extension module that cargo
//! has built for this test.
//!
//! They need the environment that `make python-package` makes in the target folder; without it they
//! are skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use prism_testkit::{all_seeds, skipped};

/// The files of the tests that take most of the time; `make test-fast` leaves them out.
const LONG: [&str; 5] = ["arguments", "notebooks", "report", "sweep", "tables"];

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The folder into which cargo has built this test and the extension module.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    test.parent().expect("it lies in a folder").to_path_buf()
}

/// Python in the environment of the package; `None` if that was not made.
fn python() -> Option<PathBuf> {
    let target = built().join("../..");
    let python = target.join("python-package/bin/python3");
    let works = Command::new(&python).args(["-c", "import pytest, pyarrow, polars"]).output();
    works.is_ok_and(|output| output.status.success()).then_some(python)
}

/// A folder with the package as an installation has it.
fn package() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("package");
    // Files of a former run may be of another package.
    let _ = fs::remove_dir_all(&folder);
    let package = folder.join("prism");
    fs::create_dir_all(&package).expect("room for the package");
    for file in fs::read_dir(root().join("python/prism")).expect("the sources of the package") {
        let file = file.expect("a readable folder").path();
        if file.is_file() {
            let name = file.file_name().expect("a file has a name");
            fs::copy(&file, package.join(name)).expect("room for a file");
        }
    }
    let module = built().join("libprism_python.so");
    assert!(module.exists(), "{} was not built", module.display());
    fs::copy(module, package.join("_prism.abi3.so")).expect("room for the module");
    folder
}

/// Runs a command in which the package can be imported.
fn run(python: &Path, package: &Path, arguments: &[&str]) {
    let mut command = Command::new(python);
    command.args(arguments).current_dir(root());
    command.env("PYTHONPATH", package).env("MYPYPATH", package);
    // Notebooks choose where their pictures go.
    command.env_remove("MPLBACKEND");
    // Tests write no byte code next to the sources.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("PRISM_PACKAGE", package);
    let prism = built().join("../prism");
    if prism.exists() {
        command.env("PRISM_COMMAND", prism);
    } else {
        skipped("the package against the command (cargo build --profile test -p prism-cli)", "");
    }
    let output = command.output().expect("Python runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}\n{error}", output.status);
}

#[test]
fn package_passes_its_tests() {
    let Some(python) = python() else {
        let what = "the Python package (make python-package makes its environment)";
        return skipped(what, "python3-venv");
    };
    let package = package();
    let mypy_cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mypy");
    let cache = format!("--cache-dir={}", mypy_cache.display());
    let source = package.join("prism").display().to_string();
    let types = || {
        let strict = ["-m", "mypy", "--strict", &cache, &source, "python/tests/typed.py"];
        run(&python, &package, &strict);
        run(&python, &package, &["-m", "mypy.stubtest", "prism._prism", "--ignore-missing-stub"]);
    };
    // Two files of tests at a time: most wait for other processes now and then.
    let ini = ["-o", "cache_dir=/dev/null", "-n", "2", "--dist", "loadfile"];
    let mut arguments = vec!["-m", "pytest", "--import-mode=importlib", "python/tests"];
    arguments.extend(ini);
    let ignored = LONG.map(|name| format!("--ignore=python/tests/test_{name}.py"));
    if !all_seeds() {
        arguments.extend(ignored.iter().map(String::as_str));
    }
    thread::scope(|scope| {
        if all_seeds() {
            scope.spawn(types);
        }
        run(&python, &package, &arguments);
    });
}
