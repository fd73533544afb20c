//! Compiling programs in C against the library as it was built for the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs in `examples`.
pub const NAMES: [&str; 14] = [
    "algorithm_iv_1",
    "algorithm_iv_2",
    "algorithm_iv_3",
    "event_loop",
    "file",
    "function",
    "kv",
    "monitor",
    "object",
    "policy",
    "raw",
    "real_time",
    "recover",
    "threads",
];

/// No warning is allowed in the header or a program.
const STRICT: [&str; 6] = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-pthread"];

/// The libraries needed with the static library, as listed by `rustc --print native-static-libs`.
const NATIVE: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

/// The folder into which cargo has built the libraries.
pub fn built() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    test.parent().expect("it lies in a folder").to_path_buf()
}

pub fn source() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a command that has to succeed. Returns its output.
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}\n{error}", output.status);
    said
}

/// Whether a tool is installed.
pub fn has(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// A folder with the libraries under their installed names.
pub struct Setting(PathBuf);

impl Setting {
    pub fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("c-{name}"));
        // Files of a former run may be of another library.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("room for programs");
        for (from, to) in [
            ("libprism_capi.so", "libprism.so"),
            ("libprism_capi.so", concat!("libprism.so.", env!("CARGO_PKG_VERSION_MAJOR"))),
            ("libprism_capi.a", "libprism_static.a"),
        ] {
            let from = built().join(from);
            assert!(from.exists(), "{} was not built", from.display());
            std::os::unix::fs::symlink(from, folder.join(to)).expect("room for a link");
        }
        Self(folder)
    }

    fn run(&self, compiler: Command, name: &str, libraries: &[&str]) -> PathBuf {
        let text = source().join(format!("examples/{name}.c"));
        self.run_with(compiler, &text, name, libraries)
    }

    fn run_with(
        &self,
        mut compiler: Command,
        text: &Path,
        name: &str,
        libraries: &[&str],
    ) -> PathBuf {
        let program = self.0.join(name);
        compiler.args(STRICT).arg("-I").arg(source().join("include"));
        compiler.arg("-o").arg(&program).arg(text);
        compiler.arg("-L").arg(&self.0).args(libraries);
        compiler.arg(format!("-Wl,-rpath,{}", self.0.display()));
        succeed(&mut compiler);
        program
    }

    /// A program in C with the shared library.
    pub fn compile(&self, name: &str, flags: &[&str]) -> PathBuf {
        let mut compiler = Command::new("cc");
        compiler.arg("-std=c11").args(flags);
        self.run(compiler, name, &["-lprism"])
    }

    /// A program given as text.
    pub fn compile_text(&self, name: &str, text: &str) -> PathBuf {
        let file = self.0.join(format!("{name}.c"));
        fs::write(&file, text).expect("room for a program");
        let mut compiler = Command::new("cc");
        compiler.arg("-std=c11");
        self.run_with(compiler, &file, name, &["-lprism"])
    }

    pub fn compile_static(&self, name: &str) -> PathBuf {
        let mut compiler = Command::new("cc");
        compiler.arg("-std=c11");
        self.run(compiler, name, &[&["-lprism_static"][..], &NATIVE[..]].concat())
    }

    /// The same source as C++.
    pub fn compile_cpp(&self, name: &str) -> PathBuf {
        let mut compiler = Command::new("c++");
        compiler.args(["-std=c++17", "-x", "c++"]);
        self.run(compiler, name, &["-lprism"])
    }
}
