//! How long a file system with much data takes to open.

use std::path::Path;

use prism_base::Bytes;
use prism_fs::{Access, Damage, Fs, FsError, NewFile, ROOT, S_IFDIR, S_IFREG};
use prism_fsmount::{AnyStore, MountOptions, make, open};
use prism_host::interrupt::Scratch;
use prism_host::{Progress, clock};
use prism_report::{Table, Unit};
use serde::Serialize;

use super::Args;
use super::mounted::at_path;
use crate::commands::bench_device::median;
use crate::failure::Failure;

/// Bytes of a file.
const FILE: u64 = 1 << 20;
/// Files of a folder.
const FOLDER: u64 = 1000;
/// The share of the device that the files use, in percent.
const FULL: u64 = 80;

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Opened {
    used_bytes: u64,
    files: u64,
    /// Seconds after an unmount.
    clean_seconds: f64,
    /// Seconds after a loss of power: the last files are durable, and in no checkpoint.
    crashed_seconds: f64,
}

impl Opened {
    /// The table of it.
    pub fn table(&self) -> Table {
        let table = Table::listing(std::slice::from_ref(self))
            .number("used", Unit::Bytes, |opened: &Self| opened.used_bytes as f64)
            .number("files", Unit::Count, |opened| opened.files as f64)
            .number("after an unmount", Unit::Nanos, |opened| opened.clean_seconds * 1e9)
            .number("after a crash", Unit::Nanos, |opened| opened.crashed_seconds * 1e9);
        table.whole("Time to open a file system in a file.")
    }
}

/// Measures.
///
/// # Errors
/// [`Failure`] if the device cannot be made or opened.
pub fn measure(args: &Args, progress: &Progress) -> Result<Opened, Failure> {
    let path = args.folder.join(format!("prism-bench-fs-{}.prism", std::process::id()));
    let _file = Scratch::at(&path);
    let files = args.used.0.div_ceil(FILE).max(1);
    let failed = |error: FsError| Failure::Usage(format!("{}: {error}", path.display()));
    let size = Bytes((files * FILE * 100 / FULL).max(256 << 20));
    let mut made = make(&path, size).map_err(Failure::usage)?;
    progress.start_count("writing:", "files", Some(files));
    for number in 0..files {
        write(&mut made.fs, number).map_err(failed)?;
        progress.reached(number + 1);
    }
    progress.clear();
    made.fs.unmount().map_err(failed)?;
    drop(made);
    let copy = path.with_extension("copy.prism");
    let _copy = Scratch::at(&copy);
    let (mut clean, mut crashed) = (Vec::new(), Vec::new());
    for _ in 0..args.runs {
        let (seconds, mut device) = timed(&path)?;
        clean.push(seconds);
        // Durable by fsync, and in no checkpoint.
        for number in 0..64.min(files) {
            let ino = write(&mut device.fs, number).map_err(failed)?;
            device.fs.fsync(&[ino]).map_err(failed)?;
        }
        // What a loss of power would leave: nothing is closed.
        std::fs::copy(&path, &copy).map_err(|error| at_path(&copy, &error))?;
        device.fs.unmount().map_err(failed)?;
        drop(device);
        let (seconds, _) = timed(&copy)?;
        crashed.push(seconds);
        std::fs::remove_file(&copy).map_err(|error| at_path(&copy, &error))?;
    }
    Ok(Opened {
        used_bytes: files * FILE,
        files,
        clean_seconds: median(&clean),
        crashed_seconds: median(&crashed),
    })
}

fn timed(path: &Path) -> Result<(f64, prism_fsmount::Device), Failure> {
    let config = MountOptions::parse("").expect("no options are fine").config;
    let begun = clock::seconds();
    let opened = open(path, config, Access::ReadWrite, Damage::Refuse);
    let opened = opened.map_err(Failure::usage)?;
    Ok((clock::seconds() - begun, opened))
}

/// Writes a file, which may exist.
fn write(fs: &mut Fs<AnyStore>, number: u64) -> Result<u32, FsError> {
    let new = |mode| NewFile { mode, uid: 0, gid: 0, rdev: 0, umask: 0o022 };
    let found = |fs: &mut Fs<AnyStore>, folder, name: &str, mode| match fs
        .lookup(folder, name.as_bytes())
    {
        Ok(ino) => Ok(ino),
        Err(_) => fs.make(folder, name.as_bytes(), new(mode)),
    };
    let folder = found(fs, ROOT, &format!("d{:05}", number / FOLDER), S_IFDIR | 0o755)?;
    let file = found(fs, folder, &format!("f{number:08}"), S_IFREG | 0o644)?;
    fs.write(file, 0, &vec![number as u8; FILE as usize])?;
    Ok(file)
}
