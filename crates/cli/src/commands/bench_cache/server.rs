//! Server processes to be measured.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use prism_host::memory;

use super::{Args, VALUE};
use crate::failure::Failure;

/// Our servers: names, and what they are started with in addition.
const OURS: [(&str, Option<&str>); 2] =
    [("prism, flash", None), ("prism, flash, --strict", Some("--strict"))];

/// A server, which is ended when this is dropped.
pub struct Process {
    name: &'static str,
    child: Child,
    port: u16,
}

fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0");
    let port = listener.and_then(|listener| listener.local_addr()).map(|address| address.port());
    port.map_err(|error| Failure::Usage(format!("there is no free port: {error}")))
}

fn start(name: &'static str, mut command: Command, port: u16) -> Result<Process, Failure> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn();
    let child = child.map_err(|error| Failure::Usage(format!("cannot start {name}: {error}")))?;
    Ok(Process { name, child, port })
}

impl Process {
    /// Our server on a file, with and without `--strict`, and memcached if it is installed.
    pub fn start_all(args: &Args, devices: [&Path; 2]) -> Result<Vec<Self>, Failure> {
        let own = std::env::current_exe();
        let own = own.map_err(|error| Failure::Usage(format!("this program: {error}")))?;
        let bytes = args.items * (VALUE as u64 + 64);
        let mut servers = Vec::new();
        for ((name, strict), device) in OURS.into_iter().zip(devices) {
            let port = free_port()?;
            let mut ours = Command::new(&own);
            ours.args(["cache", "serve", "--size", &format!("{}KiB", bytes * 3 / 2 / 1024)])
                .args(["--memory", &format!("{}KiB", (bytes / 5 / 1024).max(16 << 10))])
                .args(["-p", &port.to_string(), "-I", "256k", "--device"])
                .arg(device)
                .args(strict);
            servers.push(start(name, ours, port)?);
        }
        let port = free_port()?;
        let megabytes = ((bytes * 2) >> 20).max(64).to_string();
        let mut memcached = Command::new("memcached");
        memcached.args(["-u", "root", "-t", "1", "-p", &port.to_string(), "-m", &megabytes]);
        // Without it only our server is measured.
        servers.extend(start("memcached, memory", memcached, port).ok());
        Ok(servers)
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn is_ours(&self) -> bool {
        self.name.starts_with("prism")
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Seconds of CPU time that the process has used.
    pub fn cpu(&self) -> Result<f64, Failure> {
        memory::cpu_of(self.child.id()).ok_or_else(|| {
            Failure::Usage(format!("{} has ended: start it by hand to see why", self.name))
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
