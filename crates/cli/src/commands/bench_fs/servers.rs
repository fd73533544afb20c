//! Threads that use many files: Filebench's servers, and fsync.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

use prism_fs::workload::{Call, Operation, Personality, Workload};
use prism_host::clock;

use super::Args;
use super::mounted::{Mounted, at_path};
use crate::failure::Failure;

/// Files of a server.
pub const FILES: u32 = 1000;
/// Bytes of a write or a read at most. Source: Filebench's iosize of these workloads.
const IO_MAX: usize = 1 << 20;

/// Runs threads until the time is over; returns their operations per second. `thread` gets its
/// number and the end of the time, and returns how many operations it did, or the path at which one
/// failed.
fn threads(
    args: &Args,
    count: usize,
    thread: impl Fn(usize, f64) -> Result<u64, (PathBuf, io::Error)> + Sync,
) -> Result<f64, Failure> {
    let begun = clock::seconds();
    let until = begun + args.time.as_secs_f64();
    let ended: Vec<_> = thread::scope(|scope| {
        let thread = &thread;
        let all: Vec<_> =
            (0..count).map(|number| scope.spawn(move || thread(number, until))).collect();
        all.into_iter().map(|one| one.join().expect("it does not panic")).collect()
    });
    let seconds = clock::seconds() - begun;
    let mut sum = 0;
    for one in ended {
        sum += one.map_err(|(path, error)| at_path(&path, &error))?;
    }
    Ok(sum as f64 / seconds)
}

/// Threads that write 4 KiB to a file of their own and make it durable.
pub fn fsyncs(args: &Args, mounted: &Mounted, count: usize) -> Result<f64, Failure> {
    threads(args, count, |number, until| {
        let path = mounted.folder().join(format!("file {number}"));
        let failed = |error| (path.clone(), error);
        let file = File::create(&path).map_err(failed)?;
        let mut done = 0;
        while clock::seconds() < until {
            // In a file of 64 MiB, so that it does not fill the device.
            let offset = done % (16 << 10) * 4096;
            let written = file.write_all_at(&[0x5A; 4096], offset);
            written.and_then(|()| file.sync_all()).map_err(failed)?;
            done += 1;
        }
        Ok(done)
    })
}

/// A server on the files of a folder.
struct Server<'a> {
    folder: &'a Path,
    workload: Mutex<Workload>,
    personality: Personality,
    log: File,
    /// What is written.
    data: Vec<u8>,
}

impl<'a> Server<'a> {
    fn new(personality: Personality, seed: u64, folder: &'a Path) -> Result<Self, Failure> {
        let workload = Workload::new(personality, FILES, personality.threads(), seed);
        let log = folder.join("log");
        let opened = OpenOptions::new().create(true).append(true).open(&log);
        let data = vec![0x5A; IO_MAX];
        let log = opened.map_err(|error| at_path(&log, &error))?;
        let server = Self {
            folder,
            workload: Mutex::new(Workload::clone(&workload)),
            personality,
            log,
            data,
        };
        for (file, bytes) in workload.initial() {
            let path = server.path(file);
            let parent = path.parent().expect("it is in a folder");
            let made = fs::create_dir_all(parent).and_then(|()| server.make(&path, bytes));
            made.map_err(|error| at_path(&path, &error))?;
        }
        for file in 0..FILES {
            // Files that do not exist yet have a folder.
            let path = server.path(file);
            let parent = path.parent().expect("it is in a folder");
            fs::create_dir_all(parent).map_err(|error| at_path(parent, &error))?;
        }
        Ok(server)
    }

    fn path(&self, file: u32) -> PathBuf {
        match self.personality.path(file) {
            (Some(folder), name) => self.folder.join(folder).join(name),
            (None, name) => self.folder.join(name),
        }
    }

    fn make(&self, path: &Path, bytes: u32) -> io::Result<()> {
        write(&File::create(path)?, bytes, &self.data)
    }

    /// Does the next operation of a thread.
    fn next(
        &self,
        thread: usize,
        open: &mut Option<File>,
        buffer: &mut [u8],
    ) -> Result<(), (PathBuf, io::Error)> {
        let mut workload = self.workload.lock().unwrap_or_else(PoisonError::into_inner);
        let operation = workload.next(thread);
        // Another thread may make a deleted file again as soon as the workload is free.
        let held = (operation.call == Call::Delete).then_some(workload);
        let path = self.path(operation.file);
        let ended = self.call(operation, &path, open, buffer);
        drop(held);
        ended.map_err(|error| (path, error))
    }

    fn run(&self, thread: usize, until: f64) -> Result<u64, (PathBuf, io::Error)> {
        let (mut open, mut buffer) = (None, vec![0; IO_MAX]);
        let mut done = 0;
        while clock::seconds() < until {
            self.next(thread, &mut open, &mut buffer)?;
            done += 1;
        }
        Ok(done)
    }

    fn call(
        &self,
        operation: Operation,
        path: &Path,
        open: &mut Option<File>,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        let file = || open.as_ref().ok_or_else(|| io::Error::other("no file is open"));
        match operation.call {
            Call::Create => {
                let new = OpenOptions::new().read(true).append(true).create_new(true).open(path)?;
                *open = Some(new);
            }
            Call::Open => *open = Some(OpenOptions::new().read(true).append(true).open(path)?),
            Call::WriteWhole | Call::Append => write(file()?, operation.bytes, &self.data)?,
            Call::ReadWhole => {
                let (file, mut at) = (file()?, 0);
                loop {
                    match file.read_at(buffer, at)? {
                        0 => break,
                        read => at += read as u64,
                    }
                }
            }
            Call::Fsync => file()?.sync_all()?,
            Call::Close => *open = None,
            Call::Delete => fs::remove_file(path)?,
            // Another thread may just have deleted it.
            Call::Stat => drop(fs::metadata(path)),
            Call::Log => write(&self.log, operation.bytes, &self.data)?,
        }
        Ok(())
    }
}

/// Appends.
fn write(mut file: &File, bytes: u32, data: &[u8]) -> io::Result<()> {
    let mut left = bytes as usize;
    while left > 0 {
        let now = left.min(data.len());
        io::Write::write_all(&mut file, &data[..now])?;
        left -= now;
    }
    Ok(())
}

fn serve(args: &Args, mounted: &Mounted, personality: Personality) -> Result<f64, Failure> {
    let server = Server::new(personality, args.seed, mounted.folder())?;
    threads(args, personality.threads(), |number, until| server.run(number, until))
}

/// Files are made, written, appended to, read and deleted.
pub fn file_server(args: &Args, mounted: &Mounted) -> Result<f64, Failure> {
    serve(args, mounted, Personality::FileServer)
}

/// Files are read; a log is appended to.
pub fn web_server(args: &Args, mounted: &Mounted) -> Result<f64, Failure> {
    serve(args, mounted, Personality::WebServer)
}

/// Mails are made, appended to and read, with an fsync after each change.
pub fn var_mail(args: &Args, mounted: &Mounted) -> Result<f64, Failure> {
    serve(args, mounted, Personality::VarMail)
}
